"""Built-in functions over containers: copies, pairs, the first that fits; what a sequence is known to hold. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace

from casemate.agents.audit.facts.origins import ELEMENT, KEYS
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import NOTHING, UNKNOWN, Value, in_order, join, merge, of_elements, of_list

_Builder = Callable[[Invocation], Value | None]


def exact(value: Value) -> bool:
    """Whether every member of a sequence is known by its place."""
    items = value.items
    return items is not None and not value.taints and all(type(k) is int for k in items) and ELEMENT not in items


def listed(value: Value) -> list[Value]:
    """The members of an exact sequence, in order."""
    items = value.items or {}
    return [items[key] for key in range(len(items)) if key in items]


def elements(value: Value) -> Value:
    """All that iterating over a value may give, together; of a dictionary its keys."""
    return value if value.items is None or in_order(value) else value.element()


def sliced(base: Value, where: slice | None) -> Value:
    """`base[low:high:step]`; `where` is None if a bound or the step is not known."""
    if isinstance(base.constant, str | bytes) and where is not None:
        return Value(constant=base.constant[where])
    if base.items is None:
        return replace(base, constant=UNKNOWN, name="", marks=base.marks - {"whole"})
    if exact(base) and where is not None:
        return replace(of_list(listed(base)[where]), marks=base.marks & {"literal"})
    return of_elements(base.take(UNKNOWN))


def united(first: Value, *others: Value | Mapping[str, Value]) -> Value:
    """A dictionary with the members of others put over its own."""
    result = first if first.items is not None else replace(first, items={})
    for other in others:
        if isinstance(other, Value):
            known = dict(other.items or {})
            somewhere, keys = known.pop(ELEMENT, NOTHING), known.pop(KEYS, NOTHING)
            result = replace(result, items={**(result.items or {}), **known})
            result = result.put_somewhere(keys, somewhere)
            if other.taints or other.items is None:
                marks = result.marks - {"literal"} | (other.marks & {"json"})
                result = replace(result, taints=merge(result.taints, other.taints), marks=marks)
        else:
            result = replace(result, items={**(result.items or {}), **{k: v for k, v in other.items() if k != "**"}})
            if "**" in other:
                result = united(result, other["**"])
    return result


def built(invocation: Invocation) -> Value | None:
    """The value of a built-in over containers; None for any other call."""
    make = _BUILDERS.get(invocation.name)
    return make(invocation) if make is not None else None


def _copy(invocation: Invocation) -> Value | None:
    if not invocation.args:
        return Value(items={}, marks=frozenset({"literal"}))
    given = invocation.args[0]
    if isinstance(given.constant, str) and len(given.constant) <= 64:
        return Value(items={i: Value(constant=c) for i, c in enumerate(given.constant)}, marks=frozenset({"literal"}))
    if given.items is None:
        return None
    if not in_order(given):
        return of_elements(given.element())
    return Value(given.taints, items=given.items, marks=given.marks - {"whole"})


def _mapping(invocation: Invocation) -> Value | None:
    given = invocation.argument(0) if invocation.args else Value(items={})
    result = Value(items={})
    if given.items is not None and not in_order(given):
        result = Value(given.taints, items=given.items)
    elif given.items is not None and exact(given):
        for pair in listed(given):
            key, item = pair.take(0), pair.take(1)
            plain = isinstance(key.constant, str)
            result = result.put(str(key.constant), item) if plain else result.put_somewhere(key, item)
    else:
        element = given.element()
        result = result.put_somewhere(element.take(0), element.take(1))
    for name, value in invocation.keywords.items():
        result = replace(result, taints=value.everything()) if name == "**" else result.put(name, value)
    return result


def _table(invocation: Invocation) -> Value | None:
    """`str.maketrans({"<": "…"})`, `str.maketrans("", "", "<>")`."""
    args = invocation.args
    if len(args) == 1:
        return args[0] if args[0].items is not None else None
    left, gone = args[0].constant if args else None, args[2].constant if len(args) > 2 else ""
    if not isinstance(left, str) or not isinstance(gone, str):
        return None
    return Value(items=dict.fromkeys(gone, Value(constant=None)))


def _defaulting(invocation: Invocation) -> Value | None:
    return Value(items={}) if len(invocation.args) <= 1 else None


def _reversed(invocation: Invocation) -> Value | None:
    given = invocation.argument(0)
    if exact(given):
        return of_list(reversed(listed(given)))
    return of_elements(given.take(UNKNOWN)) if given.items is not None else None


def _shuffled(invocation: Invocation) -> Value | None:
    given = invocation.argument(0)
    return of_elements(given.element()) if given.items is not None else None


def _numbered(invocation: Invocation) -> Value | None:
    return of_elements(Value(items={0: NOTHING, 1: invocation.argument(0).element()}))


def _zipped(invocation: Invocation) -> Value | None:
    return of_elements(Value(items={i: arg.element() for i, arg in enumerate(invocation.args)}))


def _next(invocation: Invocation) -> Value | None:
    found = invocation.argument(0).element()
    return join(found, invocation.args[1]) if len(invocation.args) > 1 else found


def _extreme(invocation: Invocation) -> Value | None:
    args = invocation.args
    return args[0].element() if len(args) == 1 and args[0].items is not None else None


def _bunch(invocation: Invocation) -> Value | None:
    """`SimpleNamespace(a=…)`."""
    items: dict[Hashable, Value] = {f".{name}": value for name, value in invocation.keywords.items() if name != "**"}
    spread = invocation.keywords.get("**", NOTHING)
    return Value(taints=spread.everything(), items={".": NOTHING, **items})


def _gathered(invocation: Invocation) -> Value | None:
    """`asyncio.gather(…)` gives a list in the order of its arguments."""
    return of_list(invocation.args)


def _passed(invocation: Invocation) -> Value | None:
    """What is given in comes out."""
    return invocation.args[0] if invocation.args else None


def _chained(invocation: Invocation) -> Value | None:
    result = NOTHING
    for arg in invocation.args:
        result = join(result, arg.element())
    return of_elements(result)


_BUILDERS: Mapping[str, _Builder] = {
    **dict.fromkeys(("list", "tuple", "iter", "collections.deque"), _copy),
    **dict.fromkeys(("set", "frozenset", "sorted"), _shuffled),
    **dict.fromkeys(("dict", "collections.OrderedDict", "types.MappingProxyType"), _mapping),
    **dict.fromkeys(("copy.copy", "copy.deepcopy", "asyncio.run", "asyncio.create_task"), _passed),
    **dict.fromkeys(("asyncio.ensure_future", "asyncio.shield", "asyncio.wait_for", "contextlib.nullcontext"), _passed),
    **dict.fromkeys(("types.SimpleNamespace", "argparse.Namespace"), _bunch),
    **dict.fromkeys(("next", "anext", "random.choice", "secrets.choice"), _next),
    **dict.fromkeys(("max", "min"), _extreme),
    "str.maketrans": _table,
    "collections.defaultdict": _defaulting,
    "reversed": _reversed,
    "enumerate": _numbered,
    "zip": _zipped,
    "itertools.chain": _chained,
    "asyncio.gather": _gathered,
}
