"""The engine's Python packages: against each other, against the driver, and against the cards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from casemate.doctor.checks.architecture import Reach, reach
from casemate.doctor.checks.check import Check, Question, dotted, label, reason, usable
from casemate.doctor.engines import ENGINE, version
from casemate.doctor.machine import Card, Machine, Package

_TORCH = "torch"
_LIBRARY = "flashinfer-python"
_KERNELS = ("flashinfer-cubin", "flashinfer-jit-cache")
_CARRY_CODE = (_TORCH, ENGINE)

_NVCC_FLOOR = {9: (12, 3), 10: (12, 9), 12: (12, 9)}
"""Oldest nvcc that DeepGEMM takes on 9 and 10 (vllm#49051) and FlashInfer on 12 (vllm#50705), by the card's major."""

_ADVISE = "`casemate doctor --advise` prints an install lock that fits this driver and these cards"
_CLEAN = f"install into a fresh environment, never `pip install torch` beside an engine; {_ADVISE}"

_INSTALLED = Question("packages.engine", "Engine installed", 'python3 -c "import vllm; print(vllm.__version__)"')
_PINS = Question("packages.pins", "Packages agree", "python3 -m pip check")
_CUDA = Question(
    "packages.cuda",
    "Packages and driver agree",
    'python3 -c "import torch; print(torch.__version__, torch.version.cuda, torch.cuda.is_available())"',
)
_CODE = Question(
    "packages.architectures",
    "Code for these cards inside",
    'python3 -c "import torch; print(torch.cuda.get_arch_list())"',
)
_NVCC = Question("packages.nvcc", "Kernels can be compiled on the machine", "nvcc --version; echo $CUDA_HOME")
_COMPILER = Question("packages.compiler", "C compiler and ninja", "cc --version; ninja --version")


def checks(machine: Machine) -> Iterator[Check]:
    """The checks of this theme, on a host with cards."""
    cards = usable(machine)
    if not cards:
        return
    engines = [package for package in machine.packages if package.name == ENGINE]
    yield _installed(machine, engines)
    if not any(package.name in _CARRY_CODE for package in machine.packages):
        return
    if engines:
        yield _pins(machine)
    yield _cuda(machine)
    yield _code(machine, cards)
    if engines:
        yield _nvcc(machine, cards)
        yield _compiler(machine)


def _installed(machine: Machine, engines: list[Package]) -> Check:
    if engines:
        return _INSTALLED.ok(", ".join(f"{ENGINE} {package.version}" for package in engines))
    if words := reason(machine.unknown, "packages"):
        return _INSTALLED.unknown(f"not told: {words}", remedy=_ADVISE)
    return _INSTALLED.warn(
        f"no {ENGINE} in the environments that were looked at",
        why="The cards stay idle until an engine for them is installed (it may be in another environment or an image).",
        remedy=_ADVISE,
    )


def _pins(machine: Machine) -> Check:
    broken = [_broken(owner, found) for owner in machine.packages for found in _contradicted(owner, machine)]
    if any(hard for _, hard in broken):
        return _PINS.fail(
            "; ".join(text for text, _ in broken),
            why="The engine's extensions are compiled against exactly one torch: another one ends in an undefined "
            "symbol at import.",
            remedy=_CLEAN,
        )
    broken += [(text, False) for text in _kernels_apart(machine)]
    if broken:
        return _PINS.warn(
            "; ".join(text for text, _ in broken),
            why="The engine was tested with other versions than these; FlashInfer refuses kernels of another release.",
            remedy=_CLEAN + "; kernels: `vllm download-kernels`",
        )
    if not any(_exact_pins(package) for package in machine.packages if package.name == ENGINE):
        return _PINS.unknown("the engine's own pins are not told", remedy="run the command below in its environment")
    return _PINS.ok(", ".join(f"{package.name} {package.version}" for package in machine.packages))


def _contradicted(owner: Package, machine: Machine) -> Iterator[tuple[Package, str]]:
    """Installed packages that the owner pins to another version; those of another environment are not its concern."""
    pins = _exact_pins(owner)
    for package in machine.packages:
        pinned = pins.get(package.name)
        if pinned and package.location == owner.location and _public(package.version) != _public(pinned):
            yield package, pinned


def _broken(owner: Package, found: tuple[Package, str]) -> tuple[str, bool]:
    package, pinned = found
    text = f"{owner.name} {owner.version} wants {package.name} {pinned}, {package.version} is installed"
    return text, owner.name == ENGINE and package.name == _TORCH


def _exact_pins(package: Package) -> dict[str, str]:
    found = (re.match(r"\s*([A-Za-z0-9._-]+)(?:\[[^]]*\])?\s*\(?==\s*([^\s;,)]+)", line) for line in package.requires)
    return {re.sub(r"[._]", "-", match[1]).lower(): match[2] for match in found if match and "*" not in match[2]}


def _public(text: str) -> str:
    """A version without its local part: `2.11.0+cu130` satisfies `==2.11.0` (PEP 440)."""
    return text.partition("+")[0]


def _kernels_apart(machine: Machine) -> Iterator[str]:
    for library in (package for package in machine.packages if package.name == _LIBRARY):
        for kernels in (package for package in machine.packages if package.name in _KERNELS):
            same_place = kernels.location == library.location
            if same_place and _public(kernels.version) != _public(library.version):
                yield f"{library.name} {library.version} beside {kernels.name} {kernels.version}"


def _cuda(machine: Machine) -> Check:
    carried = [package for package in machine.packages if package.name in _CARRY_CODE]
    told = ", ".join(f"{package.name} {package.version} for CUDA {_built(package)}" for package in carried)
    offers = machine.driver.cuda if machine.driver else None
    if bare := [package for package in carried if "+cpu" in package.version]:
        return _CUDA.fail(
            told, why=f"{bare[0].name} is a build for processors only: it never sees a card.", remedy=_CLEAN
        )
    if len({_major(package) for package in carried} - {None}) > 1 and len({p.location for p in carried}) == 1:
        return _CUDA.fail(
            told,
            why="Torch and engine are built for different CUDA majors: the import ends with a missing libcudart.",
            remedy=_CLEAN,
        )
    if offers and (late := [package for package in carried if (_major(package) or 0) > offers[0]]):
        return _CUDA.fail(
            f"{told}; the driver offers {dotted(offers)}",
            why=f"{late[0].name} does not start on this driver (`The NVIDIA driver on your system is too old`): the "
            "major version binds.",
            remedy=f"upgrade the driver to R580 or newer, or install builds for CUDA {offers[0]}; {_ADVISE}",
        )
    if offers is None or any(_major(package) is None for package in carried):
        return _CUDA.unknown(told, remedy="run the command below in the engine's environment")
    return _CUDA.ok(f"{told}; the driver offers {dotted(offers)}")


def _major(package: Package) -> int | None:
    return package.cuda[0] if package.cuda else package.cuda_major


def _built(package: Package) -> str:
    major = _major(package)
    return dotted(package.cuda) if package.cuda or major is None else f"{major}"


def _code(machine: Machine, cards: tuple[Card, ...]) -> Check:
    carried = [package for package in machine.packages if package.name in _CARRY_CODE]
    told = "; ".join(f"{package.name}: {' '.join(package.capabilities) or 'not told'}" for package in carried)
    offers = machine.driver.cuda if machine.driver else None
    pairs = [(package, card) for package in carried for card in cards if package.capabilities]
    found = [(package, card, _reach(package, card, offers=offers)) for package, card in pairs]
    if absent := [(package, card) for package, card, how in found if how in ("none", "too new")]:
        package, card = absent[0]
        return _CODE.fail(
            f"{told}; {label(card)} is {dotted(card.compute_capability)}",
            why=f"{package.name} {package.version} has no code for {label(card)}, and none that this driver could "
            "compile for it: `no kernel image is available`, or `PTX was compiled with an unsupported toolchain`.",
            remedy="install the official wheel, or build with TORCH_CUDA_ARCH_LIST naming this capability; " + _ADVISE,
        )
    if not found or any(how == "unknown" for *_, how in found) or any(not p.capabilities for p in carried):
        words = reason(machine.unknown, *(f"packages.{package.name}.capabilities" for package in carried))
        return _CODE.unknown(told + (f": {words}" if words else ""), remedy="run the command below, or `cuobjdump`")
    if any(how == "compiled by the driver" for *_, how in found):
        return _CODE.warn(
            told,
            why="The code is compiled by the driver at first use (PTX): the first start takes minutes, and kernels "
            "that exist for exact architectures only are missing.",
            remedy="install a build that names this capability; " + _ADVISE,
        )
    return _CODE.ok(told)


def _reach(package: Package, card: Card, *, offers: tuple[int, int] | None) -> Reach:
    if card.compute_capability is None:
        return "unknown"
    return reach(package.capabilities, card.compute_capability, built=package.cuda, driver=offers)


def _nvcc(machine: Machine, cards: tuple[Card, ...]) -> Check:
    around = machine.surroundings
    floors = [_NVCC_FLOOR[c.compute_capability[0]] for c in cards
              if c.compute_capability and c.compute_capability[0] in _NVCC_FLOOR]  # fmt: skip
    found, floor = version(around.nvcc), max(floors, default=None)
    told = f"nvcc {around.nvcc}" + (f" at {around.nvcc_path}" if around.nvcc_path else "") if around.nvcc else "no nvcc"
    if found and floor and found < floor:
        return _NVCC.fail(
            told,
            why=f"{_who(cards)} compiles with the nvcc of CUDA_HOME or PATH and wants {dotted(floor)} or newer on "
            "these cards; it stops at an older one although none at all might have been better.",
            remedy="install a newer toolkit and point CUDA_HOME at it, or take the old one out of CUDA_HOME and PATH",
        )
    if not around.nvcc and floor:
        return _NVCC.warn(
            told,
            why=f"Wheels need no toolkit to start, but on these cards {_who(cards)} compiles kernels at first "
            "use: without nvcc FlashInfer's are switched off, unless its ready-made kernels are installed.",
            remedy="`vllm download-kernels` (also before going offline), or a toolkit of "
            f"{dotted(floor)} or newer with CUDA_HOME pointing at it, which DeepSeek-V4 needs in any case",
        )
    return _NVCC.ok(told, "" if around.nvcc else "These cards run what the wheels bring.")


def _who(cards: tuple[Card, ...]) -> str:
    """Which library wants nvcc on these cards."""
    majors = {card.compute_capability[0] for card in cards if card.compute_capability}
    return "FlashInfer" if majors <= {12} else "DeepGEMM or FlashInfer"


def _compiler(machine: Machine) -> Check:
    have = {name.rpartition("/")[2] for name in machine.surroundings.compilers}
    told = ", ".join(machine.surroundings.compilers) or "none found"
    if not any(re.match(r"(gcc|cc|clang|g\+\+|c\+\+)", name) for name in have):
        return _COMPILER.warn(
            told,
            why="Triton compiles a small launcher with the host's C compiler at first use and ends without one.",
            remedy="install gcc and the header files of this Python (python3-dev)",
        )
    if "ninja" not in have and not any(package.name in _KERNELS for package in machine.packages):
        return _COMPILER.warn(
            f"{told}, no ninja",
            why="FlashInfer compiles with nvcc and ninja: without them its kernels are switched off, unless the "
            "ready-made ones are installed.",
            remedy="install ninja into the engine's environment and have it on PATH, or `vllm download-kernels`",
        )
    return _COMPILER.ok(told)
