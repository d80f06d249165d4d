"""The command that is right: what was sound is kept, what was judged is replaced or left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from casemate.plan.recipe.flags import FlagTable
from casemate.plan.recipe.launch import Launch
from casemate.plan.recipe.masking import is_reference, is_secret, masked, shown_words
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
            put.extend(_put(word, use) for word in problem.mend or ())
    put.extend(
        Word(word, 1) for problem in problems if problem.position < 0 and problem.mend for word in _flagged(problem)
    )
    overridden = {use.name for use in uses(put, table) if "." not in use.typed}
    arguments = [word for use in kept if use.name not in overridden for word in _words(launch, use)]
    model = named.values[0] if named and named.values else _NO_MODEL
    docked = launch.kind == "image" and launch.wrapper
    positional: tuple[Word, ...] = (Word("--model", 1), model) if docked and named and named.typed else (model,)
    positional = () if model is _NO_MODEL and any(use.name == "config" for use in kept) else positional
    environment = tuple(_environment(launch, used, problems=problems))
    words = (*positional, *arguments, *put)
    whole = replace(launch, arguments=words, environment=environment, module="", broken=None)
    return whole if docked else replace(whole, kind="serve", program=_program(launch))


def _program(launch: Launch) -> tuple[Word, ...]:
    """`vllm serve`, from the folder that the program or its Python was started from."""
    folder = PurePosixPath(launch.program[0].text).parent if launch.program else PurePosixPath()
    first = launch.program[0] if launch.program else Word("", 1)
    if not first.known or str(folder) == "." or (launch.module and folder.name != "bin"):
        return _PROGRAM if first.known or launch.module else launch.program
    return (Word(str(folder / "vllm"), 1), _PROGRAM[1])


def command(launch: Launch) -> str:
    """A start as one line for a shell; a secret in a variable is shown as a reference to that variable."""
    environment = [f"{name}={_value(name, word)}" for name, word in launch.environment]
    words = (*launch.program, *launch.arguments)
    shown = shown_words([word.text for word in words])
    around = [
        _pasted(*pair) for pair in zip(launch.wrapper, shown_words([w.text for w in launch.wrapper]), strict=True)
    ]
    if launch.kind == "image" and around:
        environment = [f"-e {pair}" for pair in environment]
        around, environment = around[:-1], [*environment, around[-1]]
    elif around and environment:
        around.append("env")
    return " ".join([*around, *environment, *(_pasted(word, text) for word, text in zip(words, shown, strict=True))])


def variable(name: str, word: Word) -> str:
    """A variable's value as it may be told: a secret is a reference, which stops the shell where it is not set."""
    if is_secret(name) and word.text and not is_reference(word.text):
        return f"${{{name}:?}}"
    return word.text if is_reference(word.text) else masked(word.text)


def _value(name: str, word: Word) -> str:
    text = variable(name, word)
    return text if is_reference(text) else _pasted(word, text)


def _pasted(word: Word, text: str | None = None) -> str:
    """A word for a shell, as it was written where only the shell knows it; `text` stands for it where a secret was."""
    text = word.text if text is None else text
    if word.known:
        return quoted(text)
    if word.raw and text == word.text:
        return word.raw
    return '"' + text.replace('"', '\\"') + '"'


def _model(used: Sequence[Use]) -> Use | None:
    by_name = next((use for use in used if use.name == "model" and use.values), None)
    return by_name or next((use for use in used if not use.typed and use.values[0].text != "--"), None)


def _worst_last(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: -problem.severity.rank)


def _flagged(problem: Problem) -> tuple[str, ...]:
    """The options that a problem of no single word adds; a program's replacement is none."""
    return problem.mend if problem.mend and problem.mend[0].startswith("--") else ()


def _put(text: str, use: Use) -> Word:
    """A word of a mend; one that holds what only the shell knows stays open to the shell."""
    return Word(text, 1, not any(word.text in text for word in use.values if not word.known and word.text))


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
            given = use.values[0] if use.values and is_reference(use.values[0].text) else None
            yield name, given or Word(f"${{{name}:?}}", 1, known=False)
