"""Notebooks: flows cross cells, and each finding is told by cell and line as well as by the line of the file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from casemate.agents.audit.facts.summary import Module
from casemate.agents.audit.linking.link import Reached, link
from casemate.agents.audit.reading.files import summaries
from casemate.agents.audit.reading.notebooks import summarize_notebook
from casemate.finding import Cell

_TOKEN = "ghp_" + "a1B2c3D4e5" * 4
_S11 = [
    ("markdown", ["# Title\n", "text"]),
    ("code", ["import yaml, requests\n", "yaml.load(open('c.yml'), Loader=yaml.Loader)"]),
    ("code", ["requests.get(u, verify=False)"]),
]


def _cell(kind: str, source: Any, *, old: bool = False, **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "input" if old and kind == "code" else "source": source, "metadata": {}, **more}


def _notebook(cells: list[Any], *, version: int = 4, indent: int | None = 1, joined: bool = False) -> str:
    made = [_cell(kind, "".join(source) if joined else source, old=version < 4) for kind, source in cells]
    body: dict[str, Any] = {"cells": made} if version == 4 else {"worksheets": [{"cells": made}]}
    return json.dumps({**body, "metadata": {}, "nbformat": version, "nbformat_minor": 0}, indent=indent)


def _reached(text: str) -> list[Reached]:
    return [real for real in link([summarize_notebook(text, "a.ipynb")]) if isinstance(real, Reached)]


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("joined", [False, True])
def test_cells_count_from_1_with_those_of_text_and_the_span_is_right_in_the_file(
    version: int, indent: int | None, *, joined: bool
) -> None:
    text = _notebook(_S11, version=version, indent=indent, joined=joined)
    hits = summarize_notebook(text, "a.ipynb").hits
    places = {hit.rule: hit.location for hit in hits}
    assert places["unsafe-deserialization"].cell == Cell(2, 2)
    assert places["certificate-not-verified"].cell == Cell(3, 1)
    for hit in hits:
        line = text.split("\n")[hit.location.line - 1]
        assert line[hit.location.column - 1 : hit.location.end_column - 1] == hit.code


def test_columns_are_right_behind_escapes_and_signs_beyond_the_basic_plane() -> None:
    text = _notebook([("code", 'x = "名\\t😀"; import os; os.system(input())')])
    (real,) = _reached(text)
    place = real.hit.location
    assert text.split("\n")[place.line - 1][place.column - 1 : place.end_column - 1] == "os.system(input())"


def test_a_flow_crosses_cells_and_each_step_has_its_own() -> None:
    (real,) = _reached(_notebook([("code", "import os\nx = input()"), ("markdown", "then"), ("code", "os.system(x)")]))
    assert real.flow is not None
    assert [step.location.cell for step in real.flow.steps] == [Cell(1, 2), Cell(3, 1)]


@pytest.mark.parametrize(
    ("line", "cell_line"),
    [
        ("!ls {x}", 2),
        ("!ls $x", 2),
        ("files = !ls {x}", 2),
        ("if x:\n    !ls {x}", 3),
        ("!ls -l \\\n  {x}", 2),
        ("%sx ls {x}", 2),
        ("%time os.system('ls ' + x)", 2),
        ("%matplotlib inline\nos.system(x)", 3),
        ("os?\nos.system(x)", 3),
        ("?os\nos.system(x)", 3),
        ("%cd /tmp\nwhere = %pwd\nos.system(x)", 4),
    ],
)
def test_a_shell_line_is_a_command_with_the_values_that_it_takes_in(line: str, cell_line: int) -> None:
    (real,) = _reached(_notebook([("code", "import os; x = input()\n" + line)]))
    assert (real.hit.rule, real.hit.location.cell) == ("command-injection", Cell(1, cell_line))
    assert "_shell_of_notebook" not in real.hit.code + real.hit.evidence


@pytest.mark.parametrize(
    "line", ["!ls", "!ls {{x}}", "!ls $$x", "!pip install flask", "y = (x\n% 3)", "%timeit x", "x = '''\n!ls {x}\n'''"]
)
def test_a_line_that_takes_in_nothing_untrusted_is_left_alone(line: str) -> None:
    assert _reached(_notebook([("code", "x = input()\n" + line)])) == []


def test_cells_in_other_languages_are_named_and_the_rest_is_analysed() -> None:
    cells = [("code", "%%bash\nrm -rf $1"), ("code", "%%time\nimport os\nos.system(input())")]
    module = summarize_notebook(_notebook(cells), "a.ipynb")
    assert module.remarks == ("cells in other languages not analysed: 1 (bash)",)
    assert [hit.location.cell for hit in module.hits] == [Cell(2, 3)]


def test_a_cell_that_is_no_python_makes_the_file_incomplete_and_the_other_findings_stand() -> None:
    module = summarize_notebook(_notebook([*_S11, ("code", "x = = 1")]), "a.ipynb")
    assert module.unread == "cell 4: not valid Python: invalid syntax (line 1)"
    assert len(module.hits) == 2


def test_a_notebook_in_another_language_is_skipped() -> None:
    text = json.dumps({"cells": [_cell("code", "x <- 1")], "metadata": {"kernelspec": {"language": "R"}}})
    assert summarize_notebook(text, "a.ipynb").skipped == "no rules for this language (notebook in r)"


def test_outputs_notes_and_text_are_searched_for_secrets_only() -> None:
    shown = [{"output_type": "stream", "text": ["os.system(input())\n", f"t={_TOKEN}\n"]}]
    picture = [{"data": {"image/png": _TOKEN, "text/plain": "<Figure>"}}]
    cells = [
        _cell("code", "x = 1", outputs=shown),
        _cell("markdown", ["see\n", f"`{_TOKEN}`"]),
        _cell("code", "y = 1", outputs=picture),
    ]
    text = json.dumps({"cells": cells, "metadata": {"note": _TOKEN}}, indent=1)
    hits = summarize_notebook(text, "a.ipynb").hits
    assert {hit.rule for hit in hits} == {"hard-coded-secret"}
    assert {hit.location.cell for hit in hits} == {Cell(1, 0), Cell(2, 2), None}
    assert all(_TOKEN not in hit.code + hit.evidence for hit in hits)
    assert all(_TOKEN in text.split("\n")[hit.location.line - 1] for hit in hits)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"cells": 1}', '{"cells": [1, null]}', '{"cells": [{"cell_type": "code"}]}', "[" * 9000],
)
def test_what_is_no_sound_notebook_ends_as_a_summary_or_a_reason(tmp_path: Any, text: str) -> None:
    (tmp_path / "a.ipynb").write_text(text)
    (outcome,) = summaries(str(tmp_path), ("a.ipynb",))
    assert isinstance(outcome, Module) or outcome
