"""The notes that the walk over one JavaScript file takes; at the end they become its Module summary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from casemate.agents.audit.facts.masking import masked
from casemate.agents.audit.facts.summary import Call, Function, Hit, Module
from casemate.agents.audit.facts.values import Parameter, Source, Taints, Value, merge
from casemate.agents.audit.javascript.source import FUNCTIONS, text_of
from casemate.agents.audit.javascript.source import Source as File
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING
from casemate.finding import Confidence, FlowStep

_LONGEST_LINE = 240
_NAMED_BY = {
    "variable_declarator": "name",
    "pair": "key",
    "assignment_expression": "left",
    "public_field_definition": "name",
}


@dataclass(frozen=True, slots=True)
class Sink:
    """One way to do harm: the rule that it breaks and its kind. `sure` is how sure the rule is of it."""

    rule: str
    kind: str
    sure: Confidence = Confidence.HIGH


@dataclass(slots=True)
class Notes:
    """Everything noted so far about one file.

    `packages` are those that it imports, `reassigned` names with more than one value in the whole file, `classes` the
    keys of its classes with their methods, `members` what lies under the attributes of a class as an access path.
    """

    file: File
    secrets: tuple[str, ...] = ()
    packages: frozenset[str] = frozenset()
    reassigned: frozenset[str] = frozenset()
    sanitized: frozenset[str] = frozenset()
    hits: dict[tuple[str, int, int], Hit] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    stored: dict[tuple[str, str], Taints] = field(default_factory=dict)
    classes: dict[str, dict[str, str]] = field(default_factory=dict)
    members: dict[tuple[str, str], str] = field(default_factory=dict)

    def imports(self, *packages: str) -> bool:
        """Whether the file imports one of these packages."""
        return not self.packages.isdisjoint(packages)

    def key(self, node: Node) -> str:
        """The name of a function or class in the project: it says where it begins."""
        return f"{self._prefix}{node.start_byte}"

    def owns(self, name: str) -> bool:
        """Whether a name is one that `key` gave."""
        return name.startswith(self._prefix)

    @property
    def _prefix(self) -> str:
        return self.file.path.replace(".", ":") + "."

    def step(self, node: Node, note: str) -> FlowStep:
        """A station of a flow, its line with secrets masked."""
        location = self.file.location(node)
        line = self.file.lines[location.line - 1] if location.line <= len(self.file.lines) else ""
        shown = masked(line, self.secrets)
        begin = max(0, location.column - 1 - _LONGEST_LINE // 4) if len(shown) > _LONGEST_LINE else 0
        return FlowStep(location, note, shown[begin : begin + _LONGEST_LINE].strip())

    def untrusted(self, node: Node, key: str, *, kind: str, cleared: frozenset[str]) -> Value:
        """A value that comes from outside, read at this node."""
        source = Source(key, kind, self.step(node, f"untrusted input: {key}"))
        return Value(taints={source: cleared | self.sanitized}, name=key)

    def weak(self, rule: str, node: Node, *, confidence: Confidence = Confidence.HIGH) -> None:
        """Note a place that is weak by itself."""
        location = self.file.location(node)
        self.hits.setdefault((rule, location.line, location.column), self._hit(rule, node, confidence=confidence))

    def sink(self, sink: Sink, node: Node, *, reached: Value) -> None:
        """Note a sink and what reaches it; taints of the same place are joined, a certain note wins."""
        live = {
            origin: cleared for origin, cleared in reached.everything().items() if not cleared & {sink.kind, EVERYTHING}
        }
        if not live:
            return
        location = self.file.location(node)
        key = (sink.rule, location.line, location.column)
        known = self.hits.get(key) or replace(self._hit(sink.rule, node, confidence=sink.sure), kind=sink.kind)
        if known.kind:
            built = known.built or "built" in reached.marks
            self.hits[key] = replace(known, taints=merge(known.taints, live), built=built)

    def call(self, node: Node, name: str, *, arguments: dict[str, Taints], receiver: Taints) -> str:
        """Note a call of a function of this file; gives its key."""
        location = self.file.location(node)
        key = f"{location.path}:{node.start_byte}:{node.end_byte}"
        known = self.calls.get(key)
        if known is not None:
            places = {*known.arguments, *arguments}
            before = {at: value.taints for at, value in known.arguments.items()}
            arguments = {at: merge(before.get(at, {}), arguments.get(at, {})) for at in places}
            receiver = merge(known.receiver.taints, receiver)
        given = {at: Value(taints=taints) for at, taints in arguments.items()}
        self.calls[key] = Call(name, location, given, Value(taints=receiver), self.step(node, "").text)
        return key

    def store(self, owner: str, name: str, *, value: Value) -> None:
        """Note what is put under an attribute of a class."""
        taints = value.everything()
        if taints:
            self.stored[owner, name] = merge(self.stored.get((owner, name), {}), taints)
        if value.name:
            self.members.setdefault((owner, name), value.name)

    def parameter(self, function: str, name: str) -> Value:
        """Whatever callers of this file pass."""
        return Value(taints={Parameter(function, name): frozenset()})

    def summary(self) -> Module:
        """The notes as a frozen summary."""
        return Module(
            path=self.file.path,
            name="",
            hits=tuple(self.hits.values()),
            calls=self.calls,
            functions=self.functions,
            stored={place: Value(taints=taints) for place, taints in self.stored.items()},
            bases={},
        )

    def _hit(self, rule: str, node: Node, *, confidence: Confidence) -> Hit:
        location = self.file.location(node)
        return Hit(
            rule=rule,
            location=location,
            code=masked(text_of(node), self.secrets),
            evidence=masked(self.file.evidence(location), self.secrets),
            confidence=confidence,
            suppressed=self.file.suppresses(location),
            scope=scope_of(node),
        )


def scope_of(node: Node) -> str:
    """The dotted name of the functions and classes around a node; those without a name are left out."""
    names: list[str] = []
    here = node.parent
    while here is not None:
        if here.type in FUNCTIONS or here.type in {"class_declaration", "class"}:
            name = name_of(here)
            if name:
                names.append(name)
        here = here.parent
    return ".".join(reversed(names))


def name_of(node: Node) -> str:
    """The name of a function or class: its own, or the one that it is given to."""
    own = node.child_by_field_name("name")
    if own is not None or node.parent is None:
        return text_of(own)
    field_name = _NAMED_BY.get(node.parent.type, "")
    return text_of(node.parent.child_by_field_name(field_name)).rpartition(".")[2] if field_name else ""


Visit = Callable[[Notes, Node], None]
"""A look at one node of the tree; it notes what is weak there."""
