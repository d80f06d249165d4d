"""What of a call in JavaScript does harm if it is untrusted: an address, a statement, a body, a program."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from casemate.agents.audit.checks.backtracking import Cost, worst_case
from casemate.agents.audit.checks.words import words
from casemate.agents.audit.facts.values import NOTHING, Value, gather
from casemate.agents.audit.javascript.lexicon import DATABASE_PACKAGES, DATABASES
from casemate.agents.audit.javascript.notes import Notes
from casemate.agents.audit.javascript.patterns import split

_SHELLS = re.compile(r"(?:^|/|\\)(?:ba|z|k|da)?sh(?:\.exe)?$|^cmd(?:\.exe)?$|powershell|pwsh")
_OF_PATTERN = frozenset({"test", "exec"})
_OF_TEXT = frozenset({"match", "matchAll", "replace", "replaceAll", "search", "split"})
_RECORDS = (".findByPk()", ".findById()", ".findOne()", ".findOneBy()", ".findOneOrFail()")
_ADDRESS_KEYS = ("url", "uri", "baseURL", "host", "hostname", "href")
_PLAIN = re.compile(r"json|text/(?!html)|^te?xt$|octet-stream|image/|csv|pdf")


@dataclass(frozen=True, slots=True)
class Invocation:
    """A call with its values.

    `name` is the access path, `method` its last part, `owner` the text of what the method is called on, `sends` the
    content type that the answer was given before.
    """

    node: Node
    name: str
    method: str
    owner: str
    receiver: Value
    args: tuple[Value, ...]
    notes: Notes
    sends: str = ""
    new: bool = False

    def argument(self, position: int) -> Value:
        """An argument by position, from the end where negative; NOTHING where it is not given."""
        return self.args[position] if -len(self.args) <= position < len(self.args) else NOTHING

    def option(self, position: int, key: str) -> object:
        """The constant under a key of an object that is an argument; UNKNOWN's like where it is not known."""
        return (self.argument(position).items or {}).get(key, NOTHING).constant


def first(call: Invocation) -> Value:
    """The first argument."""
    return call.argument(0)


def second(call: Invocation) -> Value:
    """The second argument."""
    return call.argument(1)


def every(call: Invocation) -> Value:
    """All arguments."""
    return gather(*call.args)


def both_paths(call: Invocation) -> Value:
    """The first two arguments."""
    return gather(call.argument(0), call.argument(1))


def spawned(call: Invocation) -> Value:
    """The program, or what a shell is given to read."""
    shell = any(
        call.option(position, "shell") not in {False, None} for position in (1, 2) if _has(call, position, key="shell")
    )
    if shell:
        return gather(call.argument(0), call.argument(1))
    program = call.argument(0)
    if isinstance(program.constant, str) and _SHELLS.search(program.constant):
        return Value(taints=call.argument(1).everything(), marks=frozenset({"built"}))
    return Value(taints=program.taints, marks=program.marks)


def _has(call: Invocation, position: int, *, key: str) -> bool:
    return key in (call.argument(position).items or {})


def address(call: Invocation) -> Value:
    """Where a request goes: an address, or the options that hold it."""
    first = call.argument(0)
    if first.items is None:
        return first
    return gather(*(first.items[key] for key in _ADDRESS_KEYS if key in first.items))


def rooted(call: Invocation) -> Value:
    """A path, unless a folder is named that it may not leave."""
    return NOTHING if _has(call, 1, key="root") else call.argument(0)


def target(call: Invocation) -> Value:
    """The address of a redirect; as a whole, an own address leads nowhere else."""
    found = call.argument(-1)
    return NOTHING if "own" in found.marks else found


def location_header(call: Invocation) -> Value:
    """The value of a `Location` header, set alone or with others."""
    if call.method == "writeHead":
        headers = call.argument(-1).items or {}
        return next((headers[key] for key in headers if str(key).lower() == "location"), NOTHING)
    name = call.argument(0).constant
    return second(call) if isinstance(name, str) and name.lower() == "location" else NOTHING


def sent(call: Invocation) -> Value:
    """What an answer is made of, where it can be a page: objects go out as JSON."""
    body = call.argument(0)
    if body.items is not None or "container" in body.marks or _PLAIN.search(call.sends):
        return NOTHING
    plain_sender = call.method in {"write", "end"} or call.owner.startswith("reply")
    if plain_sender and "markup" not in body.marks and "html" not in call.sends:
        return NOTHING
    return body


def web_response(call: Invocation) -> Value:
    """The body of a `Response` that says that it is a page."""
    headers = (call.argument(1).items or {}).get("headers", NOTHING).items or {}
    kind = next((str(value.constant) for key, value in headers.items() if str(key).lower() == "content-type"), "")
    return call.argument(0) if "html" in kind else NOTHING


def jquery(call: Invocation) -> Value:
    """What a method of jQuery takes as markup."""
    return every(call) if call.receiver.name.startswith(("$()", "jQuery()", "jquery()")) else NOTHING


def script_text(call: Invocation) -> Value:
    """`setTimeout("…" + x)`: only a text is evaluated."""
    first = call.argument(0)
    return first if "built" in first.marks or first.name else NOTHING


def statement(call: Invocation) -> Value:
    """The text of an SQL statement: one that reads like SQL, or whatever a database is given."""
    first = call.argument(0)
    if first.items is not None:
        first = first.items.get("sql", first.items.get("text", NOTHING))
    if "sql" in first.marks:
        return first
    return first if call.method in {"query", "execute", "raw"} and _is_database(call) and _is_text(first) else NOTHING


def _is_text(value: Value) -> bool:
    return "container" not in value.marks and not value.name.endswith("()")


def _is_database(call: Invocation) -> bool:
    last = call.owner.replace("this.", "").split("(")[0].rpartition(".")[2]
    return bool(words(last) & DATABASES) or call.receiver.name.startswith(DATABASE_PACKAGES)


def condition(call: Invocation) -> Value:
    """A condition that is put together for a query builder."""
    first = call.argument(0)
    return first if "built" in first.marks and "createQueryBuilder" in call.owner else NOTHING


def query_document(call: Invocation) -> Value:
    """A filter whose fields may be objects with operators of their own; `$eq` takes what it is given as a value."""
    if not (call.notes.imports("mongodb", "mongoose", "monk", "mongojs") or "collection(" in call.owner):
        return NOTHING
    return _fields(call.argument(0), top=True)


def _fields(value: Value, *, top: bool = False) -> Value:
    if value.items is None:
        return value if value.name and (not top or "container" in value.marks) else Value(taints=value.taints)
    return gather(*(_fields(item) for key, item in value.items.items() if not str(key).startswith(("$eq", "$where"))))


def where_text(call: Invocation) -> Value:
    """The program text under `$where`."""
    return (call.argument(0).items or {}).get("$where", NOTHING)


def filter_text(call: Invocation) -> Value:
    """What an LDAP search is told to look for."""
    if not call.notes.imports("ldapjs", "ldapts"):
        return NOTHING
    return gather(call.argument(0), (call.argument(1).items or {}).get("filter", NOTHING))


def entities_on(call: Invocation) -> Value:
    """A document that is read with its entities expanded."""
    return call.argument(0) if call.option(1, "noent") is True or call.option(1, "replaceEntities") is True else NOTHING


def matched(call: Invocation) -> Value:
    """A text that is matched with an expression that can take exponential time."""
    for pattern, subject in ((call.receiver, call.argument(0)), (call.argument(0), call.receiver)):
        if "regex" in pattern.marks and call.method in (_OF_PATTERN if pattern is call.receiver else _OF_TEXT):
            worst = worst_case(split(str(pattern.constant))[0])
            return subject if worst is Cost.EXPONENTIAL else NOTHING
    return NOTHING


def fields_of_record(call: Invocation) -> Value:
    """A whole body that is merged into a record of a database."""
    whole = call.args if call.name == "Object.assign" else (call.receiver, *call.args)
    if not whole or not whole[0].name.endswith(_RECORDS):
        return NOTHING
    return gather(*(value for value in whole[1:] if "container" in value.marks))


def fields_of_model(call: Invocation) -> Value:
    """A whole body given to a model of a mapper that takes every field."""
    if not call.notes.imports("mongoose", "sequelize", "typeorm", "objection") or not call.owner[:1].isupper():
        return NOTHING
    bodies = [value for value in call.args if "container" in value.marks and value.name.endswith(("body", "payload"))]
    return gather(*bodies)


def uploaded(call: Invocation) -> Value:
    """Where an uploaded file is moved to."""
    return call.argument(0) if len(call.args) <= 2 and "built" in call.argument(0).marks else NOTHING
