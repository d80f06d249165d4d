"""The notes that the analysis of one file takes; at the end they become its Module summary."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from casemate.agents.audit.facts.masking import masked
from casemate.agents.audit.facts.sink import Sink
from casemate.agents.audit.facts.summary import Call, Function, Hit, Module
from casemate.agents.audit.facts.syntax import Source
from casemate.agents.audit.facts.values import Parameter, Taints, Value, from_origin, gather, merge
from casemate.agents.audit.facts.values import Source as Untrusted
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING, FRAMEWORKS
from casemate.finding import Confidence, FlowStep, Location

_LIBRARIES = frozenset(sys.stdlib_module_names) | FRAMEWORKS | {"requests", "httpx", "sqlalchemy", "jinja2", "yaml"}


@dataclass(slots=True)
class Record:
    """Everything noted so far about one file.

    `names` maps imported names to dotted ones, `snippet` says that callers are unknown, `attribute_names` holds access
    paths of what lies in attributes (`(class, attribute)`), `fields` annotations of classes, `secrets` texts that no
    output may show, `assigned` every name that the file binds, `statement` is where the walk stands.
    """

    source: Source
    name: str
    names: Mapping[str, str]
    snippet: bool = False
    hits: dict[tuple[str, int, int], Hit] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    stored: dict[tuple[str, str], Taints] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    attribute_names: dict[tuple[str, str], str] = field(default_factory=dict)
    fields: dict[str, Mapping[str, str]] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    assigned: frozenset[str] = frozenset()
    statement: ast.stmt | None = None

    def imports(self, *packages: str) -> bool:
        """Whether the file imports one of these top-level packages."""
        return any(dotted.partition(".")[0] in packages for dotted in self.names.values())

    @property
    def speaks_web(self) -> bool:
        """Whether the file imports a web framework, or is a snippet that shows no imports at all."""
        return self.imports(*FRAMEWORKS) or (self.snippet and not self.names)

    def location(self, node: ast.AST) -> Location:
        """Where a node stands."""
        return self.source.location(node)

    def untrusted(self, key: str, node: ast.AST, *, kind: str = "web", note: str = "") -> Value:
        """A value that comes from outside, read at this node."""
        return from_origin(Untrusted(key, kind, FlowStep(self.location(node), note or f"untrusted input: {key}")), key)

    def parameter(self, function: str, node: ast.arg) -> Value:
        """What callers pass; in a snippet there are callers that we do not see, so it is untrusted."""
        passed = from_origin(Parameter(function, node.arg))
        if not self.snippet:
            return passed
        key = f"{function}({node.arg})"
        return gather(passed, self.untrusted(key, node, kind="parameter", note=f"parameter {node.arg}"))

    def weak(self, rule: str, node: ast.AST, *, confidence: Confidence = Confidence.HIGH) -> None:
        """Note a place that is weak by itself."""
        location = self.location(node)
        self.hits.setdefault((rule, location.line, location.column), self._hit(rule, location, confidence=confidence))

    def sink(self, sink: Sink, node: ast.AST, *, reached: Value) -> None:
        """Note a sink and what reaches it; taints of the same place are joined, a certain note wins."""
        live = {
            origin: cleared for origin, cleared in reached.everything().items() if not cleared & {sink.kind, EVERYTHING}
        }
        if not live:
            return
        location = self.location(node)
        key = (sink.rule, location.line, location.column)
        known = self.hits.get(key) or replace(
            self._hit(sink.rule, location, confidence=sink.confidence), kind=sink.kind
        )
        if known.kind:
            built = known.built or "built" in reached.marks
            self.hits[key] = replace(known, taints=merge(known.taints, live), built=built)

    def _hit(self, rule: str, location: Location, *, confidence: Confidence) -> Hit:
        source = self.source
        return Hit(
            rule=rule,
            location=location,
            code=masked(source.text(location), self.secrets),
            evidence=masked(source.evidence(location), self.secrets),
            confidence=confidence,
            suppressed=source.suppresses(location),
        )

    def call(self, node: ast.Call, name: str, *, arguments: Mapping[str, Taints], receiver: Taints) -> str:
        """Note a call that may lead into the project; gives its key."""
        location = self.location(node)
        key = f"{location.path}:{location.line}:{location.column}:{location.end_column}"
        known = self.calls.get(key)
        if known is not None:
            places = {*known.arguments, *arguments}
            arguments = {at: merge(known.arguments.get(at, {}), arguments.get(at, {})) for at in places}
            receiver = merge(known.receiver, receiver)
        self.calls[key] = Call(name, location, arguments, receiver)
        return key

    def store(self, owner: str, name: str, *, value: Value) -> None:
        """Note what is put under an attribute of a class or a global of the module."""
        taints = value.everything()
        if taints:
            self.stored[owner, name] = merge(self.stored.get((owner, name), {}), taints)
        if value.name:
            self.attribute_names.setdefault((owner, name), value.name)

    def may_be_ours(self, name: str) -> bool:
        """Whether a dotted name may lead to code of the project rather than to a library that we know."""
        root, dot, _ = name.partition(".")
        return bool(dot and root) and root not in _LIBRARIES

    def summary(self) -> Module:
        """The notes as a frozen summary."""
        return Module(
            path=self.source.path,
            name=self.name,
            hits=tuple(self.hits.values()),
            calls=self.calls,
            functions=self.functions,
            stored=self.stored,
            aliases=self.aliases,
            bases=self.bases,
        )
