"""One scenario for each thing that can limit an engine, in as many variants as there are seeds.

A variant is drawn from a range of cards, models, loads and instruments, and is only taken if the engine's own books
show that it is what its name says; whoever judges sees the samples alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from casemate.doctor.watch.sample import Sample
from doctor.scenarios import plant
from doctor.scenarios.drawing import (
    box_of,
    fed,
    full,
    idle_share,
    instruments,
    more_would_help,
    nearly_even,
    serving_on,
    share_of,
    start,
    turns,
    world_of,
)
from doctor.scenarios.pages import Instruments, World
from doctor.scenarios.plant import Link
from doctor.scenarios.probes import window
from doctor.scenarios.values import Setup, Traffic

_TRIES = 40


@dataclass(frozen=True, slots=True)
class Variant:
    """A scenario as it was drawn: its name, its seed, what was seen."""

    name: str
    seed: int
    samples: tuple[Sample, ...]


def tuned(count: int) -> range:
    """Seeds that the judgement was tuned on."""
    return range(0, 2 * count, 2)


def held_back(count: int) -> range:
    """Seeds that nobody looked at before the judgement was done."""
    return range(1001, 1001 + 2 * count, 2)


def variant(name: str, seed: int) -> Variant:
    """The first draw of a seed that is what its name says."""
    dice = random.Random(f"{name} {seed}")
    for _ in range(_TRIES):
        world, seen, right = SCENARIOS[name](dice)
        for serving in world.servings:
            serving.run(world.until)
        if right(world):
            return Variant(name, seed, tuple(window(_among_others(world, seen, dice=dice), seen, dice=dice)))
    raise AssertionError(f"no draw of {name} {seed} was what its name says")


def _among_others(world: World, seen: Instruments, *, dice: random.Random) -> World:
    """What is beside the point: idle cards, cards of somebody else, an engine that was started anew some time ago."""
    world.idle_cards = dice.choice([0, 0, 1])
    if seen.host:  # without it nobody could know whose cards those are
        world.foreign_cards = dice.choice([0, 0, 1])
    if dice.random() < 0.15:
        world.reset_at = dice.uniform(world.begins + 1, min(world.until, world.wedged_at, world.dies_at))
    return world


Drawn = tuple[World, Instruments, Callable[[World], bool]]


def compute(dice: random.Random) -> Drawn:
    """Long prompts, short answers, more than the cards can multiply."""
    seats = dice.choice([256, 256, 16, 8])
    setup = Setup(**box_of(dice), budget=dice.choice([2048, 4096, 8192]), max_num_seqs=seats)  # type: ignore[arg-type]  # drawn from a table
    traffic = Traffic(
        dice.randint(1200, 6000), dice.randint(8, 80), users=dice.randint(8, 60), cached=dice.choice([0, 0, 0.2, 0.5]),
        starts_s=start(dice),
    )  # fmt: skip
    world = world_of(serving_on(setup, traffic, dice=dice))
    return (
        world,
        instruments(dice),
        lambda it: share_of(it, "arithmetic") > 0.85 and idle_share(it) < 0.05 and turns(it, "no_room") < 0.3,
    )


def bandwidth(dice: random.Random) -> Drawn:
    """Long answers to short prompts: every token reads the weights and all that was said before."""
    setup = Setup(**box_of(dice))  # type: ignore[arg-type]  # drawn from a table
    traffic = Traffic(
        dice.randint(100, 900), dice.randint(250, 1500), users=dice.choice([1, 2, 4, 8, 16, 32, 64, 100]), spread=0.3,
        starts_s=start(dice),
    )  # fmt: skip
    world = world_of(serving_on(setup, traffic, dice=dice))
    return (
        world,
        instruments(dice),
        lambda it: share_of(it, "memory") > 0.85 and idle_share(it) < 0.05 and turns(it, "no_room") < 0.02,
    )


def kv(dice: random.Random) -> Drawn:
    """More conversations than the cache has blocks for."""
    box = box_of(dice) | {"kv_tokens": dice.randint(20, 60) * 1000}
    setup = Setup(**box)  # type: ignore[arg-type]  # drawn from a table
    output = dice.randint(600, 2000)
    users = int(setup.kv_tokens / (output * 0.6) * dice.uniform(1.8, 5))
    traffic = Traffic(dice.randint(100, 600), output, users=users)
    world = world_of(serving_on(setup, traffic, dice=dice), begins=10.0, until=50.0)
    return (
        world,
        instruments(dice),
        lambda it: turns(it, "no_room") > 0.5 and share_of(it, "arithmetic") < 0.5 and full(it) > 0.9,
    )


def queue(dice: random.Random) -> Drawn:
    """Everybody waits for one of few seats, although cache and cards have room."""
    setup = Setup(**box_of(dice), max_num_seqs=dice.choice([1, 2, 4, 8, 16, 24]))  # type: ignore[arg-type]  # drawn from a table
    users = int(setup.max_num_seqs * dice.uniform(2.5, 6)) + 3
    traffic = Traffic(dice.randint(100, 700), dice.randint(150, 600), users=users, starts_s=start(dice))
    world = world_of(serving_on(setup, traffic, dice=dice))
    return (
        world,
        instruments(dice),
        lambda it: (
            full(it) < 0.6 and idle_share(it) < 0.1 and share_of(it, "memory") > 0.6 and more_would_help(it) > 1.3
        ),
    )


def cpu(dice: random.Random) -> Drawn:
    """The processor cannot feed the cards: steps cost it more than them, or serving takes a whole core."""
    small = {"chip": dice.choice(plant.CHIPS), "model": dice.choice([plant.SMALL_1B, plant.SMALL_1B, plant.DENSE_8B])}
    users = dice.randint(60, 220)
    traffic = Traffic(dice.randint(80, 300), dice.randint(100, 400), users=users, starts_s=start(dice))
    if dice.random() < 0.5:
        setup = Setup(**small, step_cpu_s=dice.uniform(0.01, 0.035), sequence_cpu_s=dice.uniform(20e-6, 120e-6),  # type: ignore[arg-type]  # drawn from a table
                      overlap=dice.random() < 0.6)  # fmt: skip
    else:
        setup = Setup(**small, serve_token_s=dice.uniform(100e-6, 300e-6))  # type: ignore[arg-type]  # drawn from a table
    world = world_of(serving_on(setup, traffic, dice=dice))
    seen = instruments(dice, answer_s=10.0)
    if seen.version == "0.8.5":  # it tells nothing of the process that serves: somebody must
        seen = replace(seen, host=True)
    return world, seen, lambda it: fed(it) < 0.75


def link(dice: random.Random) -> Drawn:
    """Several cards that talk over too little, or weights that come from the host in every step."""
    kind = dice.choice(["pcie", "pcie", "offload", "few links"])
    traffic = Traffic(dice.randint(1000, 6000), dice.randint(20, 200), users=dice.randint(12, 50))
    box: dict[str, object] = {"chip": plant.L40S, "model": plant.DENSE_32B, "kv_tokens": 200_000}
    if kind == "pcie":
        cards = dice.choice([2, 4])
        lanes = dice.choice([31.5e9, 15.75e9])
        pair = Link(lanes * dice.uniform(0.4, 0.75), dice.uniform(20e-6, 50e-6), nvlink=False, bound=lanes)
        box |= {"chip": dice.choice([plant.L40S, plant.H100_PCIE]), "split": nearly_even(dice, cards), "link": pair}
    elif kind == "few links":
        pair = Link(53e9 * dice.uniform(0.5, 0.75), 30e-6, nvlink=True, bound=53e9)
        box |= {"chip": plant.H200, "model": plant.DENSE_70B, "split": nearly_even(dice, 4), "link": pair}
    else:
        traffic = Traffic(dice.randint(100, 400), dice.randint(100, 400), users=dice.randint(2, 24))
        box |= {"offloaded_bytes": dice.uniform(3e9, 12e9), "host_bytes_per_s": dice.uniform(40e9, 52e9)}
    world = world_of(serving_on(Setup(**box), traffic, dice=dice))  # type: ignore[arg-type]  # drawn from a table
    return (
        world,
        instruments(dice, pcie=True),
        lambda it: share_of(it, "link") > 0.8 and idle_share(it) < 0.05 and turns(it, "no_room") < 0.3,
    )


def imbalance(dice: random.Random) -> Drawn:
    """One card does more than its part, and the others wait for it; or a router that favours one engine."""
    if dice.random() < 0.35:
        return _favoured(dice)
    cards = dice.choice([2, 4])
    split = [dice.uniform(0.35, 0.68) for _ in range(cards)]
    split[dice.randrange(cards)] = 1.0
    chip, model = (plant.H200, plant.MIXTURE) if cards == 2 else (plant.A100, plant.DENSE_70B)
    setup = Setup(chip, model, tuple(split), plant.NVLINK, kv_tokens=600_000, stages=dice.choice([1, 1, cards]))
    long = dice.random() < 0.5
    traffic = (
        Traffic(dice.randint(1500, 5000), 40, users=40) if long else Traffic(300, 800, users=dice.choice([8, 24, 48]))
    )
    world = world_of(serving_on(setup, traffic, dice=dice))
    return world, instruments(dice), lambda it: (
        idle_share(it) < 0.05 and share_of(it, "arithmetic") + share_of(it, "memory") > 0.9
        and turns(it, "at_cap") < 0.2 and turns(it, "no_room") < 0.2
    )  # fmt: skip


def _favoured(dice: random.Random) -> Drawn:
    chip = dice.choice(plant.CHIPS)
    users = [dice.randint(20, 60), *(dice.choice([0, 1]) for _ in range(dice.choice([1, 2, 3])))]
    dice.shuffle(users)
    servings = []
    for count in users:
        setup = Setup(chip, plant.DENSE_8B, kv_tokens=200_000)
        traffic = Traffic(300, 400, users=count, think_s=0.0 if count > 1 else 2.0)
        servings.append(serving_on(setup, traffic, dice=dice))
    world = World(servings, plant.NO_LINK)
    return world, instruments(dice), lambda it: turns(it, "no_room") < 0.2


def jit(dice: random.Random) -> Drawn:
    """An engine that is young: every new shape of work is compiled first, and everybody waits."""
    setup = Setup(**box_of(dice), compile_s=dice.uniform(2, 14))  # type: ignore[arg-type]  # drawn from a table
    traffic = Traffic(
        dice.randint(300, 1500), dice.randint(60, 200), users=dice.randint(4, 40), starts_s=dice.uniform(2, 6)
    )
    how = dice.choice(["child", "child", "inside", "log"])
    seen = instruments(dice, compiler=how, log=how == "log", host=how != "log" or dice.random() < 0.5)
    world = world_of(serving_on(setup, traffic, dice=dice), begins=3.0, until=dice.choice([25.0, 40.0]))
    return world, seen, lambda it: share_of(it, "compiling") > 0.5


def throttling(dice: random.Random) -> Drawn:
    """Hot air, a lowered limit or a weak supply: the clock goes down under load."""
    how = dice.choice(["heat", "heat", "limit", "brake"])
    box = box_of(dice)
    setup = Setup(**box)  # type: ignore[arg-type]  # drawn from a table
    traffic = Traffic(dice.randint(1500, 5000), dice.randint(20, 100), users=dice.randint(16, 50))
    limit = dice.uniform(0.4, 0.55) if how == "limit" else 1.0
    serving = serving_on(setup, traffic, dice=dice, limit=limit)
    sick = serving.cards if dice.random() < 0.5 else serving.cards[:1]
    for card in sick if how != "limit" else ():
        if how == "brake":
            card.brake = dice.uniform(0.35, 0.6)
        else:
            card.air_c, card.celsius = dice.uniform(34, 45), 85.0
            card.cooling = dice.uniform(68, 110) / card.chip.limit_w
    return world_of(serving), instruments(dice), lambda it: (
        min(card.spells[-1].clock for card in it.cards) < 0.8 and turns(it, "no_room") < 0.3 and idle_share(it) < 0.1
        and share_of(it, "arithmetic") > 0.5
    )  # fmt: skip


def idle(dice: random.Random) -> Drawn:
    """Nobody asks."""
    setup = Setup(**box_of(dice))  # type: ignore[arg-type]  # drawn from a table
    world = world_of(serving_on(setup, Traffic(100, 100), dice=dice))
    return world, instruments(dice), lambda it: idle_share(it) == 1


def light(dice: random.Random) -> Drawn:
    """Some ask now and then, and get their answer at once: nothing limits anybody."""
    setup = Setup(**box_of(dice))  # type: ignore[arg-type]  # drawn from a table
    traffic = Traffic(dice.randint(100, 600), dice.randint(20, 120), rate=dice.uniform(0.1, 1.5))
    world = world_of(serving_on(setup, traffic, dice=dice))
    return world, instruments(dice), lambda it: 0.2 < idle_share(it) < 0.97 and it.servings[0].state.finished > 3


def wedged(dice: random.Random) -> Drawn:
    """The engine stops in the midst of its work, and its server goes on answering."""
    name = dice.choice(["bandwidth", "compute"])
    world, seen, _ = SCENARIOS[name](dice)
    at = dice.uniform(6, 12)
    world.wedged_at, world.until = at, at + dice.uniform(33, 40)
    world.spins_when_wedged = dice.random() < 0.6
    for serving in world.servings:
        serving.wedged_at = at
    return world, replace(seen, log=dice.random() < 0.3), lambda it: it.servings[0].state.running > 0


def dead(dice: random.Random) -> Drawn:
    """The process is gone: from the beginning, or in the midst of its work."""
    world, seen, _ = SCENARIOS[dice.choice(["bandwidth", "compute", "light"])](dice)
    world.dies_at = world.wedged_at = dice.choice([0.0, dice.uniform(8, 30)])
    world.spins_when_wedged = False
    for serving in world.servings:
        serving.wedged_at = world.dies_at
    return world, seen, lambda _: True


SCENARIOS: dict[str, Callable[[random.Random], Drawn]] = {
    one.__name__: one
    for one in (
        compute, bandwidth, kv, queue, cpu, link, imbalance, jit, throttling, light, idle, wedged, dead,
    )
}  # fmt: skip
