"""Habits of the house that have no figure: each yields the places (`path:line`) that break it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import PurePosixPath

from house.source import PACKAGE, Source, at, functions

DRAWERS = {"utils", "util", "common", "helpers", "helper", "core", "base", "manager", "misc"}
EDGES = (f"{PACKAGE}/cli/main.py", f"{PACKAGE}/web/app.py")
LOADER = f"{PACKAGE}/cli/loader.py"

_EVERYTHING = {"Exception", "BaseException"}
_MOCKS = {
    "mock", "unittest.mock", "pytest_mock", "responses", "aioresponses", "respx", "requests_mock", "httpretty", "vcr",
    "flexmock", "mockito", "doublex", "pytest_httpx", "pytest_httpserver", "freezegun",
}  # fmt: skip
_OF_ENVIRONMENT = {"setenv", "delenv", "chdir", "syspath_prepend", "undo", "context"}
_CLOCKS = re.compile(r"\b(?:time|datetime|monotonic|clock|now)\b")
_MARK = re.compile(r"#\s*(?P<tool>noqa|type:\s*ignore|pragma|pyright|fmt:|mypy:)(?P<rest>.*)")
_WITH_CODE = {
    "noqa": re.compile(r":\s*[A-Z]+[0-9]+(?:\s*,\s*[A-Z]+[0-9]+)*(?P<reason>.*)"),
    "type: ignore": re.compile(r"\[[\w, -]+\](?P<reason>.*)"),
}


def drawers(source: Source) -> Iterator[str]:
    """A module or folder named for nothing in particular."""
    for part in PurePosixPath(source.path).with_suffix("").parts:
        if DRAWERS & set(part.split("_")):
            yield source.path
            return


def broad_excepts(source: Source) -> Iterator[str]:
    """Catching everything for good, by except or suppress; each of the two edges may once. Passing it on is fine."""
    found = [at(source, node) for node in ast.walk(source.tree) if _catches_everything(node)]
    yield from found[1:] if source.path in EDGES else found


def late_imports(source: Source) -> Iterator[str]:
    """An import inside a function, or by name; only the loader of verbs may."""
    if source.path == LOADER:
        return
    for function in functions(source):
        for node in ast.walk(function.node):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield at(source, node)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and _dotted(node.func).rpartition(".")[2] in ("import_module", "__import__"):
            yield at(source, node)


def mocks(source: Source) -> Iterator[str]:
    """A mock library, by import or by its fixture."""
    for node in ast.walk(source.tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{name}" for name in names)]
        if _MOCKS & set(names) or (isinstance(node, ast.arg) and node.arg == "mocker"):
            yield at(source, node)


def patches(source: Source) -> Iterator[str]:
    """monkeypatch on anything but the environment and the clock."""
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if _dotted(node.func.value) not in ("monkeypatch", "patch"):
            continue
        target = " ".join(ast.unparse(argument) for argument in node.args[:2])
        if node.func.attr not in _OF_ENVIRONMENT and not _CLOCKS.search(target):
            yield at(source, node)


def silent_skips(source: Source) -> Iterator[str]:
    """A test that may not run without being counted; the fixture `optional` counts."""
    if source.path == "tests/conftest.py":
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and _dotted(node) in (
            "pytest.skip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.importorskip", "pytest.mark.xfail",
        ):  # fmt: skip
            yield at(source, node)


def marks_without_reason(source: Source) -> Iterator[str]:
    """A comment that silences a tool without naming what and why."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT and (mark := _MARK.search(token.string)):
            form = _WITH_CODE.get(re.sub(r"\s+", " ", mark["tool"]))
            said = form.match(mark["rest"]) if form else None
            if mark["tool"] == "fmt:":
                continue
            if said is None or len(re.findall(r"\w+", said["reason"])) < 3:
                yield f"{source.path}:{token.start[0]}"


def _catches_everything(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        passed_on = isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None
        return not passed_on and (node.type is None or bool(_EVERYTHING & _names(node.type)))
    if isinstance(node, ast.Call) and _dotted(node.func).rpartition(".")[2] == "suppress":
        return any(_EVERYTHING & _names(argument) for argument in node.args)
    return False


def _names(node: ast.expr) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
