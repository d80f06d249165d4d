"""The documents say what is there: settings, dependencies, errors, folders, commands, decisions, links."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casemate import errors
from casemate.cli.loader import VERBS
from casemate.settings import Settings
from house.source import PACKAGE, ROOT, Source, documents, sources

_PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
_SHELL = {"", "sh", "bash", "shell", "console"}
_PROGRAM = re.compile(r"(?:[A-Z_]+=\S+ )*(?:make|casemate)(?: |$)")
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)[^)]*\)")


def _page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _rows(page: str) -> dict[str, list[str]]:
    """The rows of a page's tables, cells without code marks, by their first cell."""
    cells = [[cell.strip().replace("`", "") for cell in line.strip("| ").split("|")] for line in page.splitlines()]
    return {row[0]: row[1:] for row in cells if len(row) > 2}


def test_every_setting_has_its_row_with_variable_and_default() -> None:
    rows = _rows(_page("docs/settings.md"))
    for name, field in Settings.model_fields.items():
        secret = hasattr(field.default, "get_secret_value")
        default = field.default.get_secret_value() if secret else str(field.default)
        shown = default.lower() if isinstance(field.default, bool) else default
        assert rows.get(name, [])[:2] == [f"CASEMATE_{name.upper()}", shown or "(empty)"], f"docs/settings.md: {name}"
        assert rows[name][2].rstrip("."), f"docs/settings.md: {name} has no meaning"
    spoken_of = {row[0] for row in rows.values() if row[0].startswith("CASEMATE_")}
    assert spoken_of == {f"CASEMATE_{name.upper()}" for name in Settings.model_fields}, "a row for no setting"


def test_every_dependency_has_its_row_with_reason_what_it_replaced_and_licence() -> None:
    groups = _PROJECT["dependency-groups"]
    named = [*_PROJECT["project"]["dependencies"], *groups["build"], *groups["dev"]]
    wanted = {re.split(r"[<>=!~; ]", requirement)[0] for requirement in named}
    rows = _rows(_page("docs/decisions/0002-dependencies.md"))
    present = {name for name in rows if name not in ("dependency", "---")}
    assert wanted - present == set(), "without a row in 0002"
    assert present - wanted == set(), "a row in 0002 for what is no dependency"
    assert not [name for name in wanted if len(rows[name]) != 3 or not all(rows[name])], "a cell is empty"


def test_every_error_class_stands_in_the_tree_under_its_parent() -> None:
    drawn = dict(_drawn(errors.__doc__ or ""))
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    assert drawn == {error.__name__: error.__mro__[1].__name__ for error in classes} | {"CasemateError": ""}


def test_no_error_grows_outside_the_one_tree() -> None:
    product = [source for source in sources("src") if source.path != f"{PACKAGE}/errors.py"]
    assert not [stray for source in product for stray in _strays(source)], "an error belongs in errors.py"


def test_the_readme_opens_with_exactly_two_commands() -> None:
    first = next(_commands(_page("README.md")))
    assert first == ["make run", "make test"]


def test_the_readme_tree_names_every_room_of_the_package_with_its_duty() -> None:
    tree = next((fence["text"] for fence in _FENCE.finditer(_page("README.md")) if PACKAGE in fence["text"]), "")
    rooms = [room for pattern in ("*/", "agents/*/") for room in (ROOT / PACKAGE).glob(pattern)]
    names = {room.name for room in rooms if room.is_dir() and not room.name.startswith("__")}
    assert not {name for name in names if not re.search(rf"(?<!\w){name}/ +\w", tree)}, "not in the README's tree"


@pytest.mark.parametrize("page", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_command_of_a_page_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", _page("Makefile"), re.MULTILINE))
    for line in (line for block in _commands(page.read_text(encoding="utf-8")) for line in block):
        program, *words = re.sub(r"^(?:[A-Z_]+=\S+ +)+", "", line).split()
        if program == "make":
            assert {word for word in words if "=" not in word and word[0] != "-"} <= targets, line
        elif program == "casemate":
            assert not words or words[0] in VERBS or words[0].startswith("-"), line


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_chapter_in_the_commands_page_and_its_file(verb: str) -> None:
    chapters = re.split(r"^#+ ", _page("docs/commands.md"), flags=re.MULTILINE)
    chapter = [text for text in chapters if re.match(rf"`?(?:casemate )?{verb}\b", text)]
    assert len(chapter) == 1, f"docs/commands.md: one chapter headed `casemate {verb}`"
    assert len(chapter[0].split()) > 10, f"docs/commands.md: {verb} has no paragraph"
    assert (ROOT / PACKAGE / "cli" / f"{verb}.py").is_file()


def test_the_changelog_has_a_place_for_what_is_not_released() -> None:
    assert re.search(r"^## \[?Unreleased\b", _page("CHANGELOG.md"), re.MULTILINE)


def test_decision_pages_are_numbered_without_gaps() -> None:
    names = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("*.md"))
    assert [name[:5] for name in names] == [f"{number:04}-" for number in range(1, len(names) + 1)]


def test_code_speaks_only_of_decision_pages_that_exist() -> None:
    there = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("*.md")}
    for source in sources():
        assert set(re.findall(r"docs/decisions/(\d{4})", source.text)) <= there, source.path


@pytest.mark.parametrize("page", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in (match["target"] for match in _LINK.finditer(text)):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            there = page.parent / path if path else page
            assert there.exists(), target
            assert not anchor or anchor in _anchors(there.read_text(encoding="utf-8")), target


def _anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ +(.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _commands(page: str) -> Iterator[list[str]]:
    """The calls of make and casemate in each shell block that has any, without prompt and comment."""
    for fence in _FENCE.finditer(page):
        if fence["language"] in _SHELL:
            lines = [line.removeprefix("$ ").partition(" #")[0] for line in fence["text"].splitlines()]
            calls = [call.strip() for line in lines for call in line.split(" · ")]
            if found := [call for call in calls if _PROGRAM.match(call)]:
                yield found


def _drawn(docstring: str) -> Iterator[tuple[str, str]]:
    """(name, parent) of each line of a tree drawn with branches four columns wide."""
    above: list[str] = []
    for line in docstring.splitlines():
        if match := re.match(r" {4}(?P<branch>(?:[│ ] {3})*(?:[├└]── )?)(?P<name>[A-Z]\w+)  ", line):
            depth = len(match["branch"]) // 4
            above[depth:] = [match["name"]]
            yield match["name"], above[depth - 1] if depth else ""


def _strays(source: Source) -> Iterator[str]:
    tree = {name for name in vars(errors) if name[0].isupper()}
    for node in ast.walk(source.tree):
        parents = {ast.unparse(parent).rpartition(".")[2] for parent in getattr(node, "bases", ())}
        if isinstance(node, ast.ClassDef) and (tree & parents or node.name.endswith("Error")):
            yield f"{source.path}:{node.lineno} {node.name}"
