"""The field notes say what is there: whole tables, true counts, and product names that the product really has."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

import pytest

from casemate.cli.loader import VERBS, LazyVerbs
from casemate.doctor.log.signatures import signatures, trends
from casemate.engine.flags.advice import advice
from casemate.engine.flags.table import recorded
from casemate.plan.argv import Serving, options
from casemate.plan.decision import CardsPlan, Intent, Refusal
from casemate.plan.dialect import dialect
from casemate.plan.planner import plan
from casemate.plan.recipe.judging import Ground, judge
from casemate.plan.recipe.reading import launches
from house.source import ROOT
from plan import shapes
from plan.recipes import host

_PAGE = ROOT / "docs" / "field-notes.md"
_CLAIMS = ("id", "claim", "verdict", "what is so, and evidence", "what Casemate does")
_FLAGS = ("option", "first seen", "last seen", "today")
_COUNTS = ("verdict", "audited", "further", "all", "means")
_VERDICTS = ("true", "partly", "outdated", "contradicted", "false", "not verifiable")
_AUDITED = [f"A{number}" for number in range(1, 95)] + [f"B{number}" for number in range(1, 19)]

_EVIDENCE = re.compile(
    r"\w#\d|\bwheels? \d|\w\.(?:com|co|ai|io|top|org|dev|eu)\b|config\.json|the recipe|arithmetic|measured|PCI-SIG"
    r"|general knowledge|no source found|the guide|revision \w{8}|\.md\b|systemd\.service|operator's report"
)
_NAME = re.compile(r"`(?P<name>[^`]+)`(?: \((?P<said>\w+)\))?")
_LINT = re.compile(r"lint(?:@(?P<version>[\d.]+))?(?:\+(?P<model>v4|0731))?:(?P<words>.+)", re.DOTALL)
_MODELS = {"v4": shapes.V4, "0731": shapes.V4_DSPARK}
_NEWEST = "0.33.0"


@dataclass(frozen=True, slots=True)
class Name:
    """A name of the product in backticks, and the judgement behind it in brackets."""

    text: str
    said: str = ""


def test_every_row_of_every_table_has_all_its_cells() -> None:
    for head, rows in _tables():
        assert not [row for row in rows if len(row) != len(head)], head
        assert not [row[0] for row in rows if "" in row[: 4 if head != _COUNTS else 1]], head


def test_every_audited_claim_has_one_row_and_further_ones_are_numbered_without_gaps() -> None:
    ids = [row[0] for row in _claims()]
    assert not [name for name, count in Counter(ids).items() if count > 1]
    assert sorted(name for name in ids if name[0] in "AB") == sorted(_AUDITED)
    further = [name for name in ids if name[0] == "C"]
    assert further == [f"C{number}" for number in range(1, len(further) + 1)]


def test_every_claim_has_a_verdict_of_the_list_and_names_its_evidence() -> None:
    for row in _claims():
        assert row[2] in _VERDICTS, row
        evidence = re.search(r"\((?P<told>[^()]*(?:\([^()]*\)[^()]*)*)\)$", row[3])
        assert evidence, f"{row[0]}: no evidence in brackets at the end"
        assert _EVIDENCE.search(evidence["told"]), f"{row[0]}: {evidence['told']}"


def test_every_claim_says_what_casemate_does_or_why_it_does_nothing() -> None:
    for row in _claims():
        assert _NAME.search(row[4]) or re.match(r"nothing: \w+", row[4]), row


def test_the_counts_at_the_top_are_those_of_the_rows() -> None:
    (counts,) = (rows for head, rows in _tables() if head == _COUNTS)
    rows = _claims()
    for verdict, *told, _ in counts:
        of = [row for row in rows if verdict in (row[2], "sum")]
        audited = sum(row[0][0] in "AB" for row in of)
        assert [int(cell) for cell in told] == [audited, len(of) - audited, len(of)], verdict
    assert [row[0] for row in counts] == [*_VERDICTS, "sum"]


def test_ten_findings_open_the_page_and_their_rows_exist() -> None:
    chapter = re.split(r"^## ", _page(), flags=re.MULTILINE)[1]
    assert chapter.startswith("Ten findings")
    assert re.findall(r"^(\d+)\. ", chapter, re.MULTILINE) == [str(number) for number in range(1, 11)]


def test_every_row_that_a_text_refers_to_exists() -> None:
    assert set(re.findall(r"\b[ABC]\d+\b", _outside_code())) - {row[0] for row in _claims()} <= _NO_ROWS


_NO_ROWS = {"A100", "B200"}
"""Cards."""


def test_no_verdict_is_without_a_row() -> None:
    assert {row[2] for row in _claims()} == set(_VERDICTS)


def test_the_life_of_every_option_is_the_recorded_one() -> None:
    (rows,) = (rows for head, rows in _tables() if head == _FLAGS)
    for option, first, last, _ in rows:
        spans = recorded().spans_of(option.strip("`").removeprefix("--"))
        assert (spans[0].first, spans[-1].last) == (first, last) if spans else first == last == "never", option


def test_every_name_of_the_product_exists() -> None:
    wrong = [name.text for name in _names() if not _exists(name)]
    assert not wrong


@pytest.mark.parametrize(
    "name",
    [
        Name("doctor:driver.cudas"), Name("log:no-kernel-images"), Name("plan:max_model_length"),
        Name("lint:--tensor-parallel-size 2", "removed"), Name("lint:--enforce-eager", "removed"),
        Name("argv:--trust-remote-code"), Name("argv:no --block-size"), Name("casemate doctr"),
        Name("casemate kb explode"), Name("casemate doctor --advice"), Name("src/casemate/none.py"),
    ],
    ids=lambda name: name.text,
)  # fmt: skip
def test_a_name_that_the_product_has_not_is_caught(name: Name) -> None:
    assert not _exists(name)


def test_names_are_found_with_the_judgement_behind_them() -> None:
    assert list(_named("`lint:--x 1` (harmful), `log:y` is one, and `vllm serve` is none")) == [
        Name("lint:--x 1", "harmful"),
        Name("log:y"),
    ]


def test_every_lint_name_has_its_judgement_and_no_other_name_has_one() -> None:
    shown = [name for name in _names() if name.text not in _LEGEND]
    assert not [name for name in shown if bool(name.said) != name.text.startswith("lint")]


_LEGEND = {"lint+0731"}
"""Forms that the legend tells of without words behind them."""


def test_measured_figures_are_those_of_the_recorded_runs(optional: Callable[[str, object], None]) -> None:
    folder = ROOT.parent / "shared" / "gpu" / "recordings"
    optional("the recorded runs are not beside the project", folder.is_dir())
    for file, figures in _RECORDED.items():
        text = (folder / file).read_text(encoding="utf-8", errors="replace")
        assert not [figure for figure in figures if figure not in text], file
        assert not [figure for figure in figures if figure not in _page()], file
    burst, again = json.loads((folder / "A.json").read_text(encoding="utf-8"))[:2]
    assert f"{burst['ttft_p50']:.2f} s, {burst['tpot_ms']:.2f} ms" in _page()
    assert f"{again['ttft_p50']:.2f} s, {again['tpot_ms']:.1f} ms a token, {again['out_tps']:.0f} tokens/s" in _page()


_RECORDED = {
    "tp2-ep.log": ("73.88 GiB", "1.09 GiB", "0.39 GiB", "14.7 GiB", "991,366", "7.56x", "847.80 s"),
    "pp2-eager.log": ("74.85 GiB", "14.38 GiB", "312,056"),
}


@cache
def _page() -> str:
    return _PAGE.read_text(encoding="utf-8")


def _outside_code() -> str:
    return re.sub(r"`[^`]*`", "", _page())


@cache
def _tables() -> tuple[tuple[tuple[str, ...], tuple[tuple[str, ...], ...]], ...]:
    """Head and rows of each table."""
    blocks = re.findall(r"(?:^\|.*\|$\n?)+", _page(), re.MULTILINE)
    cut = [[tuple(cell.strip() for cell in line[1:-1].split("|")) for line in block.splitlines()] for block in blocks]
    return tuple((lines[0], tuple(lines[2:])) for lines in cut)


def _claims() -> list[tuple[str, ...]]:
    return [row for head, rows in _tables() if head == _CLAIMS for row in rows]


def _names() -> list[Name]:
    return list(_named(_page()))


def _named(text: str) -> Iterator[Name]:
    for match in _NAME.finditer(text):
        if re.match(r"(?:doctor|log|plan|argv|lint(?:@[\d.]+)?(?:\+\w+)?):|casemate |src/casemate/", match["name"]):
            yield Name(match["name"], match["said"] if match["name"].startswith("lint") and match["said"] else "")


def _exists(name: Name) -> bool:
    form, _, rest = name.text.partition(":")
    if name.text.startswith("src/"):
        return (ROOT / name.text).is_file()
    if name.text.startswith("casemate "):
        return _is_command(name.text.split()[1:])
    if form.startswith("lint"):
        return _is_judged(name)
    held: dict[str, Callable[[], set[str]]] = {
        "doctor": _checks, "log": _signatures, "plan": _fields, "argv": _planned,
    }  # fmt: skip
    if rest.startswith("no "):
        return form == "argv" and rest.removeprefix("no ") not in _planned()
    return rest in held[form]()


@cache
def _checks() -> set[str]:
    """The ids of all questions that the doctor asks, as its modules write them."""
    modules = (ROOT / "src/casemate/doctor/checks").glob("*.py")
    made = (re.findall(r'\bQuestion\(\s*"([\w.-]+)"', module.read_text(encoding="utf-8")) for module in modules)
    return {name for names in made for name in names}


def _signatures() -> set[str]:
    return {known.id for known in signatures()} | set(trends())


def _fields() -> set[str]:
    return {field.name for kind in (CardsPlan, Refusal) for field in fields(kind)}


@cache
def _planned() -> set[str]:
    """The options of the command that is planned for this model on two cards of 96 GB."""
    checkpoint, table = shapes.read(shapes.V4), recorded().table(_NEWEST)
    decided = plan(host(), checkpoint, intent=Intent(context=131_072), engine_version=_NEWEST)
    assert isinstance(decided, CardsPlan)
    serving = Serving(table, dialect(checkpoint, table), "/models/v4", 8000, "v4")
    return {option[0] for option in options(decided, serving)}


def _is_judged(name: Name) -> bool:
    """Whether the linter has that judgement on the first of these words."""
    form = _LINT.fullmatch(name.text)
    assert form, name.text
    words, model = form["words"], form["model"]
    text = f"{words} --model m" if words.startswith("python") else f"vllm serve m {words}"
    if re.match(r"\w+=", words):
        text = f"{words} vllm serve m"
    (launch,) = launches(text)
    checkpoint = shapes.read(_MODELS[model]) if model else None
    history = recorded()
    table = history.table(form["version"] or _NEWEST)
    found = judge(launch, Ground(table, history, advice(), checkpoint, host() if model else None))
    typed = "" if words.startswith("python") else re.split(r"[ =]", words)[0]
    return name.said in {problem.kind.value for problem in found.problems if problem.flag == typed}


def _is_command(words: list[str]) -> bool:
    verb, *rest = words
    if verb not in VERBS:
        return False
    command: Any = LazyVerbs(name="casemate").get_command(None, verb) if rest else None
    for word in rest:
        options_here = {spelled for option in command.params for spelled in option.opts}
        below = getattr(command, "commands", {})
        if word not in options_here and word not in below:
            return False
        command = below.get(word, command)
    return True
