"""What lies in a value: members by name, by key, and where a role or a library says that they come from outside."""

from __future__ import annotations

import re

from tree_sitter import Node

from casemate.agents.audit.facts.values import Attribute, Value, from_origin
from casemate.agents.audit.javascript.lexicon import CONTAINERS, GLOBAL_OBJECTS, OWN_ADDRESSES, SOURCES
from casemate.agents.audit.javascript.notes import Notes

_NODE = re.compile(r"^node:")
_KEPT = frozenset({"sql", "markup", "normal", "built"})


def member(notes: Notes, node: Node, *, base: Value, key: object) -> Value:
    """The member of a value under a key; UNKNOWN for a key that is not known."""
    if isinstance(key, str):
        named = _named(notes, node, base=base, key=key)
        if named is not None:
            return named
        if base.items is not None and key in base.items:
            return base.items[key]
        if key == "length":
            return Value()
    if base.items is not None:
        found = base.take(int(key) if isinstance(key, str) and key.isdecimal() else key)
        return found if found.items is not None or found.everything() or not base.name else _of(found, base, key=key)
    return _of(Value(taints=base.everything()), base, key=key)


def _of(value: Value, base: Value, *, key: object) -> Value:
    name = f"{base.name}.{key}" if base.name and isinstance(key, str) else ""
    return Value(taints=value.taints, name=name, marks=base.marks & _KEPT)


def _named(notes: Notes, node: Node, *, base: Value, key: str) -> Value | None:
    """What a name tells: a source, an attribute of a class, a method of one."""
    if not base.name:
        return None
    if base.name.startswith("class:"):
        return _attribute(notes, base.name, key=key)
    full = key if base.name in GLOBAL_OBJECTS and f"{base.name}.{key}" not in SOURCES else f"{base.name}.{key}"
    if full == "document.location":
        full = "location"
    if full in SOURCES and (base.items is None or key not in base.items):
        return source(notes, node, name=full)
    if full != f"{base.name}.{key}":
        return Value(name=full)
    return None


def source(notes: Notes, node: Node, *, name: str) -> Value:
    """What comes in under a name of the vocabulary."""
    kind, cleared = SOURCES[name]
    found = notes.untrusted(node, shown_name(name), kind=kind, cleared=cleared)
    marks = {"own"} if name in OWN_ADDRESSES else set()
    if name in CONTAINERS:
        marks.add("container")
    return Value(taints=found.taints, name=name, marks=frozenset(marks))


def shown_name(name: str) -> str:
    """A name of the vocabulary as a reader knows it."""
    return name.replace("@", "").replace("()", "")


def _attribute(notes: Notes, owner: str, *, key: str) -> Value:
    """What methods of this class store under a name, or the method of that name."""
    method = notes.classes.get(owner.removeprefix("class:"), {}).get(key)
    if method is not None:
        return Value(name=method)
    return from_origin(Attribute(owner, key), notes.members.get((owner, key), ""))


def package(name: str) -> str:
    """A module as the vocabulary knows it (`node:fs/promises` is `fs.promises`)."""
    name = _NODE.sub("", name)
    return {"fs/promises": "fs.promises", "mysql2/promise": "mysql2", "jquery": "jQuery", "timers/promises": ""}.get(
        name, name
    )
