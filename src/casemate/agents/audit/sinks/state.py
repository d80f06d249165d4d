"""Where untrusted data enters what is trusted or kept: attributes of objects, the session, the log."""

from __future__ import annotations

import ast
import re
import sys

from casemate.agents.audit.facts.sink import Invocation, Sink
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.agents.audit.sinks.table import Table, all_of, joined, rows, sink
from casemate.agents.audit.vocabulary.frameworks import AUTHORITY_WORDS, FRAMEWORKS, is_session
from casemate.finding import Confidence

_MASS = ("mass-assignment", "mass")
_LOG = ("log-injection", "log")
_SESSION = Sink(
    "trust-boundary", "session", (0, 1), lambda call: is_session(call.name.rpartition(".")[0]), Confidence.MEDIUM
)

_LOG_METHODS = ".debug .info .warning .warn .error .critical .exception .log .success .trace .fatal"
_MAKERS = frozenset(
    {"create", "update", "values", "get_or_create", "update_or_create", "acreate", "aupdate", "create_user"}
)
_CHECKED_CLASSES = re.compile(
    r"(?:Schema|Form|Serializer|Validator|Error|Exception|Params|Filter|Config|Settings|Response|Request|In|DTO|Dto|Input)$"
)
_CHECKED_BASES = ("pydantic.", "typing.", "marshmallow.", "wtforms.", "enum.", "msgspec.")
_KNOWN = frozenset(sys.stdlib_module_names) | FRAMEWORKS | {"requests", "httpx", "jinja2", "pydantic", "marshmallow"}
_FIELD_NAME = re.compile(r"%(?:\(\w+\))?[-#0 +]*\d*(?:\.\d+)?[a-zA-Z%]")


def _spread(call: Invocation) -> Value:
    """Untrusted names among the keywords: what is known by a constant key was named by the program."""
    spread = call.keywords.get("**", NOTHING)
    return Value(taints=spread.taints)


def is_model(call: Invocation) -> bool:
    """Whether a call makes or changes a record and takes its fields by name."""
    if "**" not in call.keywords:
        return False
    last = call.name.rpartition(".")[2]
    root = call.name.partition(".")[0]
    made = last[:1].isupper() and root not in _KNOWN and not _CHECKED_CLASSES.search(last)
    checked = any(base.startswith(_CHECKED_BASES) for base in call.bases)
    return (made and not checked) or (
        last in _MAKERS and "." in call.name and not is_session(call.name.rpartition(".")[0])
    )


MODEL = sink(_MASS, when=is_model, reach=_spread)
"""A sink by the form of the call, whatever its name."""


def _fields(call: Invocation) -> Value:
    """`query.update(fields)`, `update(table).values(fields)`."""
    given = call.argument(0, "values")
    return Value(taints=given.taints) if not given.items else NOTHING


def _authorities(call: Invocation) -> Value:
    """What is put under names for who somebody is: there a number is no more trustworthy than a text."""
    given = (*(call.argument(0).items or {}).items(), *call.keywords.items())
    return all_of(value for key, value in given if AUTHORITY_WORDS.search(str(key)))


def _is_records(call: Invocation) -> bool:
    owner = call.name.rpartition(".")[0]
    return bool(re.search(r"\.query\b|\.filter(?:_by)?\(\)|\.where\(\)|sqlalchemy|\.insert\(\)", owner))


def _is_logger(call: Invocation) -> bool:
    """Whether the receiver looks like a logger (`logging`, `app.logger`, `log`)."""
    owner = call.name.rpartition(".")[0].lower()
    node = call.node.func
    shown = node.value.id.lower() if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) else owner
    return (
        bool(re.search(r"(?:^|_)log(?:ger|ging)?$", owner.rpartition(".")[2].rstrip("()")))
        or "getlogger" in owner
        or "get_logger" in owner
        or shown in {"log", "logger", "logging", "_log", "_logger"}
    )


_AUTHORITY = Sink(
    "trust-boundary",
    "authority",
    when=lambda call: is_session(call.name.rpartition(".")[0]),
    confidence=Confidence.MEDIUM,
    reach=_authorities,
)
TABLE: Table = joined(
    (
        rows(sink(_MASS, 1), "setattr builtins.setattr"),
        rows(sink(_MASS, reach=_fields), ".__dict__.update vars().update"),
        rows(sink(_MASS, when=_is_records, reach=_fields), ".update .values"),
        rows(_SESSION, ".update .setdefault .__setitem__"),
        rows(_AUTHORITY, ".update"),
        rows(sink(_LOG, 0, 1, 2, 3, 4, "msg", when=_is_logger), _LOG_METHODS),
        rows(sink(_LOG, 0, 1), "syslog.syslog"),
    )
)
