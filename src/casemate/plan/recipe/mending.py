"""The command that is right: what was sound is kept, what was judged is replaced or left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from casemate.plan.recipe.exposure import is_secret
from casemate.plan.recipe.flags import FlagTable
from casemate.plan.recipe.launch import Launch
from casemate.plan.recipe.problem import VARIABLE, Problem
from casemate.plan.recipe.shell import Word, quoted
from casemate.plan.recipe.uses import Use, uses

_PROGRAM = (Word("vllm", 1), Word("serve", 1))
_NO_MODEL = Word("MODEL", 1)
_BY_VARIABLE = {"api-key": "VLLM_API_KEY", "hf-token": "HF_TOKEN"}
"""Options whose value belongs into a variable, which the reader of the command sets."""


def mended(launch: Launch, used: Sequence[Use], *, problems: Sequence[Problem], table: FlagTable) -> Launch:
    """The same start by `vllm serve MODEL`, with every problem's mend applied; one round."""
    at_word = {problem.position: problem for problem in _worst_last(problems) if problem.mend is not None}
    named = _model(used)
    kept: list[Use] = []
    put: list[Word] = []
    for use in used:
        if use.name == "model" or (named and use is named) or (not use.typed and use.position in at_word):
            continue
        problem = at_word.get(use.position)
        if problem is None:
            kept.append(use)
        else:
            put.extend(Word(word, use.values[0].line if use.values else 1) for word in problem.mend or ())
    put.extend(
        Word(word, 1) for problem in problems if problem.position < 0 and problem.mend for word in _flagged(problem)
    )
    overridden = {use.name for use in uses(put, table)}
    arguments = [word for use in kept if use.name not in overridden for word in _words(launch, use)]
    model = named.values[0] if named and named.values else _NO_MODEL
    positional = () if model is _NO_MODEL and any(use.name == "config" for use in kept) else (model,)
    environment = tuple(_environment(launch, used, problems=problems))
    words = (*positional, *arguments, *put)
    return Launch("serve", _PROGRAM, words, environment, image=launch.image, version=launch.version)


def command(launch: Launch) -> str:
    """A start as one line for a shell; a secret in a variable is shown as a reference to that variable."""
    shown = (f"{name}={_value(name, word)}" for name, word in launch.environment)
    words = (*launch.program, *launch.arguments)
    return " ".join([*shown, *(_pasted(word) for word in words)])


def _value(name: str, word: Word) -> str:
    return f"${name}" if is_secret(name) else _pasted(word)


def _pasted(word: Word) -> str:
    if word.known:
        return quoted(word.text)
    return '"' + word.text.replace('"', '\\"') + '"'


def _model(used: Sequence[Use]) -> Use | None:
    by_name = next((use for use in used if use.name == "model" and use.values), None)
    return by_name or next((use for use in used if not use.typed and use.values[0].text != "--"), None)


def _worst_last(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: -problem.severity.rank)


def _flagged(problem: Problem) -> tuple[str, ...]:
    """The options that a problem of no single word adds; a program's replacement is none."""
    return problem.mend if problem.mend and problem.mend[0].startswith("--") else ()


def _words(launch: Launch, use: Use) -> tuple[Word, ...]:
    return launch.arguments[use.position : use.end]


def _environment(launch: Launch, used: Sequence[Use], *, problems: Sequence[Problem]) -> Iterator[tuple[str, Word]]:
    gone = {problem.flag for problem in problems if problem.position == VARIABLE and problem.mend is not None}
    held = {name for name, _ in launch.environment}
    yield from (pair for pair in launch.environment if pair[0] not in gone)
    dropped = {problem.position for problem in problems if problem.mend == ()}
    for use in used:
        name = _BY_VARIABLE.get(use.name)
        if name and name not in held and use.position in dropped:
            yield name, Word(f"${name}", 1, known=False)
