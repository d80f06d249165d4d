"""A Machine as JSON and back, so that one host's facts can be judged on another.

Writing is plain. Reading trusts nothing: a recording comes from a stranger's host, or from an editor. Every field is
held against its type in `doctor.machine`; what does not fit is refused by name. A field that is missing has its
default, so that an old recording stays readable; one that this version does not know is left out and noted.
"""

from __future__ import annotations

import functools
import json
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, asdict, fields
from typing import Any, TypeVar

from casemate.doctor.machine import Machine
from casemate.errors import UsageError

SCHEMA_VERSION = 1

T = TypeVar("T")

_LONGEST_TEXT = 4096
_MOST_ITEMS = 4096
_LARGEST = 1 << 63
_SHOWN_BITS = 128
_MAY_BE_NEGATIVE = frozenset({"temperature_c", "temperature_slowdown_c"})
_HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")
_REMEDY = "make it anew with `casemate doctor --json`"


def to_json(machine: Machine) -> dict[str, Any]:
    """The facts as JSON values: every field by its name, tuples as lists, None as null."""
    return dict(plain(machine))


def plain(value: Any) -> Any:
    """Any value of `doctor.machine` as JSON values."""
    if hasattr(value, "__dataclass_fields__"):
        value = asdict(value)
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


def parse(text: str | bytes, *, where: str = "") -> tuple[Machine, tuple[str, ...]]:
    """As `from_json`, from the text of a recording.

    Raises:
        UsageError: it is no JSON, or see `from_json`.
    """
    try:
        value = json.loads(text, parse_constant=_not_a_number)
    except (ValueError, RecursionError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else str(error)[:120]
        raise UsageError(f"the machine's recording is no JSON: {why}", where=where, remedy=_REMEDY) from error
    return from_json(value, where=where)


def from_json(value: object, *, where: str = "") -> tuple[Machine, tuple[str, ...]]:
    """The facts that a recording holds.

    Args:
        value: a machine as `to_json` gives it, or all of what `casemate doctor --json` prints (then its `machine`).
        where: the recording's name, for the errors.

    Returns:
        The machine, and a note for every field that was left out because this version does not know it.

    Raises:
        UsageError: it is no machine, or of a later schema, or a field's value cannot be; the error names the field.
    """
    reading = _Reading(where)
    whole = reading.mapping(value, "the recording")
    version = whole.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise reading.refused("schema_version", f"{SCHEMA_VERSION}", got=version)
    bare = {name: item for name, item in whole.items() if name != "schema_version"}
    machine = reading.record(Machine, whole.get("machine", bare), path="")
    return machine, tuple(reading.notes)


def facts(kind: type[T], value: object, *, where: str = "") -> T:
    """One value of `doctor.machine` (a Card, a Driver) from JSON values; raises as `from_json` does."""
    return _Reading(where).record(kind, value, path="")


class _Reading:
    """One recording being read: where it is, and what was left out so far."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.notes: list[str] = []

    def refused(self, path: str, wanted: str, *, got: object) -> UsageError:
        short = isinstance(got, (str, float, type(None))) or (isinstance(got, int) and got.bit_length() < _SHOWN_BITS)
        shown = repr(got) if short else f"a value of type {type(got).__name__}"
        what = f"the machine's recording has a wrong {path or 'value'}: {wanted} is wanted, got {shown[:80]}"
        return UsageError(what, where=self._where, remedy=_REMEDY)

    def mapping(self, value: object, path: str) -> Mapping[str, object]:
        if not isinstance(value, dict):
            raise self.refused(path, "an object", got=value)
        return value

    def record(self, kind: type[T], value: object, *, path: str) -> T:
        given = self.mapping(value, path or kind.__name__.lower())
        known = _shape(typing.cast("typing.Hashable", kind))
        for name in given.keys() - known.keys():
            if len(self.notes) < _MOST_ITEMS:
                self.notes.append(f"{_joined(path, name[:80])} is no fact that this version knows; it was left out")
        found: dict[str, Any] = {}
        for name, (field, hint) in known.items():
            if name in given:
                found[name] = self.value(hint, given[name], path=_joined(path, name))
            elif field.default is MISSING and field.default_factory is MISSING:
                raise self.refused(_joined(path, name), "a value", got=None)
        return kind(**found)

    def value(self, hint: Any, value: object, *, path: str) -> Any:
        options = typing.get_args(hint)
        if isinstance(hint, types.UnionType):
            return None if value is None else self.value(_without_none(hint), value, path=path)
        if typing.get_origin(hint) is typing.Literal:
            if value not in options:
                raise self.refused(path, f"one of {', '.join(map(repr, options))}", got=value)
            return value
        if typing.get_origin(hint) is tuple:
            return self.items(options, value, path=path)
        if hasattr(hint, "__dataclass_fields__"):
            return self.record(hint, value, path=path)
        return self.scalar(hint, value, path=path)

    def items(self, options: tuple[Any, ...], value: object, *, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) > _MOST_ITEMS:
            raise self.refused(path, f"a list of at most {_MOST_ITEMS}", got=value)
        if options[-1] is Ellipsis:
            return tuple(self.value(options[0], item, path=f"{path}[{place}]") for place, item in enumerate(value))
        if len(value) != len(options):
            raise self.refused(path, f"a list of {len(options)}", got=value)
        pairs = enumerate(zip(options, value, strict=True))
        return tuple(self.value(hint, item, path=f"{path}[{place}]") for place, (hint, item) in pairs)

    def scalar(self, hint: type, value: object, *, path: str) -> object:
        if hint is str:
            if not isinstance(value, str) or len(value) > _LONGEST_TEXT or _HALF_A_CHARACTER.search(value):
                raise self.refused(path, f"a text of at most {_LONGEST_TEXT} characters", got=value)
            return value
        if hint is bool:
            if not isinstance(value, bool):
                raise self.refused(path, "true or false", got=value)
            return value
        return self.number(hint, value, path=path)

    def number(self, hint: type, value: object, *, path: str) -> int | float:
        fits = isinstance(value, int) or (hint is float and isinstance(value, float))
        if not fits or isinstance(value, bool):
            raise self.refused(path, "a whole number" if hint is int else "a number", got=value)
        number = typing.cast("int | float", value)
        least = -_LARGEST if path.rpartition(".")[2] in _MAY_BE_NEGATIVE else int(path == "cores")
        if not least <= number < _LARGEST:  # nor is NaN
            raise self.refused(path, f"a number from {least} to 2^63", got=value)
        return number


@functools.cache
def _shape(kind: Any) -> dict[str, tuple[Field[Any], Any]]:
    hints = typing.get_type_hints(kind)
    return {field.name: (field, hints[field.name]) for field in fields(kind)}


def _without_none(hint: Any) -> Any:
    return next(option for option in typing.get_args(hint) if option is not type(None))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _not_a_number(name: str) -> float:
    raise ValueError(f"{name} is no number")
