"""The figures of one sighting: the named groups of its expression, and the stage that its line shows. Pure."""

from __future__ import annotations

from casemate.doctor.log.launch import Launch, Sighting
from casemate.doctor.log.secrets import masked


def told(seen: Sighting, launch: Launch) -> str:
    """Figures and stage, secrets masked; empty where there are none."""
    return "; ".join(part for part in (figures(seen), _stage(seen, launch)) if part)


def _stage(seen: Sighting, launch: Launch) -> str:
    """Which of the failures that it explains the same line shows by its frames or stage: when it happened."""
    if seen.signature.frames is not None or seen.signature.stages:
        return ""
    same = (launch.sightings.get(id_) for id_ in seen.signature.explains)
    told = [one.signature.id for one in same if one and one.line == seen.line and one.signature.stages]
    return f"seen as {told[0]}" if told else ""


def figures(seen: Sighting) -> str:
    """The named groups of the expression, read from the line as it may be shown: a figure alone has lost its name."""
    found = seen.signature.expression.search(masked(seen.line.text))
    groups = found.groupdict() if found and seen.groups else {}
    return masked(", ".join(f"{name} {text}" for name, text in groups.items() if text))
