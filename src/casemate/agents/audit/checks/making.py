"""What a call gives, and what a comprehension holds, where the walk over values does not know: a part of `meaning`."""

from __future__ import annotations

import ast
import string
from collections.abc import Callable, Hashable, Iterator, Mapping

from casemate.agents.audit.checks.passing import Asker, Function, Where, given, member, only, parameters, with_number
from casemate.agents.audit.facts.definitions import name_of
from casemate.agents.audit.facts.origins import ELEMENT
from casemate.agents.audit.facts.values import Value

_WRAPPERS = frozenset({"MappingProxyType", "staticmethod", "dict", "copy", "deepcopy", "frozenset", "list", "tuple"})
_NUMBERS = frozenset({"int", "getint"})
_UNWRAPPERS = frozenset({"encode", "b64decode", "urlsafe_b64decode", "fromhex", "unhexlify", "strip", "lower", "upper"})
_READS = frozenset({"getenv", "get", "getint", "getboolean", "pop", "setdefault"})
_MEMBERS = frozenset({"items", "values", "keys"})
_MAX_MEMBERS = 32


def called(reader: Asker, node: ast.Call, *, where: Where) -> Iterator[Value]:
    """The values that a call may give."""
    last, method = name_of(node.func), isinstance(node.func, ast.Attribute)
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    if last in _WRAPPERS and node.args:
        more = keywords(reader, node, where=where)
        for value in reader.of(node.args[0], where):
            yield Value(items={**value.items, **more}) if value.items else value
    elif last in _UNWRAPPERS and (node.args or method):
        inner = owner if owner is not None and (not node.args or last == "encode") else node.args[0]
        yield from reader.of(inner, where)
    elif last in _READS and owner is not None:
        found = _read(reader, node, table=owner, where=where)
        yield from map(_whole, found) if last in _NUMBERS else found
    elif last in _NUMBERS and node.args:
        yield from map(_whole, reader.of(node.args[0], where))
    elif last in _MEMBERS and owner is not None and not node.args:
        yield from (_members(value, last) for value in reader.of(owner, where) if value.items is not None)
    elif last in _MAKERS:
        yield from _MAKERS[last](reader, node, where=where)
    else:
        yield from _result(reader, node, where=where)


def comprehended(
    reader: Asker, node: ast.DictComp | ast.ListComp | ast.SetComp | ast.GeneratorExp, *, where: Where
) -> Iterator[Value]:
    """A table made of another one, member by member."""
    first, *more = node.generators
    if more or first.ifs:
        return
    items: dict[Hashable, Value] = {}
    for base in reader.of(first.iter, where):
        for element in list((base.items or {}).values())[:_MAX_MEMBERS]:
            inner = Where(where.function, {**where.known, **_bound(first.target, element)})
            key = reader.of(node.key, inner) if isinstance(node, ast.DictComp) else (Value(constant=len(items)),)
            made = reader.of(node.value if isinstance(node, ast.DictComp) else node.elt, inner)
            if len(key) == 1 and len(made) == 1 and isinstance(key[0].constant, Hashable):
                items[key[0].constant] = made[0]
    yield Value(items=items)


def keywords(reader: Asker, node: ast.Call, *, where: Where) -> dict[Hashable, Value]:
    """What a call passes by name."""
    items: dict[Hashable, Value] = {}
    for keyword in node.keywords:
        found = reader.of(keyword.value, where)
        if keyword.arg is None:
            for spread in found[:1]:
                items |= spread.items or {}
        else:
            items[keyword.arg] = only(found)
    return items


def _bound(target: ast.expr, element: Value) -> Mapping[str, tuple[Value, ...]]:
    """What the names of a loop are for one member."""
    if isinstance(target, ast.Name):
        return {target.id: (element,)}
    names = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    parts = element.items or {}
    return {name.id: (parts[at],) for at, name in enumerate(names) if isinstance(name, ast.Name) and at in parts}


def _members(value: Value, view: str) -> Value:
    """`table.items()`, `.values()`, `.keys()` as a sequence."""
    items = value.items or {}
    match view:
        case "values":
            members = list(items.values())
        case "keys":
            members = [Value(constant=key) for key in items]
        case _:
            members = [Value(items={0: Value(constant=key), 1: item}) for key, item in items.items()]
    return Value(items=dict(enumerate(members)))


def _whole(value: Value) -> Value:
    """The number that a text says."""
    text = value.constant
    return Value(constant=int(text)) if isinstance(text, str) and text.isdecimal() and len(text) < 20 else value


def _getattr(reader: Asker, node: ast.Call, *, where: Where) -> Iterator[Value]:
    for base in reader.of(node.args[0], where) if len(node.args) >= 2 else ():
        for key in reader.of(node.args[1], where):
            if base.name and isinstance(key.constant, str):
                yield with_number(f"{base.name}.{key.constant}")


def _module(reader: Asker, node: ast.Call, *, where: Where) -> Iterator[Value]:
    for value in reader.of(node.args[0], where) if node.args else ():
        if isinstance(value.constant, str):
            yield Value(name=value.constant)


def _chain(reader: Asker, node: ast.Call, *, where: Where) -> Iterator[Value]:
    layers = [value for layer in reversed(node.args) for value in reader.of(layer, where)[:1]]
    yield Value(items={key: item for layer in layers for key, item in (layer.items or {}).items()})


def _sections(reader: Asker, node: ast.Call, *, where: Where) -> Iterator[Value]:
    """`ConfigParser(defaults={…})`: every section has them."""
    defaults = next((k.value for k in node.keywords if k.arg == "defaults"), node.args[0] if node.args else None)
    for value in reader.of(defaults, where) if defaults is not None else ():
        yield Value(items={ELEMENT: value})


def _formatted(reader: Asker, node: ast.Call, *, where: Where) -> Iterator[Value]:
    """`"({0})+".format(part)` where all of it is known."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    args = [reader.of(argument, where) for argument in node.args]
    named = keywords(reader, node, where=where)
    for template in reader.of(owner, where) if owner is not None and all(len(ways) == 1 for ways in args) else ():
        text = _filled(template.constant, [ways[0] for ways in args], named=named)
        if text is not None:
            yield Value(constant=text)


def _filled(template: object, args: list[Value], *, named: Mapping[Hashable, Value]) -> str | None:
    if not isinstance(template, str):
        return None
    made, number = "", 0
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError:  # single braces: no template
        return None
    for literal, field, spec, conversion in fields:
        made += literal
        if field is None:
            continue
        at: Hashable = int(field) if field.isdecimal() else field or number
        number += not field
        value = (args[at] if at < len(args) else None) if isinstance(at, int) else named.get(at)
        if spec or conversion or value is None or not isinstance(value.constant, str | int):
            return None
        made += str(value.constant)
    return made


def _joined(reader: Asker, node: ast.Call, *, where: Where) -> Iterator[Value]:
    """`"|".join(parts)` where all parts are known."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) and node.args else None
    for glue in reader.of(owner, where) if owner is not None else ():
        for parts in reader.of(node.args[0], where):
            texts = [item.constant for item in (parts.items or {}).values()]
            if isinstance(glue.constant, str) and texts and all(isinstance(text, str) for text in texts):
                yield Value(constant=glue.constant.join(map(str, texts)))


def _read(reader: Asker, node: ast.Call, *, table: ast.expr, where: Where) -> Iterator[Value]:
    """`table.get(key, default)`; of what is not in the source the default."""
    tables = [base for base in reader.of(table, where) if base.items is not None]
    keys = reader.of(node.args[0], where) if node.args else ()
    found = [item for base in tables for key in keys for item in member(base, key.constant)]
    if found or len(node.args) < 2:
        yield from found
    else:
        yield from reader.of(node.args[1], where)


def _compiled(reader: Asker, node: ast.Call, *, where: Where) -> Iterator[Value]:
    """A compiled pattern is known by its text."""
    names = {value.name for value in reader.of(node.func, where)}
    texts = reader.of(node.args[0], where) if node.args and names & {"re.compile", "regex.compile"} else ()
    yield from (Value(name="re.compile()", constant=text.constant) for text in texts)


def _result(reader: Asker, node: ast.Call, *, where: Where) -> Iterator[Value]:
    last, record = name_of(node.func), reader.record
    ours = [f for f in record.definitions.functions if f.name == last and last]
    if not ours or not isinstance(node.func, ast.Name | ast.Attribute) or last in record.names:
        for known in reader.of(node.func, where):
            if known.name:
                yield Value(name=f"{known.name}()")
        return
    for target in ours[:2]:
        inner = _arguments(reader, node, target=target, where=where)
        for line in record.definitions.body(record.source.tree, target):
            if isinstance(line, ast.Return) and line.value is not None:
                yield from reader.of(line.value, Where(target, inner))


def _arguments(reader: Asker, node: ast.Call, *, target: Function, where: Where) -> Mapping[str, tuple[Value, ...]]:
    inner: dict[str, tuple[Value, ...]] = {}
    for name in parameters(target):
        passed = given(name, target, call=node)
        if passed is not None:
            inner[name] = reader.of(passed, where)
    if target.args.kwarg is not None:
        inner[target.args.kwarg.arg] = (Value(items=keywords(reader, node, where=where)),)
    return inner


_MAKERS: Mapping[str, Callable[..., Iterator[Value]]] = {
    "getattr": _getattr,
    "import_module": _module,
    "dict": lambda reader, node, where: iter((Value(items=keywords(reader, node, where=where)),)),
    "ChainMap": _chain,
    "ConfigParser": _sections,
    "format": _formatted,
    "join": _joined,
    "compile": _compiled,
}
