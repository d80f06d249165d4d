"""A start of the server as it was found in a recipe, and how one is found among the words of a command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from casemate.plan.recipe.shell import Word, commands

_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)
_STARTS = re.compile(r"\bvllm\s+serve\b|\bvllm\.entrypoints\.")
_MODULE = re.compile(r"vllm\.entrypoints\.[\w.]+")
_TAG = re.compile(r"v?(\d+\.\d+\.\d+)")
_CONTAINERS = {"docker", "podman", "nerdctl"}
_SHELLS = {"sh", "bash", "dash", "zsh"}
_NO_VALUE = re.compile(
    r"-[dithP]+|--(?:detach|rm|init|interactive|tty|privileged|read-only|publish-all|no-healthcheck|oom-kill-disable|"
    r"sig-proxy|disable-content-trust|quiet|help|replace)(?:=.*)?"
)
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of vLLM.

    Attributes:
        kind: `serve`, `module` (python -m), `image` (a container image's own entry), `flags` (no program was named).
        program: the words that start it, as written; empty for `image` and `flags`.
        arguments: what the server is given.
        environment: variables that are set for it, in order, with values as words.
        version: of the engine, where an image's tag tells it.
        where: a line, or a place in a file.
    """

    kind: Literal["serve", "module", "image", "flags"]
    program: tuple[Word, ...]
    arguments: tuple[Word, ...]
    environment: tuple[tuple[str, Word], ...] = ()
    module: str = ""
    image: str = ""
    version: str = ""
    where: str = ""


def in_text(text: str) -> Iterator[Launch]:
    """The starts in shell text, with the variables that were exported or assigned before them."""
    held: list[tuple[str, Word]] = []
    alone = True
    for words in commands(text):
        assigned, rest = _assignments(_without_export(words))
        if not rest:
            held.extend(assigned)
            continue
        for launch in in_words(rest):
            yield replace(launch, environment=(*held, *assigned, *launch.environment))
        if alone and rest[0].text.startswith("-"):
            yield Launch("flags", (), rest, (*held, *assigned), where=_line(rest))
        alone = False


def in_words(words: Sequence[Word], depth: int = 0) -> Iterator[Launch]:
    """The starts in the words of one command; one inside `bash -c`, `docker run` or a quoted command, too."""
    texts = [word.text for word in words]
    for at, text in enumerate(texts):
        name = PurePosixPath(text).name
        if name == "vllm" and texts[at + 1 : at + 2] == ["serve"]:
            yield _started("serve", words, at=at, length=2)
            return
        if text == "-m" and at + 1 < len(texts) and _MODULE.fullmatch(texts[at + 1]):
            yield replace(
                _started("module", words, at=max(0, at - 1), length=at + 2 - max(0, at - 1)), module=texts[at + 1]
            )
            return
        if name in _CONTAINERS and depth < _DEEPEST and "run" in texts[at : at + 3]:
            yield from _contained(words[texts.index("run", at) + 1 :], depth)
            return
        if depth < _DEEPEST and _is_inner(words, at):
            yield from (launch for inner in commands(text) for launch in in_words(_assignments(inner)[1], depth + 1))
            return


def of_image(image: Word, words: Sequence[Word], *, depth: int = 0) -> Iterator[Launch]:
    """The start that a container image's own entry makes of its arguments, if it is an image of vLLM."""
    found = tuple(in_words(words, depth + 1))
    tag = _TAG.search(image.text.rpartition(":")[2])
    version = tag[1] if tag and image.known and "vllm" in image.text else ""
    if found:
        yield from (replace(launch, image=image.text, version=version) for launch in found)
    elif "vllm" in image.text and words and words[0].text.startswith("-"):
        yield Launch("image", (), tuple(words), image=image.text, version=version, where=_line((image, *words)))


def assignment(text: str, line: int, *, known: bool = True) -> tuple[str, Word] | None:
    """A `NAME=value` as name and value; None for anything else."""
    match = _ASSIGNMENT.fullmatch(text)
    return (match["name"], Word(match["value"], line, known)) if match else None


def _started(kind: Literal["serve", "module"], words: Sequence[Word], *, at: int, length: int) -> Launch:
    before = _wrapped(words[:at])
    program, rest = tuple(words[at : at + length]), tuple(words[at + length :])
    return Launch(kind, program, rest, before, where=_line(words[at:]))


def _wrapped(words: Sequence[Word]) -> tuple[tuple[str, Word], ...]:
    """Variables that a wrapper such as `env` sets."""
    found = (assignment(word.text, word.line, known=word.known) for word in words)
    return tuple(pair for pair in found if pair)


def _is_inner(words: Sequence[Word], at: int) -> bool:
    """Whether a word is a command in quotes: what stands behind `sh -c`, or one that plainly starts the server."""
    text = words[at].text
    if not re.search(r"\s", text) or not _STARTS.search(text):
        return False
    flagged = at > 0 and re.fullmatch(r"-\w*c", words[at - 1].text)
    shell = any(PurePosixPath(word.text).name in _SHELLS for word in words[:at])
    return bool(flagged and shell) or not text.lstrip().startswith(("{", "["))


def _contained(words: Sequence[Word], depth: int) -> Iterator[Launch]:
    """`docker run` behind its `run`: options, the image, what the image is given."""
    environment: list[tuple[str, Word]] = []
    entry: list[Word] = []
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        option, equals, value = words[at].text.partition("=")
        given = Word(value, words[at].line, words[at].known) if equals else None
        if given is None and not _NO_VALUE.fullmatch(words[at].text) and at + 1 < len(words):
            at += 1
            given = words[at]
        if given and option in ("-e", "--env") and (pair := assignment(given.text, given.line, known=given.known)):
            environment.append(pair)
        if given and option == "--entrypoint":
            entry = [given]
        at += 1
    if at < len(words):
        for launch in of_image(words[at], (*entry, *words[at + 1 :]), depth=depth):
            yield replace(launch, environment=(*environment, *launch.environment))


def _assignments(words: Sequence[Word]) -> tuple[list[tuple[str, Word]], tuple[Word, ...]]:
    found: list[tuple[str, Word]] = []
    for at, word in enumerate(words):
        pair = assignment(word.text, word.line, known=word.known)
        if pair is None:
            return found, tuple(words[at:])
        found.append(pair)
    return found, ()


def _without_export(words: Sequence[Word]) -> Sequence[Word]:
    return words[1:] if words[0].text in ("export", "env", "exec", "then", "do", "time", "nohup", "sudo") else words


def _line(words: Sequence[Word]) -> str:
    return f"line {words[0].line}" if words else ""
