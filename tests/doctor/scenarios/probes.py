"""What instruments show of a simulated engine: a page of metrics, the driver's counters, the host, with faults."""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import asdict, replace

from casemate.doctor import codec
from casemate.doctor.watch import metrics
from casemate.doctor.watch.sample import CardSample, HostSample, LogSample, Sample, Use, Worker
from doctor.scenarios.pages import Instruments, World, page, state_at
from doctor.scenarios.plant import Card, Spell


def window(world: World, seen: Instruments, *, dice: random.Random) -> list[Sample]:
    """Samples of a world that has run its time."""
    samples = []
    time = world.begins
    before = time - seen.interval_s
    while time <= world.until:
        samples.append(_sample(world, seen, time=(before, time), dice=dice))
        before, time = time, time + seen.interval_s * dice.uniform(0.97, 1.06)
    return samples


def _sample(world: World, seen: Instruments, *, time: tuple[float, float], dice: random.Random) -> Sample:
    _, now = time
    text, reach = page(world, seen, now=now)
    if reach == "answered" and dice.random() < seen.lost:
        text, reach = "", "silent"
    return Sample(
        time_s=now,
        reach=reach,
        engine=metrics.engine(text) if reach == "answered" else None,
        reach_error="" if reach == "answered" else reach,
        cards=_cards(world, seen, time=time, dice=dice),
        host=_host(world, time=time, seen=seen, dice=dice) if seen.host else None,
        log=_log(world, time) if seen.log else None,
    )


def _cards(
    world: World, seen: Instruments, *, time: tuple[float, float], dice: random.Random
) -> tuple[CardSample, ...]:
    """Through the driver process's own JSON, as the product reads it."""
    told = [
        _card(card, number, seen=seen, time=time, dice=dice, world=world) for number, card in enumerate(world.cards)
    ]
    told += [_unused(len(told) + number, world.cards[0]) for number in range(world.idle_cards)]
    told += [_foreign(len(told) + number, world.cards[0], dice=dice) for number in range(world.foreign_cards)]
    line = json.dumps([asdict(card) for card in told])
    return tuple(codec.facts(CardSample, value) for value in json.loads(line))


def _unused(number: int, like: Card) -> CardSample:
    return CardSample(
        number, like.chip.name, busy=0.0, memory_busy=0.0, memory_used_bytes=600_000_000,
        memory_total_bytes=int(like.chip.memory_bytes), power_w=like.chip.idle_w, power_limit_w=like.chip.limit_w,
        power_limit_default_w=like.chip.limit_w, sm_clock_hz=like.chip.clock_mhz * 0.2e6,
        sm_clock_max_hz=like.chip.clock_mhz * 1_000_000,
    )  # fmt: skip


def _foreign(number: int, like: Card, *, dice: random.Random) -> CardSample:
    return replace(
        _unused(number, like), busy=dice.choice([1.0, 0.98, 0.4]), memory_busy=dice.uniform(0.3, 0.9),
        power_w=like.chip.limit_w * dice.uniform(0.4, 1.0), memory_used_bytes=int(like.chip.memory_bytes * 0.7),
        processes=(Use(9000 + number, "somebody", int(like.chip.memory_bytes * 0.69)),),
    )  # fmt: skip


def _card(
    card: Card, number: int, *, seen: Instruments, time: tuple[float, float], dice: random.Random, world: World
) -> CardSample:
    begin, end = time
    spells = _between(card.spells, begin, end)
    wedged = max(0.0, end - max(begin, world.wedged_at)) / (end - begin)
    spin = wedged if world.spins_when_wedged else 0.0
    busy = _mean(((spell.resident / (spell.end - spell.begin), part) for spell, part in spells), begin, end) + spin
    memory = _mean(((spell.memory / (spell.end - spell.begin), part) for spell, part in spells), begin, end)
    watts = _mean(((spell.watts, part) for spell, part in spells), begin, end)
    watts += wedged * card.chip.idle_w + spin * card.chip.spin_w
    last = spells[-1][0] if spells else None
    moved = {name: _flow(spells, name) / (end - begin) for name in ("pcie_in", "pcie_out")}
    jitter = dice.uniform(0.93, 1.07)
    shown = {
        name: round(sum(part for spell, part in spells if name in spell.reasons) / (end - begin), 3)
        for name in _reasons(spells)
    }
    total = last.nvlink_before + last.nvlink * _share(last, end) if last else card.nvlink_total
    return CardSample(
        index=number,
        name=card.chip.name,
        busy=round(min(1.0, max(0.0, busy + dice.gauss(0, 0.012))), 2),
        memory_busy=round(min(1.0, max(0.0, memory * seen.gain + dice.gauss(0, 0.015))), 2) if seen.memory else None,
        memory_used_bytes=int(card.chip.memory_bytes * 0.9),
        memory_total_bytes=int(card.chip.memory_bytes),
        pcie_received_bytes_per_s=moved["pcie_in"] * jitter if seen.pcie else None,
        pcie_sent_bytes_per_s=moved["pcie_out"] * jitter if seen.pcie else None,
        pcie_bound_bytes_per_s=63e9 if world.link.nvlink or world.link.bound > 60e9 else world.link.bound,
        nvlink_received_bytes=int(total) if world.link.nvlink else None,
        nvlink_sent_bytes=int(total) if world.link.nvlink else None,
        nvlink_bound_bytes_per_s=world.link.bound if world.link.nvlink else None,
        nvlinks_active=int(world.link.bound / 26.5e9) if world.link.nvlink else 0,
        sm_clock_hz=card.chip.clock_mhz * 1e6 * (last.clock if last else 1.0),
        sm_clock_max_hz=card.chip.clock_mhz * 1_000_000,
        power_w=watts * dice.uniform(0.98, 1.02) if seen.power else None,
        power_limit_w=card.limit_w if seen.power else None,
        power_limit_default_w=card.chip.limit_w if seen.power else None,
        temperature_c=int(last.celsius if last else card.celsius),
        throttle=tuple(sorted(shown.items())),
        processes=(Use(4000 + number, "worker", int(card.chip.memory_bytes * 0.88)),),
    )


def _reasons(spells: Iterable[tuple[Spell, float]]) -> set[str]:
    return {reason for spell, _ in spells for reason in spell.reasons}


def _between(spells: list[Spell], begin: float, end: float) -> list[tuple[Spell, float]]:
    """Those that touch a time, each with the seconds in it."""
    first = max(0, bisect_right(spells, begin, key=lambda spell: spell.end) - 1)
    found = []
    for spell in spells[first:]:
        if spell.begin >= end:
            break
        part = min(end, spell.end) - max(begin, spell.begin)
        if part > 0:
            found.append((spell, part))
    return found


def _mean(parts: Iterable[tuple[float, float]], begin: float, end: float) -> float:
    return sum(value * part for value, part in parts) / (end - begin)


def _flow(spells: Iterable[tuple[Spell, float]], name: str) -> float:
    return float(sum(getattr(spell, name) * part / (spell.end - spell.begin) for spell, part in spells))


def _share(spell: Spell, end: float) -> float:
    return min(1.0, (end - spell.begin) / (spell.end - spell.begin))


def _host(world: World, *, seen: Instruments, time: tuple[float, float], dice: random.Random) -> HostSample:
    begin, end = time
    length = end - begin
    if end > world.dies_at:
        return HostSample(cores=32, busy=dice.uniform(0.005, 0.03), compilers=0, children_cores=0.0, faults_per_s=0.0)
    workers = []
    compiling = any(state_at(serving, end).compiling for serving in world.servings)
    for number, serving in enumerate(world.servings):
        used = (
            sum(
                cpu * max(0.0, min(end, until) - max(begin, since)) / max(until - since, 1e-9)
                for since, until, cpu in serving.engine_cpu
                if until > begin and since < end
            )
            / length
        )
        stuck = end > world.wedged_at
        waits = 1.0 if (seen.spinning and (state_at(serving, end).running or stuck)) else 0.0
        hot = min(1.0, max(used + world.threads, waits if not stuck or world.spins_when_wedged else 0.02))
        serve = (serving.served(end) - serving.served(begin)) / length
        workers.append(Worker(3000 + number, "core", _near(hot, dice), _near(min(1.0, used + world.threads), dice)))
        for place, card in enumerate(world.cards):
            if any(card is own for own in serving.cards):
                spun = _near(max(hot, 0.03), dice)
                workers.append(Worker(4000 + place, "worker", spun, spun))
        workers.append(Worker(2000, "serve", _near(serve, dice), _near(min(1.0, serve), dice), serves=True))
    cores = 32
    own = sum(worker.cores for worker in workers)
    child = compiling and seen.compiler == "child"
    return HostSample(
        cores=cores,
        busy=min(1.0, (own + 2 * child) / cores + dice.uniform(0.005, 0.03)),
        workers=tuple(workers),
        compilers=int(child) * dice.randint(0, 2),
        children_cores=dice.uniform(0.3, 1.0) if child else 0.0,
        faults_per_s=dice.uniform(3e3, 3e4) if compiling else dice.uniform(0, 150),
    )


def _near(value: float, dice: random.Random) -> float:
    return round(max(0.0, value * dice.uniform(0.97, 1.02)), 2)


def _log(world: World, time: tuple[float, float]) -> LogSample:
    compiling = any(state_at(serving, time[1]).compiling for serving in world.servings)
    return LogSample(compile_lines=int(compiling), compiling=compiling, last="made-up kernel" if compiling else "")
