"""A report of nvidia-smi as one tree of names, whether it came as XML or as indented text.

The text may come from a stranger: the XML may declare no entity, and the tree has limits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from casemate.errors import UsageError

_MOST_NODES: Final = 400_000
_MOST_LEVELS: Final = 24
_TOO_MUCH: Final = "it is larger or deeper than any report, or declares entities"
_LINE = re.compile(r"^(?P<indent> *)(?P<name>\S.*?)(?:\s*: (?P<value>.*)|\s*:)?$")
_CARD = re.compile(r"GPU [0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]")


@dataclass(slots=True)
class Node:
    """A name with a text, with names below it, or both. Names are in small letters with underscores."""

    name: str
    value: str = ""
    below: list[Node] = field(default_factory=list)

    def all(self, path: str) -> Iterator[Node]:
        """Every node at a path such as `pci/bus_id`."""
        first, _, rest = path.partition("/")
        for node in self.below:
            if node.name == first:
                yield from node.all(rest) if rest else (node,)

    def first(self, *paths: str) -> str:
        """The text at the first of the paths that is there.

        Raises:
            ValueError: none is.
        """
        for path in paths:
            for node in self.all(path):
                return node.value
        raise ValueError("nvidia-smi does not print it")


def tree(text: str, *, where: str = "") -> Node:
    """The root of a report; its cards are the nodes called `gpu`.

    Args:
        text: what `nvidia-smi -q` or `nvidia-smi -q -x` printed.
        where: the recording's name, for the errors.

    Raises:
        UsageError: it is XML, but broken, or larger or deeper than any report, or declares entities.
    """
    return _xml(text, where) if text.lstrip().startswith("<") else _text(text)


def _text(text: str) -> Node:
    """Two spaces or four a level: what is indented deeper than a line stands below it."""
    root = Node("")
    open_: list[tuple[int, Node]] = [(-1, root)]
    for line in text.splitlines()[:_MOST_NODES]:
        match = _LINE.match(line.expandtabs().rstrip())
        if not match:
            continue
        indent, name = len(match["indent"]), match["name"]
        node = Node("gpu" if _CARD.fullmatch(name) else _named(name), (match["value"] or "").strip())
        if node.name == "gpu":
            node.below.append(Node("id", name.removeprefix("GPU ")))
        while open_[-1][0] >= indent:
            open_.pop()
        if len(open_) <= _MOST_LEVELS:
            open_[-1][1].below.append(node)
            open_.append((indent, node))
    return root


def _named(label: str) -> str:
    return re.sub(r"\s+", "_", label.strip().lower())


def _xml(text: str, where: str) -> Node:
    root = Node("")
    open_ = [root]
    count = 0

    def opened(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > _MOST_NODES or len(open_) > _MOST_LEVELS:
            raise ValueError(_TOO_MUCH)
        node = Node(name.lower(), below=[Node(key, value) for key, value in attributes.items()])
        open_[-1].below.append(node)
        open_.append(node)

    def closed(_: str) -> None:
        node = open_.pop()
        node.value = node.value.strip()

    def said(data: str) -> None:
        open_[-1].value += data

    def declared(*_: object) -> None:
        raise ValueError(_TOO_MUCH)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = opened, closed
    parser.CharacterDataHandler, parser.EntityDeclHandler = said, declared
    try:
        parser.Parse(text, True)  # noqa: FBT003 - expat takes no keyword
    except (expat.ExpatError, ValueError) as error:
        raise UsageError(f"this is no report of nvidia-smi: {error}", where=where) from error
    return next((node for node in root.below if node.name == "nvidia_smi_log"), root)
