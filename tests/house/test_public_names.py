"""What a module offers is pinned: a name that comes or goes shows in the diff (`make snapshots` refreshes it)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syrupy.assertion import SnapshotAssertion

from house.source import Source, sources


def test_every_public_name_of_every_module_is_pinned(snapshot: SnapshotAssertion) -> None:
    lines = [line for source in sources("src") for line in (source.path.removeprefix("src/"), *_indented(source))]
    assert "\n".join(lines) == snapshot


def test_functions_classes_and_constants_are_names_and_private_ones_and_imports_are_not() -> None:
    planted = (
        "import os\nA: int = 1\nB = C = 2\n_d = 3\ndef e(): x = 1\nasync def f(): ...\nclass G: h = 1\nif A: i = 1"
    )
    assert sorted(_names(Source.of("x.py", planted))) == ["A", "B", "C", "G", "e", "f", "i"]


def _indented(source: Source) -> list[str]:
    return [f"    {name}" for name in sorted(set(_names(source)))]


def _names(source: Source) -> Iterator[str]:
    for name in _bound(source.tree.body):
        if not name.startswith("_"):
            yield name


def _bound(statements: list[ast.stmt]) -> Iterator[str]:
    for statement in statements:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield statement.name
            case ast.Assign():
                yield from (name for target in statement.targets for name in _targets(target))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.If() | ast.Try():
                yield from _bound(statement.body)
                yield from _bound(statement.orelse)


def _targets(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
