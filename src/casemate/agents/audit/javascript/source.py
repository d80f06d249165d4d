"""JavaScript and TypeScript as a tree with places that a reader can find: lines and columns in characters."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter_javascript
import tree_sitter_typescript
from tree_sitter import Language, Node, Parser, Tree

from casemate.finding import Location

_NEWLINE = re.compile("\r\n|\r|\n")
_MAX_EVIDENCE_LINES = 20
_SUPPRESSION = re.compile(
    r"(?://|/\*).*?\b(?:nosec\b|nosemgrep\b|NOSONAR\b|lgtm\b|pragma:\s*allowlist|eslint-disable(?:-next)?-line\b|codeql\b)",
    re.IGNORECASE,
)
_MAP_COMMENT = re.compile(r"^[ \t]*(?://|/\*)[#@][ \t]*sourceMappingURL=", re.MULTILINE)
_MEAN_LINE = 500
"""In characters: no hand writes a file whose mean line is longer."""
_MAPPED_MEAN_LINE = 150
"""The same for a file that says that it was made from another one."""
_LONGEST_LINE = 50_000


@dataclass(frozen=True, slots=True)
class Source:
    """One parsed file: its path under the root, its text as UTF-8, its lines without their ends, its tree."""

    path: str
    data: bytes
    lines: tuple[str, ...]
    tree: Tree

    @property
    def root(self) -> Node:
        """The whole program."""
        return self.tree.root_node

    def location(self, node: Node) -> Location:
        """Where a node stands; columns are characters from 1, the end is exclusive."""
        start, end = node.start_point, node.end_point
        first = self._characters(start.row, start.column)
        last = self._characters(end.row, end.column)
        return Location(self.path, start.row + 1, first + 1, end.row + 1, last + 1)

    def evidence(self, location: Location) -> str:
        """The verbatim lines of a span, at most twenty."""
        end = min(location.end_line, location.line + _MAX_EVIDENCE_LINES - 1)
        return "\n".join(self.lines[location.line - 1 : end])

    def suppresses(self, location: Location) -> bool:
        """Whether a line of the span, or a comment right above it, carries a suppression mark of some scanner."""
        above = self.lines[location.line - 2] if location.line > 1 else ""
        lines = list(self.lines[location.line - 1 : location.end_line])
        if above.lstrip().startswith(("//", "/*")):
            lines.append(above)
        return any(_SUPPRESSION.search(line) for line in lines)

    def _characters(self, row: int, offset_bytes: int) -> int:
        text = self.lines[row] if row < len(self.lines) else ""
        if text.isascii():
            return min(offset_bytes, len(text))
        return len(text.encode("utf-8", "replace")[:offset_bytes].decode("utf-8", "replace"))


def parse(text: str, path: str) -> Source:
    """Parse a file's text, as TypeScript where its name says so; a broken place becomes an ERROR node.

    Raises:
        ValueError: the parser gave up.
    """
    # Lines end for the parser at `\n` alone; for a reader at a lone `\r` as well.
    text = _NEWLINE.sub("\n", text)
    data = text.encode("utf-8", "replace")
    tree = Parser(_language(path.rpartition(".")[2].lower())).parse(data)
    return Source(path, data, tuple(text.split("\n")), tree)


def is_minified(text: str) -> bool:
    """Whether a program was written by a machine for a machine: by the length of its lines, never by its name."""
    count = text.count("\n") + 1
    mean = len(text) / count
    if mean > _MEAN_LINE:
        return len(text) > _MEAN_LINE * 4  # a single long line may well be somebody's
    if mean > _MAPPED_MEAN_LINE and _MAP_COMMENT.search(text, max(0, len(text) - 4096)):
        return True
    return len(text) > _LONGEST_LINE and max(map(len, text.split("\n"))) > _LONGEST_LINE


def broken_places(source: Source) -> tuple[int, float]:
    """How many places are no valid syntax, and which share of the text the parser had to skip for them."""
    if not source.root.has_error:
        return 0, 0.0
    count = size = 0
    waiting = [source.root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            count += 1
            size += node.end_byte - node.start_byte
        else:
            waiting += [child for child in node.children if child.has_error or child.is_missing]
    return count, size / max(1, len(source.data))


def text_of(node: Node | None) -> str:
    """The source text of a node; empty for none."""
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def descendants(node: Node, *, into_functions: bool = True) -> Iterator[Node]:
    """A node and all named nodes in it, in order of the text.

    Args:
        node: where to begin.
        into_functions: whether functions within it are entered.
    """
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        if into_functions or found is node or found.type not in FUNCTIONS:
            waiting += reversed(found.named_children)


FUNCTIONS = frozenset(
    {
        *("function_declaration", "function_expression", "arrow_function", "method_definition"),
        *("generator_function", "generator_function_declaration"),
    }
)
"""Types of the nodes that are functions."""


@functools.cache
def _language(suffix: str) -> Language:
    # The grammar of TSX reads all of TypeScript but the old type assertions (`<T>x`), which JSX took the place of.
    if suffix in {"ts", "mts", "cts"}:
        return Language(tree_sitter_typescript.language_typescript())
    if suffix == "tsx":
        return Language(tree_sitter_typescript.language_tsx())
    return Language(tree_sitter_javascript.language())
