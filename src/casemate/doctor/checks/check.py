"""One judged question: what was found, what it means, what to do, and the command that proves it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from casemate.doctor.machine import Card, Machine

Verdict = Literal["ok", "warn", "fail", "unknown"]
"""`unknown`: the fact is not there to be judged. It is never `ok` by absence."""


@dataclass(frozen=True, slots=True)
class Check:
    """A question and its answer.

    Attributes:
        id: theme and name (`driver.cuda`); stable, for programs.
        title: the question for people.
        found: the fact as measured.
        why: what it means; may be empty where it is `ok`.
        remedy: what to do about it; empty where it is `ok`.
        verify: a command that shows the fact, or that the remedy worked.
    """

    id: str
    title: str
    verdict: Verdict
    found: str
    why: str
    remedy: str
    verify: str

    @property
    def theme(self) -> str:
        """The part of the machine that it is about."""
        return self.id.partition(".")[0]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked; its methods are the four answers."""

    id: str
    title: str
    verify: str

    def ok(self, found: str, why: str = "") -> Check:
        """It is as it should be."""
        return Check(self.id, self.title, "ok", found, why, "", self.verify)

    def warn(self, found: str, *, why: str, remedy: str) -> Check:
        """It works, but worse than it could, or at a risk."""
        return Check(self.id, self.title, "warn", found, why, remedy, self.verify)

    def fail(self, found: str, *, why: str, remedy: str) -> Check:
        """An engine on the cards cannot start, or cannot be trusted."""
        return Check(self.id, self.title, "fail", found, why, remedy, self.verify)

    def unknown(self, missing: str, *, remedy: str) -> Check:
        """It could not be measured; `missing` says what, and the driver's words for why."""
        why = "It could not be measured, so nothing is claimed about it."
        return Check(self.id, self.title, "unknown", missing, why, remedy, self.verify)


def usable(machine: Machine) -> tuple[Card, ...]:
    """The devices that an engine can run on: cards and MIG slices, without the parents of slices."""
    return tuple(card for card in machine.cards if not card.mig_parent)


def boards(machine: Machine) -> tuple[Card, ...]:
    """The physical cards: power, heat, links and memory errors are theirs, not a slice's."""
    return tuple(card for card in machine.cards if not card.mig)


def label(card: Card) -> str:
    """How a text names a device: `card 0`, `card 0 (3g.20gb)`."""
    return f"card {card.index} ({card.mig})" if card.mig else f"card {card.index}"


def listed(cards: Iterable[Card], of: Callable[[Card], str]) -> str:
    """What each card has, one after another; said once where all have the same."""
    told = [(label(card), of(card)) for card in cards]
    values = {value for _, value in told}
    if len(values) == 1 and len(told) > 1:
        return f"all {len(told)}: {told[0][1]}"
    return "; ".join(f"{name}: {value}" for name, value in told)


def reason(pairs: tuple[tuple[str, str], ...], *names: str) -> str:
    """The driver's words for why one of these facts is not known; empty if it gave none."""
    return next((words for name, words in pairs if name in names), "")


def is_absent(words: str) -> bool:
    """Whether a library's words for why it gave no answer say that it is not there at all."""
    return any(
        sign in words.lower()
        for sign in ("cannot open shared object", "not found", "no such file", "is not on the path")
    )


def hangs(machine: Machine) -> str:
    """The words for where the driver gave no answer in time; empty if it gave one, or was not asked."""
    asked = ("driver.nvml", "driver.cuinit", "cards", "nvidia-smi")
    told = (words for name, words in machine.unknown if name in asked)
    return next((words for words in told if "no end within" in words), "")


HANGS = "the driver hangs: see `dmesg | grep -i xid`, then reboot the machine (no signal ends who waits for it)"


def unanswered(machine: Machine) -> str:
    """The words of a driver that is there and shows no card: it hangs, or its nvidia-smi fails."""
    words = reason(machine.unknown, "nvidia-smi")
    return hangs(machine) or ("" if is_absent(words) else words)


def missing(cards: Iterable[Card], *names: str) -> str:
    """Which cards do not tell a fact, each with the driver's words."""
    return "not told: " + listed(cards, lambda card: reason(card.unknown, *names) or "no reason given")


def dotted(version: tuple[int, int] | None) -> str:
    """(12, 9) as `12.9`; `unknown` for None."""
    return f"{version[0]}.{version[1]}" if version else "unknown"


def gib(count: int) -> str:
    """Bytes as `95.6 GiB`."""
    return f"{count / (1 << 30):.1f} GiB"
