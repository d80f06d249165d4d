"""A small graph, and the platform that serves it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest

from casemate.web.atlas.lending import Lending
from fakes import atlas
from fakes.platform import platform


@pytest.fixture(scope="module")
def lending(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lending]:
    with closing(Lending(atlas.write(tmp_path_factory.mktemp("graph") / "graph.sqlite"))) as lending:
        yield lending


@pytest.fixture
async def address(lending: Lending) -> AsyncIterator[str]:
    async with platform(graph=lending.lent) as address:
        yield address
