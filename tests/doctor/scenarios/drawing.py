"""What variants are drawn from, and what an engine's own books say of a draw."""

from __future__ import annotations

import random

from doctor.scenarios import plant
from doctor.scenarios.pages import Instruments, World
from doctor.scenarios.plant import Card, Link
from doctor.scenarios.serving import Serving
from doctor.scenarios.values import Books, Setup, Traffic


def instruments(dice: random.Random, **fixed: object) -> Instruments:
    drawn: dict[str, object] = {
        "version": dice.choice(["0.8.5", "0.13.0", "0.26.0", "0.26.0"]),
        "interval_s": dice.choice([0.5, 1.0, 1.0, 2.0]),
        "gain": dice.uniform(0.65, 1.0),
        "pcie": dice.random() > 0.15,
        "power": dice.random() > 0.12,
        "memory": dice.random() > 0.08,
        "lost": dice.choice([0.0, 0.0, 0.0, 0.08]),
        "host": dice.random() > 0.2,
        "spinning": dice.random() > 0.3,
    }
    if not drawn["memory"]:
        drawn["power"] = True  # with neither, nobody could tell memory from arithmetic
    return Instruments(**(drawn | fixed))  # type: ignore[arg-type]  # names and types stand in the table above


def serving_on(setup: Setup, traffic: Traffic, *, dice: random.Random, limit: float = 1.0) -> Serving:
    appetite = dice.uniform(0.85, 1.3)
    made = [
        Card(setup.chip, setup.chip.limit_w * limit, air_c=dice.uniform(20, 30), appetite=appetite) for _ in setup.split
    ]
    for card in made:
        card.celsius = dice.uniform(40, 60)
    return Serving(setup, traffic, cards=made, dice=dice)


def box_of(dice: random.Random) -> dict[str, object]:
    """A card and a model that fits on it, alone or on several with a good link."""
    kind = dice.choice(["one", "one", "two", "four", "mixture", "pcie"])
    if kind == "pcie":  # no NVLink, and yet a good link: P2P over a switch, at the newest speed
        pair = Link(63e9 * dice.uniform(0.6, 0.8), dice.uniform(12e-6, 20e-6), nvlink=False, bound=63e9)
        return {
            "chip": dice.choice([plant.L40S, plant.H100_PCIE]), "model": plant.DENSE_32B,
            "split": nearly_even(dice, 2), "link": pair, "kv_tokens": dice.randint(100, 300) * 1000,
        }  # fmt: skip
    if kind == "one":
        return {"chip": dice.choice(plant.CHIPS), "model": plant.DENSE_8B, "kv_tokens": dice.randint(150, 400) * 1000}
    cards = {"two": 2, "four": 4, "mixture": 2}[kind]
    model = {"two": plant.DENSE_32B, "four": plant.DENSE_70B, "mixture": plant.MIXTURE}[kind]
    chip = dice.choice([plant.H200, plant.A100] if kind != "mixture" else [plant.H200])
    return {
        "chip": chip, "model": model, "split": nearly_even(dice, cards), "link": plant.NVLINK,
        "kv_tokens": dice.randint(300, 900) * 1000,
    }  # fmt: skip


def nearly_even(dice: random.Random, cards: int) -> tuple[float, ...]:
    return tuple(dice.uniform(0.96, 1.0) for _ in range(cards))


def share_of(world: World, name: str) -> float:
    """Of the time in which the engine worked, the share in which this was the slowest."""
    books = [serving.books for serving in world.servings]
    worked = sum(work_of(one) for one in books)
    return sum(float(getattr(one, name)) for one in books) / worked if worked else 0.0


def work_of(books: Books) -> float:
    return books.arithmetic + books.memory + books.link + books.processor + books.compiling


def idle_share(world: World) -> float:
    books = [serving.books for serving in world.servings]
    late = sum(serving.traffic.starts_s for serving in world.servings)
    return max(0.0, sum(one.nothing for one in books) - late) / (sum(one.nothing + work_of(one) for one in books) or 1)


def start(dice: random.Random) -> float:
    """When the load begins: mostly long before anybody looks, else in the midst of it."""
    return dice.choice([0.0, 0.0, 0.0, dice.uniform(6, 20)])


def turns(world: World, name: str) -> float:
    books = [serving.books for serving in world.servings]
    return sum(float(getattr(one, name)) for one in books) / max(1, sum(one.turns for one in books))


def world_of(serving: Serving, **more: object) -> World:
    return World([serving], serving.setup.link, **more)  # type: ignore[arg-type]  # fields of World


def fed(world: World) -> float:
    """Share of the time in which a kernel was resident."""
    begins = max(world.begins, *(serving.traffic.starts_s for serving in world.servings))
    spells = [spell for card in world.cards for spell in card.spells if spell.begin > begins]
    return sum(spell.resident for spell in spells) / sum(spell.end - spell.begin for spell in spells)


def full(world: World) -> float:
    states = [state for serving in world.servings for state in serving.history if state.time > world.begins]
    return sum(state.kv for state in states) / max(1, len(states))


def more_would_help(world: World) -> float:
    """How many times the tokens a second would be made with twice the seats."""
    serving = world.servings[0]
    seats = serving.setup.max_num_seqs
    one = serving.cost(0, seats, context=seats * 500).whole
    two = serving.cost(0, 2 * seats, context=2 * seats * 500).whole
    return 2 * one / two
