"""Plans, and how they are served, for the tests of commands and unit files."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.machine import Card, Machine, Pair, Surroundings
from casemate.engine.flags.table import recorded
from casemate.plan import catalogue, planner
from casemate.plan.argv import Serving, argv
from casemate.plan.decision import CardsPlan, Intent
from casemate.plan.dialect import dialect
from casemate.plan.environment import environment, is_subset, used_cards
from casemate.plan.recipe.flags import FlagTable
from casemate.plan.units.deployment import Deployment
from plan import shapes

VERSIONS = ("0.20.0", "0.26.0", "0.28.0", "0.33.0")
CHIPS = catalogue.chips((resources.files("casemate.plan") / "cards.tsv").read_text(encoding="utf-8"))
MODELS: dict[str, dict[str, Any]] = {
    "v4": shapes.V4,
    "v4-dspark": shapes.V4_DSPARK,
    "v3": shapes.V3,
    "llama-8b": shapes.LLAMA_8B,
    "llama-70b": shapes.LLAMA_70B,
    "qwen3-235b": shapes.QWEN3_235B_FP8,
    "gpt-oss": shapes.GPT_OSS_120B,
    "qwen3-next": shapes.QWEN3_NEXT,
}
CASES = (
    ("v4", "2xH20-96GB"), ("v4-dspark", "4xH200"), ("v3", "8xH200"), ("llama-8b", "1xL40S"), ("llama-8b", "2x4090"),
    ("llama-70b", "4xH100"), ("qwen3-235b", "8xH20-96GB"), ("gpt-oss", "4xH100"), ("qwen3-next", "2xH20-96GB"),
)  # fmt: skip
"""Models on boxes that hold them."""


@cache
def named(gpus: str, **surroundings: Any) -> Machine:
    """A machine with cards of that name; they have UUIDs, as real ones do."""
    machine = catalogue.machine_of(gpus, CHIPS)
    cards = tuple(replace(card, uuid=f"GPU-0000000{card.index}-aaaa-bbbb-cccc-dddddddddddd") for card in machine.cards)
    around = replace(machine.surroundings, **surroundings)
    return replace(machine, cards=cards, surroundings=around)


def sliced() -> Machine:
    """One H100 in two slices of unlike size; each has a UUID, and both the number of their parent."""
    parent = Card(0, "card", uuid="GPU-parent", mig_parent=True, compute_capability=(9, 0))
    sizes = ((1, "1g.20gb"), (3, "3g.40gb"))
    slices = tuple(
        Card(0, "card", uuid=f"MIG-{units}", mig=mig, memory_total_bytes=units * (13 << 30), compute_capability=(9, 0))
        for units, mig in sizes
    )
    room = 256 << 30
    return Machine(16, room, room, room, "Linux", "x86_64", cards=(parent, *slices))


def redirected() -> Machine:
    """Two cards below PCIe bridges that send their traffic up, which the driver does not tell."""
    machine = named("2xL40S", acs_redirect=True)
    return replace(machine, pairs=(Pair(0, 1, "PHB", peer_access=True),))


def planned(name: str, machine: Machine, version: str, **intent: Any) -> CardsPlan | None:
    """A plan for one of the models, None where it is refused."""
    return _planned(name, machine, version, Intent(**{"context": 0, "concurrency": 2, **intent}))


@cache
def _planned(name: str, machine: Machine, version: str, intent: Intent) -> CardsPlan | None:
    found = planner.plan(machine, checkpoint(name), intent=intent, engine_version=version)
    return found if isinstance(found, CardsPlan) else None


@cache
def table(version: str) -> FlagTable:
    """The flags of a version."""
    return recorded().table(version)


@cache
def checkpoint(name: str) -> Checkpoint:
    """One of the models."""
    return shapes.read(MODELS[name], name)


def serving(name: str, version: str, **more: Any) -> Serving:
    """How one of the models is served by a version."""
    flags = table(version)
    values = {"folder": f"/models/{name}", "port": 8000, "served_name": name, **more}
    return Serving(flags, dialect(checkpoint(name), flags), **values)


def deployed(name: str, gpus: str, version: str = "0.33.0", **intent: Any) -> Deployment:
    """A planned launch that can be written down; one that does not fit fails the test."""
    machine = named(gpus)
    plan = planned(name, machine, version, **intent)
    assert plan is not None, f"{name} on {gpus}"
    served = serving(name, version)
    used = used_cards(plan, machine)
    return Deployment(
        words=argv(plan, served),
        variables=environment(plan, served, machine=machine),
        engine_version=version,
        folder=served.folder,
        port=served.port,
        served_name=name,
        card_ids=tuple(card.uuid for card in used) if is_subset(plan, machine) else (),
        cards=len(plan.cards),
        nodes=plan.nodes,
        switched=bool(machine.surroundings.nvswitch),
    )


BARE = Surroundings()
