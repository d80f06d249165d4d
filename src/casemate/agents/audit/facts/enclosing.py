"""Which function or class each line of a file stands in: what tells two equal places apart when lines move. Pure."""

from __future__ import annotations

import ast

_DEEPEST = 8
"""Definitions nested deeper than this count as part of the eighth, so that hostile nesting costs no more."""
_DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_HOLDER = (ast.stmt, ast.ExceptHandler, ast.match_case)


def owners(tree: ast.Module, lines: int) -> list[str]:
    """The dotted name of the innermost definition around each line (`Store.find`; empty: none).

    Args:
        tree: the file's tree.
        lines: how many lines it has.

    Returns:
        One name a line, by its number; the first belongs to line 0, which no file has.
    """
    named = [""] * (lines + 1)
    waiting: list[tuple[ast.AST, str, int]] = [(tree, "", 0)]
    while waiting:
        holder, name, depth = waiting.pop()
        if isinstance(holder, _DEFINITION):
            name, depth = f"{name}.{holder.name}" if name else holder.name, depth + 1
            first, last = holder.lineno, min(holder.end_lineno or holder.lineno, lines)
            named[first : last + 1] = [name] * (last + 1 - first)
        if depth < _DEEPEST:
            inner = [child for child in ast.iter_child_nodes(holder) if isinstance(child, _HOLDER)]
            waiting += [(child, name, depth) for child in reversed(inner)]
    return named
