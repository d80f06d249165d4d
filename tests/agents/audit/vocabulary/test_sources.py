"""A client's data is recognised in every framework, and what is converted or not the client's is left alone."""

from __future__ import annotations

import pytest

from agents.audit.vocabulary.programs import weaknesses, wholes

_RUN = {"CWE-78", "CWE-94", "CWE-79"}


@pytest.mark.parametrize("program", wholes("harmful"))
def test_data_of_a_client_is_followed_to_where_it_is_run(program: str) -> None:
    assert weaknesses(program) & _RUN


@pytest.mark.parametrize("program", wholes("harmless"))
def test_data_that_is_converted_or_not_the_clients_is_left_alone(program: str) -> None:
    assert not weaknesses(program) & _RUN
