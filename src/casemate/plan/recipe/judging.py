"""Judges a start of vLLM word by word, and says how it should read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.machine import Machine
from casemate.finding import Severity
from casemate.plan.recipe.advice import Advice, enriched, harmful
from casemate.plan.recipe.checking import judged, shown
from casemate.plan.recipe.contradictions import contradictions
from casemate.plan.recipe.drafting import drafting
from casemate.plan.recipe.exposure import exposure
from casemate.plan.recipe.fit import fit
from casemate.plan.recipe.flags import FlagTable, History
from casemate.plan.recipe.launch import Launch
from casemate.plan.recipe.layout import layout
from casemate.plan.recipe.masking import hidden, masked, shown_words
from casemate.plan.recipe.mending import mended
from casemate.plan.recipe.problem import PROGRAM, VARIABLE, Kind, Problem
from casemate.plan.recipe.ranges import ranges
from casemate.plan.recipe.release import release
from casemate.plan.recipe.room import room
from casemate.plan.recipe.situation import Situation
from casemate.plan.recipe.surroundings import program, variables
from casemate.plan.recipe.uses import Use, uses
from casemate.plan.recipe.weights import weights

_ROUNDS = 6
"""A mend may bring up another judgement (a key that was not needed any more); it ends long before this."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What judgements rest on. `presumed` says that the checkpoint's facts are those published under its hub name."""

    table: FlagTable
    history: History
    advice: tuple[Advice, ...]
    checkpoint: Checkpoint | None = None
    machine: Machine | None = None
    presumed: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """One part of the command with what is to be said of it; `problems` is empty where it is fine."""

    text: str
    problems: tuple[Problem, ...]

    @property
    def verdict(self) -> str:
        """`fine`, or the kind of the worst problem."""
        worst = min(self.problems, key=lambda problem: problem.severity.rank, default=None)
        return worst.kind.value if worst else "fine"


@dataclass(frozen=True, slots=True)
class Report:
    """A launch, judged. `words` covers every word of it, `corrected` is the start that has no problem any more.

    `followed` is what came up only when the first problems were mended, and was mended as well; `open` is what no
    change of words mends (the model is too large for the cards).
    """

    launch: Launch
    table: FlagTable
    words: tuple[Judged, ...]
    problems: tuple[Problem, ...]
    corrected: Launch
    followed: tuple[Problem, ...] = ()
    open: tuple[Problem, ...] = ()

    @property
    def mendable(self) -> bool:
        """Whether the corrected start has nothing left that stops it."""
        return not any(problem.severity is Severity.HIGH for problem in self.open)

    @property
    def clean(self) -> bool:
        """Whether nothing worse than advice for unknown surroundings was found."""
        return all(problem.severity is Severity.INFO for problem in self.problems)


def judge(launch: Launch, ground: Ground) -> Report:
    """Judge a start against an engine's flags and whatever else is known."""
    if launch.skipped:
        return _skipped(launch, ground.table)
    used = uses(launch.arguments, ground.table, history=ground.history)
    problems = tuple(_problems(launch, used, ground=ground))
    corrected = mended(launch, used, problems=problems, table=ground.table)
    followed: list[Problem] = []
    found: list[Problem] = []
    for _ in range(_ROUNDS):
        again = uses(corrected.arguments, ground.table, history=ground.history)
        found = [
            problem for problem in _problems(corrected, again, ground=ground) if problem.severity is not Severity.INFO
        ]
        left = [problem for problem in found if problem.mend is not None]
        if not left:
            break
        corrected = mended(corrected, again, problems=left, table=ground.table)
        followed.extend(problem for problem in left if problem.says not in {before.says for before in problems})
    return Report(
        launch=launch,
        table=ground.table,
        words=tuple(_words(launch, used, problems=problems)),
        problems=problems,
        corrected=corrected,
        followed=tuple(dict.fromkeys(followed)),
        open=tuple(found),
    )


def _skipped(launch: Launch, table: FlagTable) -> Report:
    """A start of something else in an image of vLLM: named, so that nobody takes silence for consent."""
    says = "This image is started by something else than its own entry, and what that starts is not to be seen here."
    text = " ".join(shown_words([word.text for word in launch.arguments]))
    told = Problem(Kind.UNSEEN, Severity.INFO, says, "", None, value=text)
    return Report(launch, table, (Judged(f"{launch.image} {text}".strip(), (told,)),), (told,), launch)


def _unseen(launch: Launch, used: tuple[Use, ...]) -> Iterator[Problem]:
    """Words that only the shell knows, and words that it takes for another command."""
    named = next((use for use in used if not use.typed), None)
    for use in used:
        if not use.typed and use is not named and not use.known:
            says = "What it holds is not assigned plainly in this text, so it is not judged."
            yield Problem(Kind.UNSEEN, Severity.INFO, says, "", None, use.value, "", use.position)
        if use.position == launch.broken:
            says = (
                "The line before ends the command (no backslash at its end, or a comment behind it), so the shell "
                "takes this and what follows for a command of its own."
            )
            source = "https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html"
            yield Problem(Kind.INVALID, Severity.HIGH, says, source, None, use.typed, shown(use), use.position)


def _problems(launch: Launch, used: tuple[Use, ...], *, ground: Ground) -> Iterator[Problem]:
    situation = Situation(launch, ground.table, used, ground.checkpoint, ground.machine)
    yield from _first(situation, ground)
    yield from program(situation, ground.history)
    yield from variables(situation, ground.history, advice=ground.advice)
    yield from enriched(
        judged(used, ground.table, history=ground.history), used, advice=ground.advice, table=ground.table
    )
    yield from _unseen(launch, used)
    yield from contradictions(situation)
    yield from ranges(situation)
    believed = list(_beliefs(situation))
    certain = {problem.flag for problem in believed if problem.severity is Severity.HIGH}
    yield from (problem for problem in harmful(used, ground.advice, table=ground.table) if problem.flag not in certain)
    if not ground.presumed:
        yield from believed
        return
    without = set(_beliefs(replace(situation, checkpoint=None)))
    for problem in believed:
        sure = problem in without
        yield problem if sure else replace(problem, says=f"If this is the published checkpoint: {problem.says}")


def _first(situation: Situation, ground: Ground) -> Iterator[Problem]:
    """What no words mend is said before all else."""
    for problem in release(situation):
        yield (
            replace(problem, says=f"If this is the published checkpoint: {problem.says}")
            if ground.presumed
            else problem
        )


def _beliefs(situation: Situation) -> Iterator[Problem]:
    for part in (weights, layout, room, fit, drafting, exposure):
        yield from part(situation)


def _words(launch: Launch, used: tuple[Use, ...], *, problems: tuple[Problem, ...]) -> Iterator[Judged]:
    for name, word in launch.environment:
        said = tuple(problem for problem in problems if problem.position == VARIABLE and problem.flag == name)
        yield Judged(f"{name}={hidden(name, word.text)}", said)
    if launch.program or any(problem.position == PROGRAM for problem in problems):
        text = " ".join(shown_words([word.text for word in launch.program]))
        yield Judged(text, tuple(problem for problem in problems if problem.position == PROGRAM))
    for use in used:
        joint = "=" if use.attached and "=" in launch.arguments[use.position].text else " "
        value = shown(use) if use.typed else masked(use.value)
        text = f"{use.typed}{joint}{value}".strip() if use.values else use.typed
        yield Judged(text, tuple(problem for problem in problems if problem.position == use.position))
