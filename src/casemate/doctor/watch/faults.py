"""Whether the engine works at all: dead, wedged, compiling, idle. Pure.

The bound of 30 s without a token is that of supervisors in the field. A prefill may take longer and count nothing, but
it keeps the cards at work or fills the cache, and neither is standing still.
"""

from __future__ import annotations

from collections.abc import Iterable

from casemate.doctor.watch.card_figures import CardFigures
from casemate.doctor.watch.engine_figures import EngineFigures
from casemate.doctor.watch.evidence import Evidence, Suspect, of, plain, share
from casemate.doctor.watch.figures import Figures
from casemate.doctor.watch.host_figures import HostFigures

WEDGED_S = 30.0
_STALLED_S = 5.0
_STALLED = 0.3
_REFUSED = 2
"""One refusal may be a full queue of connections."""
_MEMORY_WORKS = 0.15
_POWER_WORKS = 0.5
"""A kernel that only waits for another card touches no memory and draws a quarter to a third of the limit."""
_COMPILES = 0.2
_FAULTS_PER_S = 1000.0
"""A thread that spins touches no new page; a compiler inside the process touches thousands a second."""
_LOADED = 0.02
A_WHOLE_CORE = 0.9
ALL_CORES = 0.8
_ITS_PART = 0.2
"""Of a core: what others leave an engine on a host whose cores are all taken; one that waits takes none."""


def fault(found: Figures) -> Suspect | None:
    """The fault, if there is one; who is dead, wedged or compiling has no other bottleneck."""
    return _dead(found) or _silent(found) or _standing(found)


def idle(found: Figures) -> Suspect | None:
    """Nobody asks; or somebody did, and the engine compiles before it takes note of him."""
    engine = found.engine
    if not rests(engine):
        return None
    shown = share("engine.loaded", engine.loaded, text="requests were there in {} of the answers")
    if compiles(found.host):  # the engine tells what it has when a step ends, and its first step has not ended
        return of("jit", 0.7, shown, _compiled(found.host))
    return of("idle", 1.0, shown)


def rests(engine: EngineFigures) -> bool:
    """Whether it told that nobody asks it."""
    return engine.loaded is not None and engine.loaded <= _LOADED and not (engine.generated_per_s or 0.0) > 0


def computes(host: HostFigures) -> bool:
    """Whether the engine's own processes take all the processor, or its threads a whole core each."""
    all_cores = bool(host.cores) and (host.engine_cores or 0.0) >= ALL_CORES * (host.cores or 0)
    return all_cores or (host.engine_cores is not None and (host.hottest_thread or 0.0) >= A_WHOLE_CORE)


def compiles(host: HostFigures) -> bool:
    """Whether anything told of a compiler in the time that the figures cover."""
    return (host.compiling or 0.0) >= _COMPILES or (host.faults_per_s or 0.0) >= _FAULTS_PER_S


def at_work(cards: Iterable[CardFigures]) -> bool:
    """Whether any card did more than wait."""
    return any(
        (card.memory_busy or 0.0) >= _MEMORY_WORKS or (card.power or 0.0) >= _POWER_WORKS
        for card in cards
        if card.in_use
    )


def _dead(found: Figures) -> Suspect | None:
    if found.refused_at_end < min(_REFUSED, found.samples) or not found.refused_at_end:
        return None
    lasting = plain("refused_at_end", found.refused_at_end, text="the last {} connections were refused")
    before = plain("answered", found.answered, text="{} answers came before that") if found.answered else []
    return of("dead", 1.0, lasting, before)


def _silent(found: Figures) -> Suspect | None:
    if found.silent_at_end_s < WEDGED_S:
        return None
    text = "it takes connections and has answered nothing for {} s"
    return of("wedged", 1.0, plain("silent_at_end_s", found.silent_at_end_s, text=text))


def _standing(found: Figures) -> Suspect | None:
    """Requests are there, and neither tokens in nor tokens out move."""
    engine = found.engine
    standing = engine.still_s >= _STALLED_S or engine.stalled >= _STALLED
    if not standing or at_work(found.stall_cards) or _on_the_processor(found):
        return None
    if compiles(found.stall_host):
        return of("jit", 0.6 + 0.4 * engine.stalled, _stood(found), _compiled(found.stall_host), _resting(found))
    if engine.still_s >= WEDGED_S:
        return of("wedged", 1.0, _stood(found), _resting(found), _nobody_compiles(found.stall_host))
    if engine.still_s >= _STALLED_S:
        return of("stalled", 0.5, _stood(found), _resting(found))
    return None


def _on_the_processor(found: Figures) -> bool:
    """An engine without a card that computes: llama.cpp counts a prompt when it is read, a token when it is out.

    vLLM's processes spin while they wait for each other, so a busy core tells nothing of them.
    """
    on_cards = any(card.in_use for card in found.stall_cards)
    host = found.stall_host
    crowded = (host.busy or 0.0) >= A_WHOLE_CORE and (host.engine_cores or 0.0) >= _ITS_PART
    return found.engine.kind == "llamacpp" and not on_cards and (computes(host) or crowded)


def _stood(found: Figures) -> list[Evidence]:
    engine = found.engine
    return [
        *share(
            "engine.stalled", engine.stalled, text="no token in or out in {} of the time in which requests were there"
        ),
        *plain("engine.still_s", engine.still_s or None, text="none for {} s up to now"),
        *plain("engine.running", engine.running, text="{} requests run"),
    ]


def _resting(found: Figures) -> list[Evidence]:
    cards = [card for card in found.stall_cards if card.in_use]
    evidence: list[Evidence] = []
    for card in cards:
        memory = f"stall_cards.{card.index}.memory_busy"
        evidence += share(memory, card.memory_busy, text=f"memory of card {card.index} at work for {{}} of that time")
    return evidence


def _compiled(host: HostFigures) -> list[Evidence]:
    last = f" ({host.last_compile[:80]})" if host.last_compile else ""
    return [
        *share(
            "stall_host.compiling", host.compiling or None, text="a compiler was seen in {} of that time" + _safe(last)
        ),
        *plain("stall_host.faults_per_s", host.faults_per_s, text="the engine touched {} new pages a second"),
    ]


def _nobody_compiles(host: HostFigures) -> list[Evidence]:
    return share("stall_host.compiling", host.compiling, text="a compiler was seen in {} of that time")


def _safe(text: str) -> str:
    """A text that may hold braces, for a format."""
    return text.replace("{", "{{").replace("}", "}}")
