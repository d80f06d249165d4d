"""What a text says of one identifier that it names: the words of the readers, and nothing else. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from casemate.knowledge.gate.claims import Claim
from casemate.knowledge.gate.mentions import Mention
from casemate.knowledge.gate.relations import Link


@dataclass(frozen=True, slots=True)
class Sighting:
    """A mention with all that the text says of it.

    `claims` are names that it is given, `tactics` those that it is put under, `links` the relations whose statement is
    about it. `context` is its sentence, `before` and `after` what stands right beside it: in its line, or its key in
    JSON. `listed` are ids that stand in one list
    with it, `is_parent` whether it is only named as what stands above another.
    """

    mention: Mention
    claims: tuple[Claim, ...] = ()
    tactics: tuple[Claim, ...] = ()
    links: tuple[Link, ...] = ()
    context: str = ""
    before: str = ""
    after: str = ""
    listed: tuple[str, ...] = ()
    is_parent: bool = False


def moved(sighting: Sighting, place: Sequence[int] | None, *, by: int) -> Sighting:
    """A sighting at its place in a larger text: `place` maps offsets, where escapes moved them, and `by` is added."""

    def at(offset: int) -> int:
        return by + (place[offset] if place else offset)

    def shifted(claim: Claim) -> Claim:
        return replace(claim, start=at(claim.start), end=at(claim.end))

    mention = sighting.mention
    return replace(
        sighting,
        mention=Mention(mention.id, at(mention.start), at(mention.end)),
        claims=tuple(map(shifted, sighting.claims)),
        tactics=tuple(map(shifted, sighting.tactics)),
        links=tuple(replace(link, other=(at(link.other[0]), at(link.other[1]))) for link in sighting.links),
    )
