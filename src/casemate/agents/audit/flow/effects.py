"""What a call gives: untrusted data, cleaned data, a member of a container, or what the project's code returns."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace

from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.record import Record
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.syntax import place
from casemate.agents.audit.facts.values import NOTHING, Source, Value, gather, merge, of_elements
from casemate.agents.audit.flow import leads, members, results, texts
from casemate.agents.audit.sinks.cleaning import cleaned, restored
from casemate.agents.audit.vocabulary.cleaners import NUMBER
from casemate.agents.audit.vocabulary.frameworks import JSON_DATA, KEYED_READS, OWN_ADDRESS, REQUEST_DATA, REQUESTS
from casemate.agents.audit.vocabulary.lexicon import (
    EVERYTHING,
    EXTENSIONS,
    JOINERS,
    NORMALIZERS,
    PATH_KIN,
    SOCKET_READS,
    SOURCES,
    URL_PARSERS,
)

_Effect = Callable[[Point, Invocation], Value | None]
_PATH = "pathlib.Path()"
_URL = frozenset({"url"})
_PRIVILEGE = re.compile(r"(?:^|_)(?:admin|staff|superuser|roles?|permissions?|balance|credits?|verified|owner)(?:_|$)")
_UNTOLD = frozenset({"sum", "uuid.uuid5", "uuid.uuid3", "range"})
"""Calls whose results are numbers, or made of their arguments in a way that shows nothing of them."""


def result(here: Point, invocation: Invocation) -> Value:
    """The value of a call; of one that nobody knows, everything that went in may come out."""
    for effect in _EFFECTS:
        found = effect(here, invocation)
        if found is not None:
            return found
    if invocation.name in _UNTOLD or _suffix(invocation) in {".rfind", ".getint", ".getfloat", ".getboolean"}:
        return NOTHING
    whole = gather(called_of(invocation), *invocation.args, *invocation.keywords.values())
    return replace(whole, marks=_carried(invocation))


def called_of(invocation: Invocation) -> Value:
    """What a method is of, or what is called: as dangerous as its result is."""
    receiver, function = invocation.receiver, invocation.function
    if any(isinstance(origin, Source) for origin in function.taints):
        return gather(receiver, function)
    return receiver if receiver.everything() else function


def read(record: Record, owner: str, *, node: ast.Attribute) -> Value | None:
    """What an attribute of this access path brings in from outside; None where it is a plain member."""
    name = f"{owner}.{node.attr}"
    if is_converted(record, owner, key=node.attr):
        return NOTHING
    if node.attr == "data" and is_form_field(record, owner):
        return record.untrusted(name, node)
    if node.attr in REQUEST_DATA and is_request(owner):
        return request_data(record, name, node=node)
    return record.untrusted(name, node, kind=SOURCES[name]) if owner and name in SOURCES else None


def request_data(record: Record, name: str, *, node: ast.AST) -> Value:
    """Data of a request. Only what is parsed from JSON can be more than text."""
    value = record.untrusted(name, node, note=f"untrusted input: {name.removeprefix('flask.').removeprefix('web.')}")
    if name.rpartition(".")[2] in OWN_ADDRESS:
        value = replace(value.clear({"redirect", "ssrf"}), name=name)
    if name.rpartition(".")[2] in JSON_DATA:
        return value.marked("json")
    return replace(value.clear({"nosql"}), name=name)


def is_request(name: str) -> bool:
    """Whether an access path is a request of some web framework."""
    return name in REQUESTS or name.endswith("web.request")


def is_converted(record: Record, owner: str, *, key: str) -> bool:
    """Whether a parser or form has made this field a number or one of a fixed set."""
    if owner.endswith(".parse_args()"):
        return key in record.clean_options
    form, _, part = owner.rpartition(".")
    if part in {"cleaned_data", "validated_data"}:
        return record.fields.get(form, {}).get(key, frozenset()) >= NUMBER
    return False


def is_form_field(record: Record, name: str) -> bool:
    """Whether an access path is a text field of a form that fills itself from the request (`LoginForm().user`)."""
    form, _, attribute = name.rpartition(".")
    last = form.removesuffix("()").rpartition(".")[2]
    if not (form.endswith("Form()") and last != "Form" and record.imports("flask", "flask_wtf", "wtforms")):
        return False
    return not record.fields.get(form, {}).get(attribute, frozenset()) >= NUMBER


def keyed(record: Record, base: Value, *, key: object, node: ast.AST) -> Value | None:
    """One field of request data as its own origin; None where `base` is something else."""
    if isinstance(key, str) and is_converted(record, base.name, key=key):
        return NOTHING
    owner, _, part = base.name.rpartition(".")
    if not isinstance(key, str) or not is_request(owner) or part not in REQUEST_DATA or not base.taints:
        return None
    field = record.untrusted(f"{base.name}[{key!r}]", node)
    cleared = frozenset[str].intersection(*base.taints.values())
    return replace(field.clear(cleared), name=f"{base.name}[]", marks=base.marks)


def _carried(invocation: Invocation) -> frozenset[str]:
    marks = invocation.receiver.marks.union(invocation.function.marks, *(arg.marks for arg in invocation.args))
    return marks & {"json", "built", "extension", "normal", "fixed-host"}


def _whole(invocation: Invocation) -> Value:
    return gather(called_of(invocation), *invocation.args)


def _suffix(invocation: Invocation) -> str:
    return "." + invocation.name.rpartition(".")[2]


def _source(here: Point, invocation: Invocation) -> Value | None:
    name, suffix = invocation.name, _suffix(invocation)
    kind = SOURCES.get(name) or SOURCES.get(suffix)
    if kind is None or (suffix in SOCKET_READS and not here.record.imports("socket", "socketserver")):
        return None
    if any(isinstance(origin, Source) for origin in invocation.function.taints):
        return None  # what is called is already known to be untrusted
    note = f"untrusted input: {name.lstrip('.')}()"
    return here.record.untrusted(f"{name}()", invocation.node, kind=kind, note=note)


def _keyed_read(here: Point, invocation: Invocation) -> Value | None:
    method = invocation.name.rpartition(".")[2]
    if method not in KEYED_READS or not invocation.args:
        return None
    if invocation.keywords.get("type", NOTHING).name in {"int", "float", "uuid.UUID"}:
        return NOTHING
    found = keyed(here.record, invocation.receiver, key=invocation.args[0].constant, node=invocation.node)
    default = invocation.argument(1, "default")
    return replace(found, taints=merge(found.taints, default.everything())) if found is not None else None


def _cleaned(here: Point, invocation: Invocation) -> Value | None:
    owner = invocation.name.partition("(")[0].rpartition(".")[0]
    if not isinstance(invocation.node.func, ast.Attribute):
        owner = invocation.name  # a function: what methods of that name do says nothing
    made_here = invocation.name.partition("(")[0] in here.record.bases
    ours = (made_here or here.record.may_be_ours(owner)) and not {"objects", "query", "session"} & set(owner.split("."))
    kinds = cleaned(invocation, ours=ours)
    if kinds is None:
        return _restored(invocation)
    if EVERYTHING in kinds:
        return Value(name=f"{invocation.name}()")
    return replace(_whole(invocation).clear(kinds), marks=_carried(invocation))


def _dumped(here: Point, invocation: Invocation) -> Value | None:
    """`body.model_dump()` holds the declared fields and no others; harmless unless one of them is a privilege."""
    node = invocation.node.func
    if _suffix(invocation) != ".model_dump" or not isinstance(node, ast.Attribute):
        return None
    declared = here.record.fields.get(invocation.receiver.name, {})
    known = [key for key in here.scope.parts if key.startswith(f"{place(node.value)}.")]
    if any(_PRIVILEGE.search(field.rpartition(".")[2]) for field in (*declared, *known)):
        return None
    return replace(_whole(invocation).clear({"mass"}), marks=_carried(invocation))


def _rebuilt(here: Point, invocation: Invocation) -> Value | None:
    """An address whose host the program puts in: `urlunsplit(("https", "a.example", …))`, `_replace(netloc=…)`."""
    del here
    parts = invocation.argument(0).items or {}
    if invocation.name in {"urllib.parse.urlunsplit", "urllib.parse.urlunparse"}:
        host = parts.get(1, NOTHING)
    elif _suffix(invocation) == "._replace":
        host = invocation.keywords.get("netloc", NOTHING)
    else:
        return None
    if not (isinstance(host.constant, str) and host.constant):
        return None
    return replace(gather(_whole(invocation), *invocation.keywords.values()).clear({"ssrf", "redirect"}), marks=_URL)


def _restored(invocation: Invocation) -> Value | None:
    """What takes an escape off gives back the harm that the escape had taken."""
    kinds = restored(invocation)
    if not kinds:
        return None
    whole = _whole(invocation)
    taints = {origin: cleared - kinds for origin, cleared in whole.taints.items()}
    return Value(taints=taints, marks=_carried(invocation) | ({"json"} if "nosql" in kinds else set()))


def _paths(here: Point, invocation: Invocation) -> Value | None:
    """Paths remember whether they are normal and whether they were put together."""
    del here
    name, suffix, marks = invocation.name, _suffix(invocation), _carried(invocation)
    whole = _whole(invocation)
    if suffix in {".resolve", ".joinpath", ".absolute"}:
        more = {".resolve": {"normal"}, ".joinpath": {"built"}, ".absolute": set[str]()}[suffix]
        return replace(whole, marks=marks | more, name=_PATH)
    if name in NORMALIZERS:
        return replace(whole, marks=marks | {"normal"})
    if name in JOINERS:
        return replace(whole, marks=marks | {"built"})
    if name in PATH_KIN:
        return replace(whole, marks=marks | ({"built"} if len(invocation.args) > 1 else set()), name=_PATH)
    return None


def _parsed(here: Point, invocation: Invocation) -> Value | None:
    """What was taken apart: addresses, names of files, JSON, patterns, items of a mapping."""
    del here
    name, whole = invocation.name, _whole(invocation)
    if name in URL_PARSERS:
        return replace(whole, marks=frozenset({"url"}), name="urllib.parse.urlparse()")
    if name in EXTENSIONS:
        tail = whole.clear({"path"}).marked("extension")  # neither a separator nor two dots stand after the last dot
        return Value(items={0: whole, 1: tail}, marks=frozenset({"extension"}))
    if name in {"re.compile", "regex.compile"}:
        return replace(whole, constant=invocation.argument(0).constant, name="re.compile()")
    return None


def _configured(here: Point, invocation: Invocation) -> Value | None:
    """Parsers and template environments by how they were set up."""
    del here
    name, keywords = invocation.name, invocation.keywords
    if name.endswith("XMLParser") and isinstance(keywords.get("resolve_entities", NOTHING).constant, bool | str):
        return Value(marks=frozenset({"safe"}))  # or told already, at this very call
    if name.startswith("jinja2.") and name.endswith("Environment"):
        escaping = keywords.get("autoescape", NOTHING)
        return Value(name="jinja2.Environment(autoescape)" if escaping.name or escaping.constant is True else "")
    if name.startswith("jinja2.Environment(autoescape)") and name.endswith(".render"):
        return _whole(invocation).clear({"html"})
    return None


def _mapped(here: Point, invocation: Invocation) -> Value | None:
    """`map(shlex.quote, xs)`: each member as the function gives it."""
    function = invocation.argument(0)
    if invocation.name != "map" or len(invocation.args) != 2 or not function.name:
        return None
    inner = replace(invocation, name=function.name, function=function, args=(invocation.args[1].element(),))
    found = _cleaned(here, inner)
    return of_elements(found) if found is not None else None


_EFFECTS: tuple[_Effect, ...] = (
    _source,
    _keyed_read,
    _mapped,
    leads.handed,
    results.built_in,
    members.of_container,
    results.matched,
    results.formatted,
    _dumped,
    _rebuilt,
    _cleaned,
    _paths,
    _parsed,
    _configured,
    texts.of_text,
    results.made,
    leads.of_project,
)
