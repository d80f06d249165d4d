"""Renames and drops a checkpoint's tensors by rules: first what would change, then the layout that does it.

Data is never converted: a cast changes bytes, and whether the result is still the model only an evaluation can tell.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from casemate.checkpoint.assembling import Assembled
from casemate.checkpoint.layout import Layout, Piece, Target, in_order_of_data, laid_out
from casemate.checkpoint.rules import Rule, Rules, apply_rules
from casemate.checkpoint.safetensors import Folder, Header, Tensor
from casemate.checkpoint.sharding import shared_metadata, targets_of
from casemate.errors import UsageError


@dataclass(frozen=True, slots=True)
class Renaming:
    """A tensor that gets another name."""

    old: str
    new: str
    file: str


@dataclass(frozen=True, slots=True)
class Collision:
    """A name that several tensors would have; `origins` are their places, `file: name`."""

    name: str
    origins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """What the rules would change. `uses` counts per rule the names that it found; `idle` are rules without any."""

    renamed: tuple[Renaming, ...]
    dropped: tuple[Tensor, ...]
    untouched: int
    collisions: tuple[Collision, ...]
    uses: tuple[tuple[Rule, int], ...]

    @property
    def idle(self) -> tuple[Rule, ...]:
        """Rules that no name matched; most often a mistake in the expression."""
        return tuple(rule for rule, count in self.uses if not count)

    @property
    def dropped_bytes(self) -> int:
        """What the result is smaller by."""
        return sum(tensor.size_bytes for tensor in self.dropped)


@dataclass(frozen=True, slots=True)
class Remapping:
    """What would change, and every tensor's new name (None: dropped), file by file in the order of the data."""

    difference: Difference
    pieces: tuple[tuple[Header, tuple[tuple[Tensor, str | None], ...]], ...]
    most_bytes: int | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a remapping changes, what it leaves behind, and what was written; None where it only was asked.

    `left_out` are files of the source that are not copied, with the reason; `stale` are texts of the config that name
    tensors which are renamed or dropped.
    """

    difference: Difference
    left_out: tuple[tuple[str, str], ...] = ()
    stale: tuple[str, ...] = ()
    written: Assembled | None = None


def remapped(folder: Folder, rules: Rules) -> Remapping:
    """Try the rules on a folder's names; nothing is written.

    Raises:
        UsageError: see `apply_rules`.
    """
    ordered = [(header, in_order_of_data(header)) for header in folder.headers]
    applied = apply_rules(rules, [tensor.name for _, tensors in ordered for tensor in tensors])
    names = iter(applied.names)
    pieces = tuple((header, tuple((tensor, next(names)) for tensor in tensors)) for header, tensors in ordered)
    pairs = [pair for _, of_file in pieces for pair in of_file]
    difference = Difference(
        renamed=tuple(Renaming(old.name, new, old.file) for old, new in pairs if new not in (None, old.name)),
        dropped=tuple(old for old, new in pairs if new is None),
        untouched=sum(old.name == new for old, new in pairs),
        collisions=_collisions(pairs),
        uses=tuple(zip(rules.rules, applied.uses, strict=True)),
    )
    return Remapping(difference, pieces, rules.most_bytes)


def layout_of(folder: Folder, remapping: Remapping) -> Layout:
    """The layout that makes the change. A file in which nothing changes stays equal to the last byte.

    Raises:
        UsageError: names collide, or nothing would be left.
    """
    if collisions := remapping.difference.collisions:
        first = collisions[0]
        raise UsageError(
            f"{len(collisions)} names would belong to several tensors, such as {first.name!r}", where=first.origins[0]
        )
    if not remapping.difference.untouched and not remapping.difference.renamed:
        raise UsageError("the rules drop every tensor")
    if remapping.most_bytes is None:
        return laid_out(folder, tuple(target for item in remapping.pieces if (target := _in_place(*item)).pieces))
    pieces = [Piece(new, old) for _, pairs in remapping.pieces for old, new in pairs if new is not None]
    return laid_out(folder, targets_of(pieces, metadata=shared_metadata(folder), most_bytes=remapping.most_bytes))


def stale_mentions(config: Mapping[str, object], remapping: Remapping) -> tuple[str, ...]:
    """Texts of a config that name a tensor or module of which nothing keeps its name, sorted.

    Lists of modules that a quantisation leaves alone are such. The config is copied as it is, so they go stale.
    """
    pairs = [pair for _, of_file in remapping.pieces for pair in of_file]
    gone = {module for old, new in pairs if old.name != new for module in _modules(old.name)}
    kept = {module for old, new in pairs if old.name == new for module in _modules(old.name)}
    return tuple(sorted((gone - kept).intersection(_texts(config))))


def _modules(name: str) -> Iterator[str]:
    """A tensor's name and those of the modules around it."""
    yield name
    yield from (name[:at] for at, letter in enumerate(name) if letter == ".")


def _texts(value: object) -> Iterator[str]:
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str(text):
                yield text
            case list(items):
                waiting += items
            case dict(members):
                waiting += [*members, *members.values()]


def _in_place(header: Header, pairs: tuple[tuple[Tensor, str | None], ...]) -> Target:
    pieces = tuple(Piece(new, old) for old, new in pairs if new is not None)
    unchanged = all(old.name == new for old, new in pairs)
    return Target(header.file, pieces, header.metadata, same_as=header.file if unchanged else "")


def _collisions(pairs: list[tuple[Tensor, str | None]]) -> tuple[Collision, ...]:
    origins: defaultdict[str, list[str]] = defaultdict(list)
    for old, new in pairs:
        if new is not None:
            origins[new].append(f"{old.file}: {old.name}")
    return tuple(Collision(name, tuple(places)) for name, places in sorted(origins.items()) if len(places) > 1)
