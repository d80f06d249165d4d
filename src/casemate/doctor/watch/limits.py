"""What limits an engine that works. Pure.

Each function looks for one thing and says how much speaks for it. The bounds are set by what things are, not by a box:
a share of a link is of what it carries on paper, of which programs reach a half to five sixths; a card's memory counter
reaches 0.5 to 0.9 when nothing but memory is at work, and stays below 0.4 under large multiplications.
"""

from __future__ import annotations

from casemate.doctor.watch.card_figures import CardFigures, Spread
from casemate.doctor.watch.evidence import Evidence, Suspect, of, plain, share
from casemate.doctor.watch.faults import A_WHOLE_CORE, computes
from casemate.doctor.watch.figures import Figures

_HARD = ("sw_thermal_slowdown", "hw_thermal_slowdown", "hw_slowdown", "hw_power_brake_slowdown")
_THROTTLED = 0.3
_SLOW_CLOCK = 0.9
_CAPPED_CLOCK = 0.65
"""Under full multiplication a card at its own power limit runs at 0.7 to 0.9 of its highest clock; that is no fault."""
_LOWERED = 0.1
_FULL = 0.9
_OFTEN_FULL = 0.75
_ROOM = 0.85
_WAITED = 0.5
_AT_TOP = 0.6
_UNEVEN = 0.12
_UNEVEN_POWER = 0.1
"""Cards that do the same work differ by up to a twelfth in power and less in the rest, and the mean by half of that."""
_STEADY = 0.8
_ABOVE_NOISE = 0.1
_LINKED = 0.3
"""Of what a link carries on paper: cards that multiply between their messages are half the time on it then."""
_TALKS = 0.05
_MOSTLY_LINK = 0.18
_MEMORY_RESTS = 0.3
_POWER_RESTS = 0.66
_FED = 0.85
LOADED = 0.9


def limits(found: Figures) -> list[Suspect]:
    """Every suspect, in the order in which they explain each other: causes first, then what is left to be bound by."""
    looks = (_throttling, _kv, _imbalance, _link, _cpu, _arithmetic, _queue, _bandwidth)
    return [suspect for look in looks if (suspect := look(found))]


def used(found: Figures) -> list[CardFigures]:
    """The cards that the engine can be on."""
    return [card for card in found.cards if card.in_use]


def busy(found: Figures) -> float | None:
    """Mean over the cards in use."""
    return _mean([card.busy for card in used(found)])


def _throttling(found: Figures) -> Suspect | None:
    slowed = [(card, why) for card in used(found) if (why := _why_slow(card))]
    if not slowed:
        return None
    card, (reason, held) = max(slowed, key=lambda pair: 1 - (pair[0].clock or 0.0))
    at = f"cards.{card.index}"
    return of(
        "throttling",
        max(0.3, 1 - (card.clock if card.clock is not None else 0.5)),
        share(f"{at}.throttle.{reason}", held, text=f"card {card.index}: {reason} held for {{}} of the time"),
        share(f"{at}.clock", card.clock, text=f"card {card.index} ran at {{}} of its highest clock"),
        plain(f"{at}.temperature_c", card.temperature_c, text=f"card {card.index} was at {{}} °C"),
        share(
            f"{at}.limit_lowered",
            card.limit_lowered or None,
            text=f"the power limit of card {card.index} is lowered by {{}}",
        ),
    )


def _why_slow(card: CardFigures) -> tuple[str, float] | None:
    """The reason that slows a card, and its share of the time."""
    clock = card.clock if card.clock is not None else 0.0
    hard = [(share_, reason) for reason, share_ in card.throttle if reason in _HARD and share_ >= _THROTTLED]
    if hard and clock < _SLOW_CLOCK:
        share_, reason = max(hard)
        return reason, share_
    capped = dict(card.throttle).get("sw_power_cap", 0.0)
    lowered = (card.limit_lowered or 0.0) >= _LOWERED and clock < _SLOW_CLOCK
    if capped >= _THROTTLED and (lowered or (card.clock is not None and clock < _CAPPED_CLOCK)):
        return "sw_power_cap", capped
    return None


def _kv(found: Figures) -> Suspect | None:
    engine = found.engine
    preempted = engine.preemptions_per_s or 0.0
    full = engine.kv_usage is not None and engine.kv_usage >= _FULL
    waits = (engine.waited or 0.0) >= _WAITED
    thrown_out = preempted > 0.02 and (engine.kv_usage is None or engine.kv_usage >= _OFTEN_FULL)
    if not (full and (waits or preempted > 0)) and not thrown_out:
        return None
    return of(
        "kv",
        0.6 + 0.2 * full + 0.2 * thrown_out,
        share("engine.kv_usage", engine.kv_usage, text="the cache is {} full"),
        plain(
            "engine.preemptions_per_s", engine.preemptions_per_s, text="{} requests a second lose their blocks again"
        ),
        plain("engine.waiting", engine.waiting, text="{} requests wait"),
        plain("engine.running", engine.running, text="{} run"),
    )


def _imbalance(found: Figures) -> Suspect | None:
    worst = max((spread for spread in found.spreads if _is_uneven(spread)), key=lambda one: one.gain, default=None)
    if worst is None:
        return None
    names = {"busy": "with a kernel", "memory_busy": "with memory at work", "power": "of the power limit"}
    shares = [
        one
        for index, value in worst.shares
        for one in share(f"cards.{index}.{worst.measure}", value, text=f"card {index}: {{}} {names[worst.measure]}")
    ]
    return of(
        "imbalance",
        2 * worst.gain,
        share(f"spreads.{worst.measure}.gain", worst.gain, text="an even spread would give back {}"),
        shares,
        share("engine.uneven_engines", found.engine.uneven_engines, text="of the engines' requests it would be {}"),
    )


def _is_uneven(spread: Spread) -> bool:
    highest = max(value for _, value in spread.shares)
    bound = _UNEVEN_POWER if spread.measure == "power" else _UNEVEN
    return spread.gain >= bound and spread.steady >= _STEADY and highest >= _ABOVE_NOISE


def _link(found: Figures) -> Suspect | None:
    """A link that is full; or cards that talk over PCIe and wait for it more than they work."""
    cards = used(found)
    fullest = max(cards, key=_fullest, default=None)
    if fullest is None:
        return None
    full = _fullest(fullest)
    if full < _LINKED and not (_no_nvlink(cards) and full >= _TALKS and all(_waits(card, full) for card in cards)):
        return None
    at = f"cards.{fullest.index}"
    return of(
        "link",
        max(0.5, 1.5 * full),
        share(f"{at}.pcie", fullest.pcie, text=f"PCIe of card {fullest.index} carries {{}} of what it can"),
        share(f"{at}.nvlink", fullest.nvlink, text=f"NVLink of card {fullest.index} carries {{}} of what it can"),
        share(f"{at}.memory_busy", fullest.memory_busy, text=f"memory of card {fullest.index} is at work for {{}}"),
        share(f"{at}.power", fullest.power, text=f"card {fullest.index} draws {{}} of its power"),
        [Evidence("cards.nvlinks_active", 0, "there is no NVLink between the cards")] if _no_nvlink(cards) else [],
    )


def _fullest(card: CardFigures) -> float:
    return max(card.pcie or 0.0, card.nvlink or 0.0)


def _waits(card: CardFigures, full: float) -> bool:
    """A kernel is always there, and neither memory nor arithmetic is much at work.

    Small messages fill no link and yet cost their latency, so the less a card draws, the less traffic is needed.
    """
    if (card.busy or 0.0) < _FED or (card.memory_busy or 0.0) >= _MEMORY_RESTS:
        return False
    return full >= _MOSTLY_LINK if card.power is None else card.power < _POWER_RESTS


def _no_nvlink(cards: list[CardFigures]) -> bool:
    return len(cards) > 1 and all(card.nvlinks_active == 0 for card in cards)


def _cpu(found: Figures) -> Suspect | None:
    engine, host = found.engine, found.host
    fed = busy(found)
    serving = max(engine.serving_cores or 0.0, host.serving_thread or 0.0)
    if fed is None:
        return _on_the_processor(found)
    hungry = fed < _FED and (engine.engaged or 0.0) >= LOADED
    if not hungry and not (serving >= A_WHOLE_CORE and fed < 0.95):
        return None
    hot = host.hottest_thread is None or host.hottest_thread >= A_WHOLE_CORE or serving >= A_WHOLE_CORE
    name = f"{host.hottest} (process {host.hottest_pid})"
    return of(
        "cpu",
        (1 - fed) * (1.0 if hot else 0.6) + 0.3 * (serving >= A_WHOLE_CORE),
        share("cards.busy", fed, text="a kernel was on the cards in {} of the time"),
        plain("engine.running", engine.running, text="although {} requests run"),
        share("engine.serving_cores", serving or None, text="the process that serves takes {} of one core"),
        share("host.hottest_thread", host.hottest_thread, text="the busiest thread takes {} of one core: " + name),
    )


def _on_the_processor(found: Figures) -> Suspect | None:
    """No card at all: the engine's own processes take the processor."""
    host = found.host
    crowded = (host.busy or 0.0) >= LOADED and bool(found.engine.loaded)
    if not host.cores or host.engine_cores is None or not (computes(host) or crowded) or found.cards_error:
        return None
    text = f"the engine's processes take {{}} of {host.cores} cores"
    hottest = "its busiest thread takes {} of one core"
    return of(
        "cpu",
        max(0.5, host.engine_cores / host.cores),
        plain("host.engine_cores", host.engine_cores, text=text),
        share("host.hottest_thread", host.hottest_thread, text=hottest),
        share("host.busy", host.busy, text="all that runs on the host takes {} of its cores"),
    )


def _queue(found: Figures) -> Suspect | None:
    engine, seats = found.engine, found.host.max_num_seqs
    at_top = engine.running_at_top or 0.0
    taken = bool(seats and engine.running and engine.running >= _FULL * seats)
    roomy = engine.kv_usage is None or engine.kv_usage < _ROOM
    if (engine.waited or 0.0) < _WAITED or not (taken or (at_top >= _AT_TOP and not seats)) or not roomy:
        return None
    return of(
        "queue",
        0.5 + 0.3 * at_top + 0.2 * taken,
        plain("engine.waiting", engine.waiting, text="{} requests wait"),
        plain("engine.running_most", engine.running_most, text="never more than {} run"),
        share("engine.running_at_top", at_top, text="and just so many in {} of the answers"),
        share("engine.kv_usage", engine.kv_usage, text="the cache is only {} full"),
        plain("engine.queue_s", engine.queue_s, text="a request waits for {} s"),
    )


def _arithmetic(found: Figures) -> Suspect | None:
    lean = _lean(found)
    if not _saturated(found) or lean is None or lean >= 0:
        return None
    return of("compute", 0.55 - lean / 4, _work(found))


def _bandwidth(found: Figures) -> Suspect | None:
    lean = _lean(found)
    if not _saturated(found) or lean is None or lean < 0:
        return None
    return of("bandwidth", 0.55 + lean / 4, _work(found))


def _saturated(found: Figures) -> bool:
    fed = busy(found)
    asked = found.engine.engaged is None or found.engine.engaged >= LOADED or (found.engine.waited or 0.0) >= 0.2
    return fed is not None and fed >= _FED and asked


def _lean(found: Figures) -> float | None:
    """Towards memory (above zero) or arithmetic (below), from what is told of the cards and the steps."""
    cards = used(found)
    memory, power = _mean([card.memory_busy for card in cards]), _mean([card.power for card in cards])
    large = found.engine.large_steps
    signs = [
        None if memory is None else 3.0 * (memory - 0.38),
        None if power is None else 2.0 * (0.64 - power),
        None if large is None else 1.5 * (0.88 - large),
    ]
    told = [sign for sign in signs if sign is not None]
    return max(-1.5, min(1.5, sum(told))) if told else None


def _work(found: Figures) -> list[Evidence]:
    cards, engine = used(found), found.engine
    return [
        *share("cards.busy", busy(found), text="a kernel was on the cards in {} of the time"),
        *share("cards.memory_busy", _mean([card.memory_busy for card in cards]), text="their memory was at work in {}"),
        *share("cards.power", _mean([card.power for card in cards]), text="they drew {} of their power limit"),
        *share("engine.large_steps", engine.large_steps, text="{} of the tokens came in steps of more than 256"),
        *plain("engine.computed_per_s", engine.computed_per_s, text="{} prompt tokens a second were computed"),
        *plain("engine.generated_per_s", engine.generated_per_s, text="{} tokens a second were generated"),
    ]


def _mean(values: list[float | None]) -> float | None:
    told = [value for value in values if value is not None]
    return sum(told) / len(told) if told else None
