"""What remains of a file once its tree is dropped: enough to link a project, small enough to keep. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from casemate.agents.audit.facts.values import Taints
from casemate.finding import Confidence, Location


@dataclass(frozen=True, slots=True)
class Hit:
    """A place that is weak, or would be if something untrusted reached it.

    `kind` is the kind of sink (`sql`); empty where the place is weak by itself and `taints` do not matter. `code` is
    the source text of the span and `evidence` its whole lines, secrets masked; `built` says whether the sink's value
    was put together from pieces, `suppressed` whether the source carries a suppression mark for it.
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


@dataclass(frozen=True, slots=True)
class Call:
    """A call that may lead to a function of the project. `arguments` by position (`0`) or keyword (`name`)."""

    name: str
    location: Location
    arguments: Mapping[str, Taints]
    receiver: Taints


@dataclass(frozen=True, slots=True)
class Function:
    """What calling a function means.

    `returns` are taints of the result, `returned` its access path, `guards` kinds that a true result clears on a
    parameter, `ensures` kinds that every normal return clears on it.
    """

    name: str
    parameters: tuple[str, ...]
    returns: Taints
    returned: str = ""
    guards: Mapping[str, frozenset[str]] = field(default_factory=dict)
    ensures: Mapping[str, frozenset[str]] = field(default_factory=dict)
    method: bool = False


@dataclass(frozen=True, slots=True)
class Module:
    """The summary of one file. `aliases` say what a global name stands for, `bases` the bases of each class."""

    path: str
    name: str
    hits: tuple[Hit, ...] = ()
    calls: Mapping[str, Call] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    stored: Mapping[tuple[str, str], Taints] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    bases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
