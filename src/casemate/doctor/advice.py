"""Which engine to install on a machine: an install lock with digests, or what to do instead. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from casemate.doctor.checks.cards import LOWEST_CAPABILITY, strange, uncounted
from casemate.doctor.checks.check import dotted, usable
from casemate.doctor.engines import ENGINE, Version, Wheel, flavour, order, runs, version
from casemate.doctor.machine import Card, Machine

_CPU = "run the CPU engine (llama.cpp): `casemate up`"
_PYTHON = (3, 12)
"""What an environment of its own is made with where the Python at hand does not suit the wheels."""

_COVERED = (
    "the lock pins the engine, torch and their family by digest; what else they need is resolved by uv when it "
    "installs (`uv pip freeze` then writes it down), and uv must be there: https://docs.astral.sh/uv/"
)
_DEFAULT_ORIGIN_FROM = 13
"""CUDA major whose builds lie on the package index; older ones need their own index for torch (`--torch-backend`)."""


@dataclass(frozen=True, slots=True)
class Install:
    """An engine that fits.

    Attributes:
        release: of the engine.
        cuda: what it is built for.
        python: the Python to make the environment with.
        lock: requirements with digests, one a line; a digest that nobody told is left out, and `notes` says so.
        command: makes the environment and installs the lock, which was saved as `engine.lock`.
        reasons: why this one.
        notes: what is worth knowing, such as a newer release that this driver keeps away.
        sources: the pages that publish the versions and digests, and when they were read.
    """

    release: str
    cuda: Version
    python: Version
    lock: tuple[str, ...]
    command: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Instead:
    """No engine for cards fits: what to do, and why."""

    what: Literal["cpu", "driver", "measure"]
    remedy: str
    reasons: tuple[str, ...]


Advice = Install | Instead


def advise(machine: Machine, wheels: tuple[Wheel, ...]) -> Advice:
    """The newest engine whose build this driver runs and whose own digest is known, for the Python at hand.

    Args:
        machine: its facts.
        wheels: what exists (`engines.parsed`).
    """
    if refused := _hardware(machine):
        return refused
    offers = machine.driver.cuda if machine.driver else None
    if offers is None:
        return _no_driver(machine)
    served = [wheel for wheel in _engines(wheels) if wheel.architecture == machine.architecture]
    fit = [wheel for wheel in served if runs(wheel.cuda, offers) and wheel.sha256]
    if not served:
        return Instead("cpu", _CPU, (f"there is no engine wheel for {machine.architecture or 'this processor'}",))
    if not fit:
        why = f"the driver offers CUDA {dotted(offers)}; the oldest build is for {dotted(min(w.cuda for w in served))}"
        return Instead("driver", "upgrade the driver to R580 or newer, which offers CUDA 13", (why,))
    engine = max(fit, key=lambda wheel: (order(wheel.release), wheel.cuda))
    if too_old := _library(machine, engine):
        return too_old
    return _install(machine, engine, served=served, wheels=wheels)


def _hardware(machine: Machine) -> Instead | None:
    if machine.system != "Linux":
        return Instead("cpu", _CPU, (f"engine wheels for cards are made for Linux; this is {machine.system}",))
    if not machine.cards and not machine.surroundings.pci_cards:
        if words := uncounted(machine):
            return Instead("measure", "find out what the cards are: `nvidia-smi -L`", (f"they are not told: {words}",))
        return Instead("cpu", _CPU, ("there is no card",))
    return _capable(machine) if machine.cards else None


def _capable(machine: Machine) -> Instead | None:
    cards = usable(machine)
    if not cards:
        return Instead("measure", "make a MIG slice, or switch MIG off; then ask again", ("no card has a slice",))
    if any(_new_enough(card) for card in cards):
        return None
    if any(card.compute_capability is None for card in cards):
        return Instead(
            "measure",
            "find out what the cards are: `nvidia-smi --query-gpu=index,name,compute_cap,memory.total --format=csv`",
            ("the compute capability of the cards is not known",),
        )
    return Instead("cpu", _CPU, (f"every card is below compute capability {dotted(LOWEST_CAPABILITY)}",))


def _new_enough(card: Card) -> bool:
    return card.compute_capability is not None and card.compute_capability >= LOWEST_CAPABILITY


def _no_driver(machine: Machine) -> Instead:
    if machine.driver is None:
        return Instead("driver", "install the NVIDIA driver, R580 or newer", ("there are cards, and no driver",))
    return Instead("measure", "find out what the driver offers: `nvidia-smi`", ("the driver's CUDA is not known",))


def _engines(wheels: tuple[Wheel, ...]) -> list[Wheel]:
    return [wheel for wheel in wheels if wheel.package == ENGINE]


def _library(machine: Machine, engine: Wheel) -> Instead | None:
    found = version(machine.surroundings.glibc)
    if found is None or engine.glibc is None or found >= engine.glibc:
        return None
    why = f"the C library is glibc {dotted(found)}; the wheels need {dotted(engine.glibc)}"
    return Instead("cpu", f"run the engine in its container image, or renew the system; until then {_CPU}", (why,))


def _install(machine: Machine, engine: Wheel, *, served: list[Wheel], wheels: tuple[Wheel, ...]) -> Install:
    python = _python(machine, engine)
    chosen = _chosen(engine, python, wheels=wheels)
    backend = "" if engine.cuda[0] >= _DEFAULT_ORIGIN_FROM else f" --torch-backend {flavour(engine.cuda)}"
    here = machine.surroundings.python
    bare = [wheel.package for wheel in chosen if not wheel.sha256]
    notes = [*_newer(machine, engine, served=served)]
    if unseen := strange(usable(machine)):
        named = ", ".join(sorted({dotted(card.compute_capability) for card in unseen}))
        notes.append(f"no wheel is known to hold code for compute capability {named}: it may have to be built for it")
    notes.append(_COVERED)
    if machine.driver and machine.driver.cuinit not in (0, None):
        notes.append(
            f"CUDA does not start yet (cuInit gives {machine.driver.cuinit}): no engine will, before that does"
        )
    if bare:
        notes.append(f"no digest was found for {', '.join(bare)}: the version is pinned, the bytes are not")
    if quoted := [wheel.package for wheel in chosen if wheel.quoted]:
        notes.append(f"the digests of {', '.join(quoted)} were read where public lock files quote them")
    if version(here) != python:
        notes.append(f"Python {here or 'unknown'} does not suit, or is not known; the environment is made with its own")
    return Install(
        release=engine.release,
        cuda=engine.cuda,
        python=python,
        lock=tuple(_line(wheel) for wheel in chosen),
        command=f"uv venv --python {dotted(python)} engine && "
        f"uv pip install --python engine/bin/python{backend} -r engine.lock",
        reasons=tuple(_reasons(machine, engine)),
        notes=tuple(notes),
        sources=tuple(dict.fromkeys(f"{wheel.source} ({wheel.seen})" for wheel in chosen)),
    )


def _python(machine: Machine, engine: Wheel) -> Version:
    here = version(machine.surroundings.python)
    return here if here and engine.serves(machine.architecture, here) else _PYTHON


def _chosen(engine: Wheel, python: Version, *, wheels: tuple[Wheel, ...]) -> tuple[Wheel, ...]:
    """The engine and what it pins, each once: the row with a digest before the one without."""
    found = {ENGINE: engine}
    rows = (w for w in wheels if w.release == engine.release and w.cuda == engine.cuda and w.package != ENGINE)
    for wheel in rows:
        held = found.get(wheel.package)
        if wheel.serves(engine.architecture, python) and (held is None or (wheel.sha256 and not held.sha256)):
            found[wheel.package] = wheel
    return tuple(found.values())


def _line(wheel: Wheel) -> str:
    wanted = f"{wheel.package} @ {wheel.address}" if wheel.address else f"{wheel.package}=={wheel.version}"
    return f"{wanted} --hash=sha256:{wheel.sha256}" if wheel.sha256 else wanted


def _reasons(machine: Machine, engine: Wheel) -> list[str]:
    driver = machine.driver
    told = f"{driver.version or 'unknown'} offers CUDA {dotted(driver.cuda)}" if driver else "unknown"
    reasons = [f"driver {told}; this build is for {dotted(engine.cuda)}, and the major version decides"]
    if left_out := [card for card in usable(machine) if card.compute_capability and not _new_enough(card)]:
        named = ", ".join(f"{card.index}" for card in left_out)
        reasons.append(f"cards {named} are below {dotted(LOWEST_CAPABILITY)}: leave them out by CUDA_VISIBLE_DEVICES")
    return reasons


def _newer(machine: Machine, engine: Wheel, *, served: list[Wheel]) -> list[str]:
    """Releases that would be newer, and what keeps them away."""
    offers = machine.driver.cuda if machine.driver else None
    told = []
    for wheel in sorted(served, key=lambda wheel: order(wheel.release)):
        if order(wheel.release) <= order(engine.release) or offers is None:
            continue
        if runs(wheel.cuda, offers):
            told.append(f"{wheel.package} {wheel.version} exists, too, at {wheel.address}; its digest is not known")
        else:
            told.append(
                f"{wheel.package} {wheel.version} is built for CUDA {dotted(wheel.cuda)}: it needs driver R580 or newer"
            )
    if offers and offers < engine.cuda:
        told.append(
            f"the driver knows CUDA {dotted(offers)} and the build is for {dotted(engine.cuda)}: kernels that are "
            "shipped as PTX only do not start (`unsupported toolchain`); a newer driver ends that"
        )
    return told
