"""What remains of a file once its tree is dropped: enough to link a project, small enough to keep. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from casemate.agents.audit.facts.values import NOTHING, Parameter, Taints, Value, from_origin
from casemate.finding import Confidence, Location


@dataclass(frozen=True, slots=True)
class Hit:
    """A place that is weak, or would be if something untrusted reached it.

    `kind` is the kind of sink (`sql`); empty where the place is weak by itself and `taints` do not matter. `code` is
    the source text of the span and `evidence` its whole lines, secrets masked; `built` says whether the sink's value
    was put together from pieces, `suppressed` whether the source carries a suppression mark for it, `scope` is the
    dotted name of the function or class around it.
    """

    rule: str
    location: Location
    code: str
    evidence: str
    confidence: Confidence = Confidence.HIGH
    kind: str = ""
    taints: Taints = field(default_factory=dict)
    built: bool = False
    suppressed: bool = False
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that may lead to a function of the project.

    `name` is the access path of what is called; empty or a bare `.method` where only values tell what that is.
    `arguments` by position (`0`), keyword (`name`), `*N` for what is spread from position N on, and `**`; `receiver`
    is what the call is a method of, or the called value itself; `text` is its first line, secrets masked.
    """

    name: str
    location: Location
    arguments: Mapping[str, Value]
    receiver: Value = NOTHING
    text: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """What calling a function means.

    `guards` are kinds that a true result clears on a parameter, `ensures` kinds that every normal return clears on it,
    `changes` what it puts into its arguments, `instance` what a constructor stores in the attributes. `variadic` and
    `keywords` are the names of `*args` and `**kwargs`; `abstract` says that it does nothing, `computed` that it is read
    like an attribute.
    """

    name: str
    parameters: tuple[str, ...]
    returns: Value = NOTHING
    guards: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ensures: Mapping[str, frozenset[str]] = field(default_factory=dict)
    method: bool = False
    variadic: str = ""
    keywords: str = ""
    changes: Mapping[str, Value] = field(default_factory=dict)
    instance: Mapping[str, Value] = field(default_factory=dict)
    abstract: bool = False
    computed: bool = False


@dataclass(frozen=True, slots=True)
class Module:
    """The summary of one file. `aliases` say what a global name stands for, `bases` the bases of each class.

    `stars` are the modules whose names are all imported. `remarks` are what the reader must know of how it was read;
    `unread` says which part was not analysed (the file counts as failed, its hits stand), `skipped` why nothing of it
    was, on purpose; `searched` that it is no code and was searched line by line only.
    """

    path: str
    name: str
    hits: tuple[Hit, ...] = ()
    calls: Mapping[str, Call] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    stored: Mapping[tuple[str, str], Value] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    stars: tuple[str, ...] = ()
    bases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    unread: str = ""
    skipped: str = ""
    searched: bool = False


def constructor(owner: str, fields: tuple[str, ...]) -> Function:
    """What making a record means: each argument becomes the attribute of its name."""
    name = f"{owner}.__init__"
    stored = {key: from_origin(Parameter(name, key)) for key in fields}
    return Function(name, ("self", *fields), method=True, instance=stored)
