"""The project's own files, as the house tests read them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "src/casemate"

_TREES = ("src", "tests", "bench")


@dataclass(frozen=True, slots=True)
class Source:
    """One Python file; `path` is relative to the root, with forward slashes."""

    path: str
    text: str
    tree: ast.Module

    @classmethod
    def of(cls, path: str, text: str) -> Source:
        return cls(path, text, ast.parse(text, filename=path))


@dataclass(frozen=True, slots=True)
class Function:
    """One function; `name` is qualified (`Class.method`), `method` says whether it is bound (takes self or cls)."""

    source: Source
    name: str
    node: ast.FunctionDef | ast.AsyncFunctionDef
    method: bool

    @property
    def where(self) -> str:
        return f"{self.source.path}:{self.name}"

    @property
    def lines(self) -> int:
        return (self.node.end_lineno or self.node.lineno) - self.node.lineno + 1


@cache
def sources(*trees: str) -> tuple[Source, ...]:
    """Every Python file under the given folders; without any, of the product, its tests and its benches."""
    return tuple(
        Source.of(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
        for tree in trees or _TREES
        for path in sorted((ROOT / tree).rglob("*.py"))
    )


def functions(source: Source) -> Iterator[Function]:
    """Every function of a file, inner ones too."""
    yield from _functions(source, source.tree, "", in_class=False)


def at(source: Source, node: ast.AST) -> str:
    """Where a node is, as `path:line`."""
    return f"{source.path}:{getattr(node, 'lineno', 0)}"


def documents() -> list[Path]:
    """Every Markdown page of the project."""
    return [path for path in files() if path.suffix == ".md"]


@cache
def files() -> tuple[Path, ...]:
    """Every file that belongs to the project: what .gitignore does not name, and no hidden folder but .ci."""
    ignored = [line.strip().strip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()]
    return tuple(sorted(_walk(ROOT, [pattern for pattern in ignored if pattern])))


def _walk(folder: Path, ignored: list[str]) -> Iterator[Path]:
    for path in folder.iterdir():
        if any(fnmatch(path.name, pattern) for pattern in ignored) or path.is_symlink():
            continue
        if path.is_file():
            yield path
        elif not path.name.startswith(".") or path.name == ".ci":
            yield from _walk(path, ignored)


def _functions(source: Source, parent: ast.AST, prefix: str, *, in_class: bool) -> Iterator[Function]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            static = any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in node.decorator_list)
            yield Function(source, prefix + node.name, node, method=in_class and not static)
            yield from _functions(source, node, f"{prefix}{node.name}.", in_class=False)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(source, node, f"{prefix}{node.name}.", in_class=True)
        else:
            yield from _functions(source, node, prefix, in_class=in_class)
