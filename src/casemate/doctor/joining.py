"""One card told by several sources becomes one Card: the first that knows a fact is believed. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from casemate.doctor.machine import Card

_NOT_FACTS: Final = ("index", "mig", "mig_parent", "unknown")


def joined(first: Sequence[Card], second: Sequence[Card]) -> tuple[Card, ...]:
    """The cards of `first`, filled from their like in `second`; those of `second` alone if `first` has none.

    Cards are the same by their UUID; where one source names none, by their place among the whole cards.
    """
    if not first:
        return tuple(second)
    by_uuid = {card.uuid: card for card in second if card.uuid}
    by_place = {card.index: card for card in second if not card.mig}
    found = []
    for card in first:
        there = None if card.mig else by_place.get(card.index)
        nameless = there is not None and not (card.uuid and there.uuid)
        same = by_uuid.get(card.uuid) or (there if nameless else None)
        found.append(filled(card, same) if same else card)
    return tuple(found)


def filled(card: Card, other: Card) -> Card:
    """A card with what only the other knows of it; what is known no longer stands as unknown."""
    mine = {field.name: getattr(card, field.name) for field in fields(Card) if field.name not in _NOT_FACTS}
    more: dict[str, Any] = {
        name: value
        for name, known in mine.items()
        if known in (None, "", ()) and (value := getattr(other, name)) not in (None, "", ())
    }
    parent = card.mig_parent or other.mig_parent
    unknown = tuple(pair for pair in card.unknown if pair[0] not in more)
    return replace(card, **more, mig_parent=parent, unknown=unknown)


def with_slices(cards: Sequence[Card], listed: Sequence[Card]) -> tuple[Card, ...]:
    """The cards with the profiles of their slices, which only `nvidia-smi -L` names.

    A slice of the report has its UUID or at least its place below its card; one that the report lacks is added.
    """
    found: list[Card] = []
    for card in (card for card in cards if not card.mig):
        names = [part for part in listed if part.mig and part.index == card.index]
        parts = [part for part in cards if part.mig and part.index == card.index]
        bare = replace(card, memory_total_bytes=None, memory_used_bytes=None, multiprocessors=None, mig_parent=False)
        found.append(replace(card, mig_parent=card.mig_parent or bool(names)))
        for place in range(max(len(names), len(parts))):
            part = parts[place] if place < len(parts) else replace(bare, processes=(), unknown=(), mig="unknown")
            name = names[place] if place < len(names) else part
            found.append(replace(part, mig=name.mig, uuid=name.uuid or part.uuid))
    return tuple(found)


def with_links(cards: Sequence[Card], links: Mapping[int, tuple[int, int]]) -> tuple[Card, ...]:
    """The cards with their active NVLinks and those's bytes a second, by index, where nothing is known of them yet."""
    return tuple(
        replace(card, nvlinks_active=links[card.index][0], nvlink_bytes_per_s=links[card.index][1])
        if card.index in links and card.nvlinks_active is None and not card.mig
        else card
        for card in cards
    )
