"""Frozen values as JSON and back, by their type hints: dataclasses as lists of fields, mappings as lists of pairs.

Reading builds nothing but the dataclasses that the asked type names, whatever the bytes say. Pure.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import orjson

from casemate.agents.audit.facts.values import Kept, Value

_Way = Callable[[Any], Any]


def packed(value: object, kind: Any) -> bytes:
    """A value as one line of JSON.

    Args:
        value: what is written.
        kind: its type: a plain one, an enum, a dataclass, a tuple, list, frozenset, mapping or union of such.
    """
    raw = _form(kind).pack(value)
    try:
        return orjson.dumps(raw)
    except orjson.JSONEncodeError:  # half a surrogate pair: a file name that is no UTF-8, an escape in audited code
        return json.dumps(raw).encode()


def unpacked(data: bytes, kind: Any) -> Any:
    """The value that `packed` wrote for this type.

    Raises:
        ValueError: the bytes are not what `packed` writes for it.
    """
    try:
        return _form(kind).unpack(_loaded(data))
    except (TypeError, IndexError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError("not what was written for this type") from error


def _loaded(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


@dataclass(frozen=True, slots=True)
class _Form:
    pack: _Way
    unpack: _Way


@cache
def _form(kind: Any) -> _Form:
    if kind is Value:  # holds others of its kind, so its form is asked for when there is one
        kept = Value.kept
        return _Form(lambda value: _form(Kept).pack(kept(value)), lambda raw: Value.of_kept(_form(Kept).unpack(raw)))
    if is_dataclass(kind):
        return _record(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _Form(lambda member: member.value, kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _union(inner)
    if origin is None or origin is Literal:
        return _plain(inner or (kind,), exact=bool(inner))
    return _collection(origin, inner)


def _collection(origin: Any, inner: tuple[Any, ...]) -> _Form:
    if issubclass(origin, Mapping):
        return _mapping(*map(_form, inner))
    if origin is tuple and inner[-1] is not Ellipsis:
        return _row([_form(one) for one in inner])
    item, made = _form(inner[0]), origin
    if origin is frozenset:
        return _Form(lambda found: sorted(map(item.pack, found)), lambda raw: frozenset(map(item.unpack, raw)))
    return _Form(lambda found: [item.pack(one) for one in found], lambda raw: made(map(item.unpack, raw)))


def _plain(kinds: tuple[Any, ...], *, exact: bool) -> _Form:
    if kinds == (str,):  # a project's paths and names come again thousands of times; TypeError for what is no text
        return _Form(_same, sys.intern)

    def unpack(raw: Any) -> Any:
        if raw not in kinds if exact else type(raw) is not kinds[0]:
            raise TypeError(type(raw))
        return raw

    return _Form(_same, unpack)


def _record(kind: Any) -> _Form:
    hints = get_type_hints(kind)
    ways = [(field.name, _form(hints[field.name])) for field in fields(kind)]
    packs = [(name, form.pack) for name, form in ways]
    unpacks = [form.unpack for _, form in ways]

    def pack(value: Any) -> list[Any]:
        return [way(getattr(value, name)) for name, way in packs]

    def unpack(raw: Any) -> Any:
        return kind(*[way(part) for way, part in zip(unpacks, raw, strict=True)])

    return _Form(pack, unpack)


def _union(kinds: tuple[Any, ...]) -> _Form:
    """Each value with the number of its kind before it."""
    numbers = {get_origin(kind) or kind: number for number, kind in enumerate(kinds)}
    forms = [_Form(_same, _same) if kind is NoneType else _form(kind) for kind in kinds]

    def pack(value: Any) -> list[Any]:
        number = numbers[type(value)]
        return [number, forms[number].pack(value)]

    def unpack(raw: Any) -> Any:
        number, value = raw
        return forms[number].unpack(value)

    return _Form(pack, unpack)


def _row(forms: list[_Form]) -> _Form:
    return _Form(
        lambda found: [form.pack(one) for form, one in zip(forms, found, strict=True)],
        lambda raw: tuple(form.unpack(one) for form, one in zip(forms, raw, strict=True)),
    )


def _mapping(key: _Form, value: _Form) -> _Form:
    return _Form(
        lambda found: [[key.pack(name), value.pack(held)] for name, held in found.items()],
        lambda raw: {key.unpack(name): value.unpack(held) for name, held in raw},
    )


def _same(value: Any) -> Any:
    return value
