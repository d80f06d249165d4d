"""Python source as a tree with places that a reader can find: lines and columns in characters, verbatim text."""

from __future__ import annotations

import ast
import functools
import re
import warnings
from dataclasses import dataclass

from casemate.finding import Location

_NEWLINE = re.compile("\r\n|\r|\n")
_MAX_EVIDENCE_LINES = 20
_HOLDERS = (
    *(ast.expr, ast.stmt, ast.arguments, ast.arg, ast.keyword, ast.alias, ast.withitem, ast.match_case, ast.pattern),
    *(ast.comprehension, ast.excepthandler),
)
_SUPPRESSION = re.compile(
    r"#.*?\b(?:nosec\b|nosemgrep\b|noqa\s*(?::\s*[A-Z]*[0-9, A-Z]*\bS\d+|$)|lgtm\b|pragma:\s*allowlist)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Source:
    """One parsed file: its path under the root, its lines without their ends, its tree."""

    path: str
    lines: tuple[str, ...]
    tree: ast.Module

    def location(self, node: ast.AST) -> Location:
        """Where a node stands; columns are characters from 1, the end is exclusive."""
        line: int = getattr(node, "lineno", 1)
        end_line: int = getattr(node, "end_lineno", None) or line
        start = self._characters(line, getattr(node, "col_offset", 0))
        end = self._characters(end_line, getattr(node, "end_col_offset", None) or 0)
        return Location(self.path, line, start + 1, end_line, max(end, start if line == end_line else 0) + 1)

    def text(self, location: Location) -> str:
        """The verbatim text of a span."""
        span = list(self.lines[location.line - 1 : location.end_line])
        if not span:
            return ""
        span[-1] = span[-1][: location.end_column - 1]
        span[0] = span[0][location.column - 1 :]
        return "\n".join(span)

    def evidence(self, location: Location) -> str:
        """The verbatim lines of a span, at most twenty."""
        end = min(location.end_line, location.line + _MAX_EVIDENCE_LINES - 1)
        return "\n".join(self.lines[location.line - 1 : end])

    def suppresses(self, location: Location) -> bool:
        """Whether a line of the span, or a comment right above it, carries a suppression mark of some scanner."""
        above = self.lines[location.line - 2] if location.line > 1 else ""
        lines = list(self.lines[location.line - 1 : location.end_line])
        if above.lstrip().startswith("#"):
            lines.append(above)
        return any("#" in line and _SUPPRESSION.search(line) for line in lines)

    def _characters(self, line: int, offset_bytes: int) -> int:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        if text.isascii():
            return min(offset_bytes, len(text))
        return len(text.encode("utf-8", "surrogatepass")[:offset_bytes].decode("utf-8", "replace"))


def parse(text: str, path: str) -> Source:
    """Parse a file's text.

    Raises:
        SyntaxError: it is not Python of this interpreter's version or older.
        ValueError: it holds a null byte.
        RecursionError, MemoryError: it is nested too deeply for the parser.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # odd escapes in audited code are not ours to warn of
        tree = ast.parse(text)
    return Source(path, tuple(_NEWLINE.split(text)), tree)


@functools.lru_cache(maxsize=1)
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Every node of a file's tree, as `walk` gives them; many ask for those of the same tree in a row."""
    return tuple(walk(tree))


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all that is in it, breadth first; without `Load`, `Add` and the like, which hold nothing.

    `ast.walk` takes four times as long.
    """
    found = [node]
    for holder in found:
        for name in holder._fields:
            inner = getattr(holder, name, None)
            if isinstance(inner, list):
                found += [child for child in inner if isinstance(child, _HOLDERS)]
            elif isinstance(inner, _HOLDERS):
                found.append(inner)
    return found


def module_name(path: str) -> str:
    """The dotted name of a file by its place in the tree (`shop/db/__init__.py` is `shop.db`)."""
    parts = re.sub(r"\.pyw?$", "", path).split("/")
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(part for part in parts if part)


def imports(tree: ast.AST, module: str, *, package: bool) -> dict[str, str]:
    """What each imported name stands for, as a dotted name.

    Args:
        tree: a module, or any statement to look through.
        module: its own dotted name, for relative imports.
        package: whether it is an `__init__` file.
    """
    names: dict[str, str] = {}
    for node in nodes(tree) if isinstance(tree, ast.Module) else walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            prefix = _absolute(node, module, package=package)
            for alias in node.names:
                names[alias.asname or alias.name] = f"{prefix}.{alias.name}" if prefix else alias.name
    names.pop("*", None)
    return names


def stars(tree: ast.Module, module: str, *, package: bool) -> frozenset[str]:
    """The modules from which every name is imported (`from shop.db import *`)."""
    return frozenset(
        _absolute(node, module, package=package)
        for node in nodes(tree)
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    )


def bound_names(tree: ast.Module) -> frozenset[str]:
    """Every name that a file binds anywhere: assignments, parameters, functions, classes."""
    names: set[str] = set()
    for node in nodes(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return frozenset(names)


def place(node: ast.AST) -> str:
    """A name for an expression whose value can be asked twice (`x`, `self.x`, `d['k']`, `r.get('k')`); else empty."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=inner, attr=attr):
            root = place(inner)
            return f"{root}.{attr}" if root else ""
        case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
            root = place(inner)
            return f"{root}[{key!r}]" if root else ""
        case ast.Call(func=ast.Attribute() as function, args=args, keywords=[]) if len(args) <= 2:
            root = place(function)
            keys = [arg.value for arg in args if isinstance(arg, ast.Constant)]
            return f"{root}({', '.join(map(repr, keys))})" if root and len(keys) == len(args) else ""
        case _:
            return ""


def _absolute(node: ast.ImportFrom, module: str, *, package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    drop = node.level - (1 if package else 0)
    parts = parts[: len(parts) - drop] if drop else parts
    return ".".join([*parts, node.module] if node.module else parts)
