"""Whether the hardware is well: memory errors, heat, power, throttling. A board's matter, not a slice's."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.doctor.checks.check import Check, Question, boards, listed, missing, reason
from casemate.doctor.machine import Card, Machine

_NEAR_C = 5
"""A card this close to the temperature where it slows down counts as hot."""

_HARMLESS = frozenset({"idle", "gpu_idle", "none", "sw_power_cap"})
_IN_STEP = "sync_boost"
_HARDWARE = ("hw", "thermal", "brake")

ECC = Question("health.ecc", "Memory errors", "nvidia-smi -q -d ECC")
ROWS = Question("health.remapped-rows", "Row remapping", "nvidia-smi -q -d ROW_REMAPPER")
_THROTTLE = Question("health.throttle", "Clocks are not held back", "nvidia-smi -q -d PERFORMANCE")
_HEAT = Question("health.temperature", "Temperature", "nvidia-smi -q -d TEMPERATURE")
_POWER = Question(
    "health.power-limit",
    "Power limit",
    "nvidia-smi --query-gpu=index,power.limit,power.default_limit,power.draw --format=csv",
)


def checks(machine: Machine) -> Iterator[Check]:
    """The checks of this theme."""
    if cards := boards(machine):
        yield ecc(cards)
        yield rows(cards)
        yield _throttle(cards)
        yield _temperature(cards)
        yield _power_limit(cards)


def ecc(cards: tuple[Card, ...]) -> Check:
    """Errors that the memory could not correct since the last reset."""
    if broken := tuple(card for card in cards if card.ecc_uncorrected):
        return ECC.fail(
            listed(broken, lambda card: f"{card.ecc_uncorrected} uncorrected"),
            why="Memory gave wrong data that could not be corrected: a process that met it was killed or computed "
            "nonsense. No flag of an engine changes that.",
            remedy="reset the card (`nvidia-smi -r -i INDEX` while nothing uses it) and watch; if it comes back, run "
            "`dcgmi diag -r 3` and have the card replaced",
        )
    if off := tuple(card for card in cards if card.ecc_enabled is False):
        return ECC.warn(
            listed(off, lambda _: "ECC is off"),
            why="Errors of the memory go unseen, into answers.",
            remedy="`nvidia-smi -i INDEX -e 1` and a reset; cards with GDDR memory lose some of it and some bandwidth",
        )
    if blind := tuple(card for card in cards if card.ecc_enabled is None or card.ecc_uncorrected is None):
        return ECC.unknown(
            missing(blind, "ecc_enabled", "ecc_uncorrected"), remedy="nothing to do where the card has no ECC"
        )
    return ECC.ok("none uncorrected")


def rows(cards: tuple[Card, ...]) -> Check:
    """Memory rows that were replaced, are to be, or could not be."""
    if failed := tuple(card for card in cards if card.remapped_rows_failed):
        return ROWS.fail(
            listed(failed, lambda _: "a row could not be replaced"),
            why="The card has no spare rows left for a broken one: it is at the end of its life.",
            remedy="take it out of service and have it replaced (NVIDIA, GPU Memory Error Management)",
        )
    if pending := tuple(card for card in cards if card.remapped_rows_pending):
        return ROWS.warn(
            listed(pending, lambda _: "a row waits to be replaced"),
            why="A broken memory row is known and will be replaced by a spare one at the next reset.",
            remedy="stop what uses the card, then `nvidia-smi -r -i INDEX`, or reboot",
        )
    facts = ("remapped_rows_pending", "remapped_rows_failed")
    if blind := tuple(c for c in cards if c.remapped_rows_pending is None or c.remapped_rows_failed is None):
        return ROWS.unknown(missing(blind, *facts), remedy="nothing to do on cards before Ampere, and with GDDR memory")
    return ROWS.ok("none pending, none failed")


def _throttle(cards: tuple[Card, ...]) -> Check:
    held = tuple(card for card in cards if set(_reasons(card)) - _HARMLESS)
    if hard := tuple(card for card in held if any(word in why for why in _reasons(card) for word in _HARDWARE)):
        return _THROTTLE.warn(
            listed(hard, lambda card: ", ".join(card.throttle)),
            why="The hardware slows the card down because of heat or of its power supply: every figure of speed falls.",
            remedy="look at air flow, fans, room temperature, and the power cables of the card",
        )
    if held and all(set(_reasons(card)) <= _HARMLESS | {_IN_STEP} for card in cards):
        return _THROTTLE.warn(
            listed(held, lambda card: ", ".join(card.throttle)),
            why="The cards are in one group of sync boost: each is held to the clock of the slowest of them.",
            remedy="find what slows that one (heat, power), or dissolve the group in DCGM "
            "(`dcgmi config --set --syncboost 0`)",
        )
    if held:
        return _THROTTLE.warn(
            listed(held, lambda card: ", ".join(card.throttle)),
            why="Somebody set the clocks lower than the card could go.",
            remedy="`nvidia-smi -rgc` and `nvidia-smi -rac` as root set them back",
        )
    if blind := tuple(card for card in cards if reason(card.unknown, "throttle")):
        return _THROTTLE.unknown(missing(blind, "throttle"), remedy="ask the driver by the command below")
    if any("sw_power_cap" in _reasons(card) for card in cards):
        return _THROTTLE.ok("at the power limit", "A card under full load is held by its power limit; that is normal.")
    return _THROTTLE.ok("no reason active")


def _reasons(card: Card) -> tuple[str, ...]:
    return tuple(words.strip().lower().replace(" ", "_") for words in card.throttle)


def _temperature(cards: tuple[Card, ...]) -> Check:
    told = listed(
        cards, lambda card: f"{_degrees(card.temperature_c)}, slows at {_degrees(card.temperature_slowdown_c)}"
    )
    near = tuple(card for card in cards if (room := _room(card)) is not None and room <= _NEAR_C)
    if near:
        return _HEAT.warn(
            told,
            why=f"Within {_NEAR_C} degrees of the temperature where the card slows down by itself.",
            remedy="look at air flow and fans before a long run",
        )
    if blind := tuple(card for card in cards if _room(card) is None):
        return _HEAT.unknown(missing(blind, "temperature_c", "temperature_slowdown_c"), remedy="watch it under load")
    return _HEAT.ok(told)


def _room(card: Card) -> int | None:
    if card.temperature_c is None or card.temperature_slowdown_c is None:
        return None
    return card.temperature_slowdown_c - card.temperature_c


def _power_limit(cards: tuple[Card, ...]) -> Check:
    told = listed(cards, lambda card: f"{_watts(card.power_limit_w)} of {_watts(card.power_limit_default_w)}")
    if any(_lowered(card) for card in cards):
        return _POWER.warn(
            told,
            why="The limit was set below the card's default: long prompts, which compute, get slower first.",
            remedy="`nvidia-smi -i INDEX -pl WATTS` as root, if cooling and supply allow it",
        )
    if blind := tuple(card for card in cards if card.power_limit_w is None or card.power_limit_default_w is None):
        return _POWER.unknown(missing(blind, "power_limit_w", "power_limit_default_w"), remedy="ask the host of a VM")
    return _POWER.ok(told)


def _lowered(card: Card) -> bool:
    limit, default = card.power_limit_w, card.power_limit_default_w
    return limit is not None and default is not None and limit < default - 1


def _degrees(degrees: int | None) -> str:
    return "unknown" if degrees is None else f"{degrees} °C"


def _watts(watts: float | None) -> str:
    return "unknown" if watts is None else f"{watts:.0f} W"
