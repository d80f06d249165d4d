"""Finds the Python code in a question: in a fence, on lines of its own, or inside a sentence of either language."""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"(?:```|~~~)[ \t{.]*([A-Za-z0-9+#.-]*)[^\n`]*\n(.*?)(?:```|~~~|\Z)", re.DOTALL)
_PYTHON = frozenset({"", "python", "python3", "py", "py3", "pyw", "pyi", "ipython"})
"""What a fence that holds Python is called; one without a name is taken at its word."""
_BACKTICKS = re.compile(r"`([^`\n]+)`")
_START = re.compile(r"(?<![A-Za-z0-9_.])(?=[A-Za-z_])")
_END = re.compile(r"[)\]}\"']")
_LONGEST_LINE = 2000
_MOST_LINES = 200
_MOST_PLACES = 40
_MOST_TRIES = 8
"""Beyond these sizes a question's prose is not searched; a fenced block is always taken whole."""

_TELLING = (ast.Assign, ast.AugAssign, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""One of these, or a call, must be there: a line that happens to parse (`sqlite3`, `return`) is prose."""


@dataclass(frozen=True, slots=True)
class Pasted:
    """The code in a question: Python, dedented, or an empty text; and what other languages its fences name."""

    python: str = ""
    others: tuple[str, ...] = ()


def find_code(question: str) -> Pasted:
    """The code in a question.

    Fenced blocks win and are taken as they are, even where they do not parse; then lines that parse; then the longest
    call or assignment inside each line.
    """
    if blocks := _FENCE.findall(question):
        ours = [textwrap.dedent(block).strip("\n") for name, block in blocks if _is_python(name)]
        others = dict.fromkeys(name for name, _ in blocks if not _is_python(name))
        return Pasted("\n".join(ours), tuple(others))
    lines = question.expandtabs(4).splitlines()[:_MOST_LINES]
    runs = list(_runs(lines)) or [code for line in lines if (code := _within(line))]
    return Pasted("\n".join(runs))


def _is_python(name: str) -> bool:
    return name.lower() in _PYTHON or name.lower().endswith(".py")


def _runs(lines: list[str]) -> Iterator[str]:
    """The longest runs of whole lines that parse and say something."""
    start = 0
    while start < len(lines):
        taken, code = _longest(lines, start)
        if code:
            yield code
        start += max(1, taken)


def _longest(lines: list[str], start: int) -> tuple[int, str]:
    """How many lines from `start` parse together, and their code (empty where they say nothing)."""
    end = start + _block(lines[start:])
    for _ in range(_MOST_TRIES):
        code = textwrap.dedent("\n".join(lines[start:end]))
        tree, error_line = _parsed(code)
        if tree is not None:
            return end - start, _said(code, tree)
        # Everything before the offending line may be whole; a block that it leaves open is cut one line more.
        end = min(end - 1, start + max(0, error_line - 1))
        if end <= start:
            break
    return 0, ""


def _block(lines: list[str]) -> int:
    """How many lines are indented at least as far as the first."""
    indents = [len(line) - len(line.lstrip()) if line.strip() else None for line in lines]
    first = indents[0] or 0
    return next(
        (position for position, indent in enumerate(indents) if indent is not None and indent < first), len(lines)
    )


def _said(code: str, tree: ast.Module) -> str:
    """The code from its first to its last telling statement or import."""
    telling = [statement for statement in tree.body if _is_telling(statement, code)]
    if not telling:
        return ""
    imports = [statement for statement in tree.body if isinstance(statement, (ast.Import, ast.ImportFrom))]
    said = sorted([*telling, *imports], key=lambda statement: statement.lineno)
    decorators = getattr(said[0], "decorator_list", ())
    first = min(said[0].lineno, *(item.lineno for item in decorators), said[0].lineno)
    return "\n".join(code.split("\n")[first - 1 : said[-1].end_lineno])


def _within(line: str) -> str:
    """The longest telling piece of a line of prose."""
    if len(line) > _LONGEST_LINE:
        return ""
    quoted = [piece for piece in _BACKTICKS.findall(line) if _has_argument(piece)]
    if quoted:
        return "\n".join(quoted)
    starts = [match.start() for match in _START.finditer(line)][:_MOST_PLACES]
    ends = [match.end() for match in _END.finditer(line)][-_MOST_PLACES:]
    pieces = (line[start:end] for start in starts for end in reversed(ends) if end > start)
    return next((piece for piece in pieces if _has_argument(piece)), "")


def _has_argument(code: str) -> bool:
    """Whether it parses and calls something with an argument; `execute()` in prose is only a name."""
    tree, _ = _parsed(code)
    statements = tree.body if tree else ()
    return any(call.args or call.keywords for statement in statements for call in _calls(statement, code))


def _is_telling(statement: ast.stmt, code: str) -> bool:
    return any(isinstance(node, _TELLING) for node in ast.walk(statement)) or any(_calls(statement, code))


def _calls(statement: ast.stmt, code: str) -> Iterator[ast.Call]:
    """The calls in a statement as programmers write them: `see (docs)` is prose, and so is `note: it(1)`."""
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and f"{ast.get_source_segment(code, node.func)}(" in code:
            yield node


def _parsed(code: str) -> tuple[ast.Module | None, int]:
    """The tree, or None and the line of the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the code's own doubtful escapes are no news of ours
            return ast.parse(code), 0
    except SyntaxError as error:
        return None, error.lineno or 1
    except (ValueError, RecursionError, MemoryError):  # NUL bytes, nesting beyond reason
        return None, 1
