"""Whether an engine that works has room: said only where something was seen that shows it. Pure."""

from __future__ import annotations

from casemate.doctor.watch.evidence import Suspect, of, plain, share
from casemate.doctor.watch.figures import Figures
from casemate.doctor.watch.limits import LOADED, busy


def light(found: Figures) -> Suspect | None:
    """Requests come and go, and nobody waits."""
    engine = found.engine
    if engine.engaged is None or engine.engaged >= LOADED or (engine.waited or 0.0) >= 0.2:
        return None
    return of(
        "light",
        1 - engine.engaged,
        share("engine.engaged", engine.engaged, text="requests were there in {} of the answers"),
        share("engine.waited", engine.waited, text="somebody waited in {} of them"),
    )


def room(found: Figures) -> Suspect | None:
    """Requests are always there and tokens move, and what they run on was seen and has room."""
    engine, fed = found.engine, busy(found)
    moves = (engine.generated_per_s or 0.0) > 0 or (engine.prompt_per_s or 0.0) > 0
    if not engine.loaded or not moves or (fed is None and (found.host.busy is None or found.host.busy >= LOADED)):
        return None
    return of(
        "light",
        0.5,
        share("cards.busy", fed, text="a kernel was on the cards in {} of the time"),
        share("host.busy", found.host.busy, text="the host's cores were busy for {} of it"),
        plain("engine.generated_per_s", engine.generated_per_s, text="{} tokens a second were generated"),
    )
