"""What a value must be: what the engine's parser refuses by an option's form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from casemate.plan.recipe.flags import Flag

_SIZE = re.compile(r"\d+(?:\.\d+)?[kmgtKMGT]?")
_HUMAN = re.compile(r'("(?:[^"\\]|\\.)*")|\b(\d+(?:\.\d+)?)[kmgtKMGT]\b')
_PAIR = re.compile(r"[^=,]*=\s*[-+]?\d+\s*")


def refused(flag: Flag, value: str) -> str:
    """Why the parser would refuse this value, as the end of a sentence; empty if it takes it."""
    if flag.closed and flag.form != "word":
        return "" if value in flag.values or value == "None" else f"must be one of {_listed(flag.values)}"
    return "".join(_REFUSALS[flag.form](flag, value)) if flag.form in _REFUSALS else ""


def _integer(flag: Flag, value: str) -> Iterator[str]:
    if value not in ("", "None") and not re.fullmatch(r"\s*[-+]?\d+(?:_\d+)*\s*", value):
        yield f"must be a whole number{_range(flag)}"


def _decimal(flag: Flag, value: str) -> Iterator[str]:
    del flag
    if value not in ("", "None") and not re.fullmatch(r"\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\s*", value):
        yield "must be a number"


def _size(flag: Flag, value: str) -> Iterator[str]:
    if flag.form == "length" and value in ("-1", "auto"):
        return
    if value in ("", "None"):
        return
    if not _SIZE.fullmatch(value):
        yield "must be a whole number, with k, m, g (thousands) or K, M, G (binary) behind it if you like"
    elif "." in value and value[-1] not in "kmgt":
        yield "takes a fraction with a decimal suffix (k, m, g) only"


def _json(flag: Flag, value: str) -> Iterator[str]:
    if value in ("", "None") or value in flag.values:
        return
    try:
        json.loads(_HUMAN.sub(lambda match: match[1] or "0", value))
    except (ValueError, RecursionError):
        yield "must be JSON (in a shell, in single quotes)"


def _pairs(flag: Flag, value: str) -> Iterator[str]:
    """As in 0.8 and 0.9: what is no JSON object is read as key=number, separated by commas."""
    if value in ("", "None") or re.match(r"{.*}$", value):
        yield from _json(flag, value)
    elif not all(_PAIR.fullmatch(item) for item in value.split(",")):
        yield "must be a JSON object, or key=number separated by commas"


def _truth(flag: Flag, value: str) -> Iterator[str]:
    del flag
    if value.lower() not in ("true", "false"):
        yield "must be true or false"


def _word(flag: Flag, value: str) -> Iterator[str]:
    if flag.closed and value.lower().replace("-", "_") not in flag.values:
        yield f"must be one of {_listed(flag.values)}"


_REFUSALS = {
    "int": _integer,
    "float": _decimal,
    "size": _size,
    "length": _size,
    "json": _json,
    "pairs": _pairs,
    "bool": _truth,
    "word": _word,
}


def _range(flag: Flag) -> str:
    return f", one of {_listed(flag.values)}" if flag.values else ""


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(values)
