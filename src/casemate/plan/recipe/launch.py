"""A start of the server as it was found in a recipe, and how one is found among the words of a command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal

from casemate.plan.recipe.expanding import Variables
from casemate.plan.recipe.masking import shown_words
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
_EXPORTS = {"export", "declare", "local", "readonly"}
_KEYWORDS = {"then", "do", "else", "if", "while", "until", "!", "{"}
_ADDED = re.compile(r"[A-Za-z_]\w*\+=")
_CLI_MODULE = "vllm.entrypoints.cli.main"
_PYTHON = re.compile(r"python[\d.]*")
_PROGRAMS = {
    "bash",
    "sh",
    "python",
    "python3",
    "serve",
    "vllm",
    "sleep",
    "tail",
    "ray",
    "nvidia-smi",
    "ls",
    "pip",
    "uv",
}


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of vLLM.

    Attributes:
        kind: `serve`, `module` (python -m), `image` (a container image's own entry), `flags` (no program was named).
        program: the words that start it, as written; empty for `image` and `flags`.
        arguments: what the server is given.
        environment: variables that are set for it, in order, with values as words.
        wrapper: the words before the program that it is started by (`sudo -u llm`), or those of `docker run` up to
            the image.
        around: what else stands around it, for people; it is no part of a correction.
        broken: the first argument that the shell does not give to it, because the line before does not go on.
        skipped: it is a start of something else in an image of vLLM, and not judged.
        version: of the engine, where an image's tag tells it.
        where: a line, or a place in a file.
    """

    kind: Literal["serve", "module", "image", "flags"]
    program: tuple[Word, ...]
    arguments: tuple[Word, ...]
    environment: tuple[tuple[str, Word], ...] = ()
    wrapper: tuple[Word, ...] = ()
    around: str = ""
    broken: int | None = None
    skipped: bool = False
    module: str = ""
    image: str = ""
    version: str = ""
    where: str = ""


def in_text(text: str) -> Iterator[Launch]:
    """The starts in shell text, with the variables that were exported or assigned before them."""
    held = Variables()
    alone = True
    last: list[Launch] = []
    for words in commands(text):
        held.nest(words[0].text)
        stripped = _without_keyword(words)
        assigned, rest = _assignments(stripped)
        if not rest:
            held.take(stripped, exported=words[0].text in _EXPORTS)
            continue
        rest = tuple(held.expanded(rest))
        if last and words[0].text.startswith("-"):
            last = [_continued(launch, rest) for launch in last]
            continue
        yield from last
        seen = (*held.seen(), *assigned)
        last = [launch if launch.image else _given(launch, seen) for launch in in_words(rest)]
        if alone and words[0].text.startswith("-"):
            last = [Launch("flags", (), rest, seen, where=_line(rest))]
        alone = False
    yield from last


def in_words(words: Sequence[Word], depth: int = 0) -> Iterator[Launch]:
    """The starts in the words of one command; one inside `bash -c`, `docker run` or a quoted command, too."""
    texts = [word.text for word in words]
    for at, text in enumerate(texts):
        name = PurePosixPath(text).name
        if name == "vllm" and texts[at + 1 : at + 2] == ["serve"]:
            yield _started("serve", words, at=at, length=2)
            return
        if text == "-m" and at + 1 < len(texts) and _MODULE.fullmatch(texts[at + 1]):
            yield from _of_module(words, at)
            return
        if name in _CONTAINERS and depth < _DEEPEST and "run" in texts[at : at + 3]:
            behind = texts.index("run", at) + 1
            yield from _contained(words[:behind], words[behind:], depth=depth)
            return
        if depth < _DEEPEST and _is_inner(words, at):
            around = " ".join(shown_words(texts[:at]))
            found = (launch for inner in commands(text) for launch in _in_inner(inner, depth=depth))
            yield from (replace(launch, around=f"{around} {launch.around}".strip()) for launch in found)
            return


def of_image(image: Word, words: Sequence[Word], *, depth: int = 0, own: bool = True) -> Iterator[Launch]:
    """The start that a container image's own entry makes of its arguments, if it is an image of vLLM.

    `own` says that the image's entry counts; what is started in its place is not known, and told as skipped.
    """
    found = tuple(in_words(words, depth + 1))
    tag = _TAG.search(image.text.rpartition(":")[2])
    version = tag[1] if tag and image.known and "vllm" in image.text else ""
    if found:
        yield from (replace(launch, image=image.text, version=version) for launch in found)
    elif "vllm" in image.text and words:
        model = own and (words[0].text.startswith("-") or _is_model(words[0].text))
        where = _line((image, *words))
        yield Launch("image", (), tuple(words), image=image.text, version=version, where=where, skipped=not model)


def assignment(text: str, line: int, *, known: bool = True) -> tuple[str, Word] | None:
    """A `NAME=value` as name and value; None for anything else."""
    match = _ASSIGNMENT.fullmatch(text)
    return (match["name"], Word(match["value"], line, known)) if match else None


def _started(kind: Literal["serve", "module"], words: Sequence[Word], *, at: int, length: int) -> Launch:
    before = _wrapped(words[:at])
    program, rest = tuple(words[at : at + length]), tuple(words[at + length :])
    wrapper = [word for word in words[:at] if assignment(word.text, 1) is None]
    if wrapper and wrapper[-1].text == "env":
        wrapper.pop()
    return Launch(kind, program, rest, before, wrapper=tuple(wrapper), where=_line(words[at:]))


def _of_module(words: Sequence[Word], at: int) -> Iterator[Launch]:
    """`python -m MODULE`; the command line's own module needs its `serve`."""
    module = words[at + 1].text
    start = max((at_ for at_ in range(at) if _PYTHON.fullmatch(PurePosixPath(words[at_].text).name)), default=at)
    if module != _CLI_MODULE:
        yield replace(_started("module", words, at=start, length=at + 2 - start), module=module)
    elif [word.text for word in words[at + 2 : at + 3]] == ["serve"]:
        yield replace(_started("serve", words, at=start, length=at + 3 - start), module=module)


def _in_inner(words: Sequence[Word], *, depth: int) -> Iterator[Launch]:
    """The starts in a command inside quotes, with what is assigned in front of them."""
    assigned, rest = _assignments(_without_keyword(words))
    yield from (_given(launch, assigned) for launch in in_words(rest, depth + 1))


def _given(launch: Launch, variables: Sequence[tuple[str, Word]]) -> Launch:
    return replace(launch, environment=(*variables, *launch.environment))


def _continued(launch: Launch, words: tuple[Word, ...]) -> Launch:
    """The start with options of the next line, which the shell takes for a command of its own."""
    first = len(launch.arguments) if launch.broken is None else launch.broken
    return replace(launch, arguments=(*launch.arguments, *words), broken=first)


def _is_model(text: str) -> bool:
    """Whether a word behind an image is a model and not a program: a hub id, a folder, a variable."""
    if text.startswith("/"):
        return not text.startswith(("/bin/", "/usr/", "/sbin/", "/opt/")) and not text.endswith((".sh", ".py"))
    return text not in _PROGRAMS and re.fullmatch(r"\$[\w{}]+|[\w.-]+(?:/[\w.-]+)*", text) is not None


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


def _contained(before: Sequence[Word], words: Sequence[Word], *, depth: int) -> Iterator[Launch]:
    """`docker run` behind its `run`: options, the image, what the image is given."""
    environment: list[tuple[str, Word]] = []
    entry: list[Word] = []
    kept = list(before)
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        option, equals, value = words[at].text.partition("=")
        start = at
        given = Word(value, words[at].line, words[at].known) if equals else None
        if given is None and not _NO_VALUE.fullmatch(words[at].text) and at + 1 < len(words):
            at += 1
            given = words[at]
        if given and option in ("-e", "--env") and (pair := assignment(given.text, given.line, known=given.known)):
            environment.append(pair)
        else:
            kept.extend(words[start : at + 1])
        if given and option == "--entrypoint":
            entry = [given]
        at += 1
    if at == len(words):
        return
    around = " ".join(shown_words([word.text for word in (*kept, words[at])]))
    for launch in of_image(words[at], (*entry, *words[at + 1 :]), depth=depth, own=not entry):
        whole = replace(launch, environment=(*environment, *launch.environment))
        if launch.kind == "image":
            yield replace(whole, wrapper=(*kept, words[at]))
        else:
            yield replace(whole, around=f"{around} {launch.around}".strip())


def _assignments(words: Sequence[Word]) -> tuple[list[tuple[str, Word]], tuple[Word, ...]]:
    found: list[tuple[str, Word]] = []
    for at, word in enumerate(words):
        pair = assignment(word.text, word.line, known=word.known)
        if _ADDED.match(word.text):
            continue
        if pair is None:
            return found, tuple(words[at:])
        found.append(pair)
    return found, ()


def _without_keyword(words: Sequence[Word]) -> Sequence[Word]:
    return words[1:] if words[0].text in _EXPORTS | _KEYWORDS else words


def _line(words: Sequence[Word]) -> str:
    return f"line {words[0].line}" if words else ""
