"""Finds the starts of vLLM in what somebody wrote.

That is a command line, a script, a systemd unit, a compose file, a Kubernetes manifest, the engine's own settings file,
or a list of arguments in JSON.

The text is foreign: it is bounded, never run, and what it does not say is not guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import yaml

from casemate.errors import UsageError
from casemate.plan.recipe.launch import Launch, assignment, in_text, in_words, of_image
from casemate.plan.recipe.shell import Word, commands

MOST_BYTES = 128 << 10
"""No recipe is larger; what is, is something else."""

_UNIT = re.compile(r"^\[Service\]\s*$", re.MULTILINE)
_YAML = re.compile(r"^[ \t-]*(?:services|apiVersion|kind|containers|command|args|image|spec)[ \t]*:", re.MULTILINE)
_SETTINGS = re.compile(r"(?:\s*#.*|\s*|---|[A-Za-z][\w-]*\s*:.*|\s+.*)")
_HERE = re.compile(r"<<-?[ \t]*(?P<quote>['\"]?)(?P<end>[A-Za-z_]\w*)(?P=quote)")
_FOREIGN = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MOST_NODES = 20_000
_DEEPEST = 64
_MOST_LAUNCHES = 100
_MOST_ARGUMENTS = 2_000


def launches(text: str) -> tuple[Launch, ...]:
    """Every start of vLLM in a text, in order.

    Raises:
        UsageError: it is too large, no text, cannot be read, or starts no vLLM.
    """
    if len(text) > MOST_BYTES:
        raise UsageError(f"a recipe has at most {MOST_BYTES >> 10} KiB, this has more", remedy="give the command alone")
    if _FOREIGN.search(text):
        raise UsageError("this is no text", remedy="give a command, a script, a unit or a compose file")
    found = tuple(_found(text.lstrip("\ufeff").replace("\r\n", "\n")))
    if len(found) > _MOST_LAUNCHES or any(len(launch.arguments) > _MOST_ARGUMENTS for launch in found):
        raise UsageError("this is more than a recipe: it has too many commands or words", remedy="give one command")
    if all(launch.skipped for launch in found):
        raise UsageError(
            "nothing in it starts vLLM",
            remedy="give `vllm serve …`, its flags alone, or a file that holds such a command",
        )
    return found


def of_words(words: Sequence[str]) -> tuple[Launch, ...]:
    """The start in a command that a shell has split already.

    Raises:
        UsageError: it starts no vLLM.
    """
    split = [Word(word, 1) for word in words]
    found = tuple(in_words(split))
    if not found and split and split[0].text.startswith("-"):
        found = (Launch("flags", (), tuple(split), where="line 1"),)
    return found or launches(" ".join(words))


def _found(text: str) -> Iterator[Launch]:
    if _UNIT.search(text):
        yield from _unit(text)
        return
    if len(blocks := text.split("\n```")) > 2:  # a page of Markdown: what is fenced in it counts
        for block in blocks[1::2]:
            with suppress(UsageError):
                yield from _found(block.partition("\n")[2])
        return
    yield from _documents(text) or _script(text)


def _documents(text: str) -> list[Launch]:
    left = [_MOST_NODES]
    return [launch for document in _structured(text) for launch in _walk(document, "", left=left)]


def _script(text: str) -> Iterator[Launch]:
    """Shell text; a here-document is text of its own, and one that cannot be read starts nothing."""
    outside, bodies = _divided(text)
    yield from in_text(outside)
    for body in bodies:
        with suppress(UsageError):
            yield from _unit(body) if _UNIT.search(body) else _documents(body) or in_text(body)


def _divided(text: str) -> tuple[str, list[str]]:
    """A script without the bodies of its here-documents (blank lines in their place), and the bodies."""
    outside: list[str] = []
    bodies: list[list[str]] = []
    end = ""
    for line in text.split("\n"):
        if end:
            bodies[-1].append(line)
            outside.append("")
            end = "" if line.strip() == end else end
            continue
        outside.append(line)
        if opened := _HERE.search(line):
            end = opened["end"]
            bodies.append([])
    return "\n".join(outside), ["\n".join(lines[:-1]) for lines in bodies]


def _structured(text: str) -> list[Any]:
    """The documents of a YAML or JSON text; none if it is something else."""
    if not (_YAML.search(text) or text.lstrip().startswith("[") or _is_settings(text)):
        return []
    if _depth(text) > _DEEPEST:
        return []
    try:
        documents = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError):
        return []
    return [document for document in documents if isinstance(document, dict | list)]


def _depth(text: str) -> int:
    """How deep brackets nest at the most; the YAML reader takes seconds for what is nested without end."""
    deepest = now = 0
    for bracket in re.finditer(r"[][{}]", text):
        now += 1 if bracket[0] in "[{" else -1
        deepest = max(deepest, now)
    return deepest


def _is_settings(text: str) -> bool:
    lines = text.splitlines()
    return bool(lines) and any(":" in line for line in lines) and all(_SETTINGS.fullmatch(line) for line in lines)


def _unit(text: str) -> Iterator[Launch]:
    """A systemd unit: ExecStart with its continued lines, and Environment before or behind it."""
    environment: list[tuple[str, Word]] = []
    started: list[Launch] = []
    joined = re.sub(r"\\\n", " \\\n", re.sub(r"^[#;].*\n", "\n", text, flags=re.MULTILINE))
    for match in re.finditer(r"^(?P<key>ExecStart|Environment)[ \t]*=(?P<value>(?:.*\\\n)*.*)$", joined, re.MULTILINE):
        line = joined.count("\n", 0, match.start()) + 1
        words = [word for command in commands(match["value"]) for word in command]
        if match["key"] == "Environment":
            environment.extend(pair for word in words if (pair := assignment(word.text, line, known=word.known)))
            continue
        if words:
            words[0] = replace(words[0], text=words[0].text.lstrip("@-:+!|"))
        specified = [
            replace(word, line=word.line + line - 1, known=word.known and "%" not in word.text) for word in words
        ]
        started.extend(replace(launch, where=f"line {line}") for launch in in_words(specified))
    yield from (replace(launch, environment=(*environment, *launch.environment)) for launch in started)


def _walk(node: Any, where: str, *, left: list[int]) -> Iterator[Launch]:
    """Every container of a compose file or manifest, or the engine's own settings; aliases cannot make it endless."""
    left[0] -= 1
    if left[0] < 0 or where.count(".") > 12:
        return
    if isinstance(node, list):
        if not where and node and all(isinstance(item, str) for item in node):
            yield from in_words([_word(item) for item in node])
        for at, item in enumerate(node):
            yield from _walk(item, f"{where}.{at}".lstrip("."), left=left)
    elif isinstance(node, dict):
        if not where and (own := _settings(node)):
            yield own
        if any(key in node for key in ("command", "args", "entrypoint", "image")):
            yield from _container(node, where)
        for key, item in node.items():
            if isinstance(item, dict | list):
                yield from _walk(item, f"{where}.{key}".lstrip("."), left=left)


def _container(node: Mapping[str, Any], where: str) -> Iterator[Launch]:
    words = [word for key in ("entrypoint", "command", "args") for word in _listed(node.get(key))]
    image = node.get("image")
    environment = tuple(_environment(node.get("environment", node.get("env"))))
    named = _word(image) if isinstance(image, str) else Word("", 1)
    own = "entrypoint" not in node and not ("containers" in where and "command" in node)
    if not words and own and "vllm-openai" in named.text and ("services." in where or "containers" in where):
        yield Launch("image", (), (), environment, image=named.text, where=where)
    for launch in of_image(named, words, own=own):
        yield replace(launch, environment=(*environment, *launch.environment), where=where or launch.where)


def _listed(value: Any) -> Iterator[Word]:
    if isinstance(value, str):
        for command in commands(value.replace("\n", " ")):
            yield from command
    elif isinstance(value, list):
        yield from (_word(item) for item in value if isinstance(item, str | int | float))


def _word(value: Any) -> Word:
    text = {True: "true", False: "false"}.get(value) if isinstance(value, bool) else None
    text = str(value) if text is None else text
    return Word(text, 1, known=not re.search(r"\$[\w({]", text))


def _environment(value: Any) -> Iterator[tuple[str, Word]]:
    if isinstance(value, dict):
        yield from ((str(name), _word("" if item is None else item)) for name, item in value.items())
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict) and "name" in item and "value" in item:
            yield str(item["name"]), _word(item["value"])
        elif isinstance(item, str) and (pair := assignment(item, 1, known="$" not in item)):
            yield pair


def _settings(node: Mapping[Any, Any]) -> Launch | None:
    """The engine's own settings file (`--config`), told from others by the model that it names: keys are flags."""
    if not isinstance(node.get("model"), str) or {"services", "image", "kind", "command"} & set(node):
        return None
    words: list[Word] = []
    for key, value in node.items():
        words.extend(_as_flag(f"--{key}", value))
    return Launch("flags", (), tuple(words), where="settings")


def _as_flag(flag: str, value: Any) -> list[Word]:
    if isinstance(value, bool):
        return [Word(flag, 1)] if value else []
    if isinstance(value, dict):
        return [Word(flag, 1), Word(_as_json(value), 1)]
    if isinstance(value, list):
        items = [_word(_as_json(item) if isinstance(item, dict | list) else item) for item in value]
        return [Word(flag, 1), *items] if items else []
    return [Word(flag, 1), _word(value)]


def _as_json(value: Any) -> str:
    return json.dumps(value, default=str) if _fits(value, [_MOST_NODES]) else "{"


def _fits(node: Any, left: list[int]) -> bool:
    """Whether a value has a bounded number of parts; aliases may multiply them without end."""
    left[0] -= 1
    items = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return left[0] > 0 and all(_fits(item, left) for item in items)
