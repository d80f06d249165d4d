"""The notes that the analysis of one file takes; at the end they become its Module summary."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from casemate.agents.audit.facts.definitions import Definitions
from casemate.agents.audit.facts.enclosing import owners
from casemate.agents.audit.facts.masking import masked
from casemate.agents.audit.facts.sink import Sink
from casemate.agents.audit.facts.summary import Call, Function, Hit, Module
from casemate.agents.audit.facts.syntax import Source
from casemate.agents.audit.facts.values import NOTHING, Parameter, Value, from_origin, join, merge, slim
from casemate.agents.audit.facts.values import Source as Untrusted
from casemate.agents.audit.vocabulary.frameworks import FRAMEWORKS
from casemate.agents.audit.vocabulary.handlers import Called
from casemate.agents.audit.vocabulary.lexicon import EVERYTHING
from casemate.finding import Confidence, FlowStep, Location

_LIBRARIES = frozenset(sys.stdlib_module_names) | FRAMEWORKS | {"requests", "httpx", "sqlalchemy", "jinja2", "yaml"}

_LONGEST_LINE = 240
"""In characters: a step of a flow shows no more of a minified line."""


@dataclass(slots=True)
class Record:
    """Everything noted so far about one file.

    `names` maps imported names to dotted ones, `snippet` says that callers are unknown, `attribute_names` holds access
    paths of what lies in attributes (`(class, attribute)`), `fields` declared fields of classes with the kinds for
    which their types make them harmless, `handed_over` functions that a library is given to call, `clean_options`
    options of command lines that are converted, `secrets` texts that no output may show, `assigned` every name that
    the file binds, `statement` is where the walk stands.
    """

    source: Source
    name: str
    names: Mapping[str, str]
    snippet: bool = False
    hits: dict[tuple[str, int, int], Hit] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    stored: dict[tuple[str, str], Value] = field(default_factory=dict)
    initial: dict[tuple[str, str], Value] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    attribute_names: dict[tuple[str, str], str] = field(default_factory=dict)
    fields: dict[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)
    handed_over: Mapping[str, Called] = field(default_factory=dict)
    clean_options: frozenset[str] = frozenset()
    secrets: tuple[str, ...] = ()
    assigned: frozenset[str] = frozenset()
    statement: ast.stmt | None = None
    stars: frozenset[str] = frozenset()
    _definitions: Definitions | None = None
    _modules: frozenset[str] | None = None
    _owners: list[str] | None = None
    _lines: dict[int, str] = field(default_factory=dict)

    def imports(self, *packages: str) -> bool:
        """Whether the file imports one of these top-level packages."""
        return any(dotted.partition(".")[0] in packages for dotted in self.names.values())

    @property
    def speaks_web(self) -> bool:
        """Whether the file imports a web framework, or is a snippet that shows no imports at all."""
        return self.imports(*FRAMEWORKS) or (self.snippet and not self.names)

    @property
    def modules(self) -> frozenset[str]:
        """Names of what is imported."""
        if self._modules is None:
            self._modules = frozenset(self.names.values())
        return self._modules

    @property
    def definitions(self) -> Definitions:
        """Which expressions the file gives to its names; read when it is first asked for."""
        if self._definitions is None:
            self._definitions = Definitions.of(self.source.tree)
        return self._definitions

    def location(self, node: ast.AST) -> Location:
        """Where a node stands."""
        return self.source.location(node)

    def dotted(self, node: ast.expr | None) -> str:
        """A name as it is written, with its first part replaced by what it was imported as; empty for anything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.names.get(node.id, node.id), *reversed(parts)])

    def untrusted(self, key: str, node: ast.AST, *, kind: str = "web", note: str = "") -> Value:
        """A value that comes from outside, read at this node."""
        location = self.location(node)
        step = FlowStep(location, note or f"untrusted input: {key}", self._line(node))
        return from_origin(Untrusted(key, kind, step), key)

    def parameter(self, function: str, node: ast.arg) -> Value:
        """What callers pass; in a snippet there are callers that we do not see, so it is untrusted."""
        passed = from_origin(Parameter(function, node.arg))
        if not self.snippet:
            return passed
        key = f"{function}({node.arg})"
        return join(passed, self.untrusted(key, node, kind="parameter", note=f"parameter {node.arg}"))

    def weak(self, rule: str, node: ast.AST, *, confidence: Confidence = Confidence.HIGH) -> None:
        """Note a place that is weak by itself."""
        location = self.location(node)
        self.hits.setdefault((rule, location.line, location.column), self._hit(rule, node, confidence=confidence))

    def sink(self, sink: Sink, node: ast.AST, *, reached: Value) -> None:
        """Note a sink and what reaches it; taints of the same place are joined, a certain note wins."""
        live = {
            origin: cleared for origin, cleared in reached.everything().items() if not cleared & {sink.kind, EVERYTHING}
        }
        if not live:
            return
        location = self.location(node)
        key = (sink.rule, location.line, location.column)
        known = self.hits.get(key) or replace(self._hit(sink.rule, node, confidence=sink.confidence), kind=sink.kind)
        if known.kind:
            built = known.built or "built" in reached.marks
            self.hits[key] = replace(known, taints=merge(known.taints, live), built=built)

    def _hit(self, rule: str, node: ast.AST, *, confidence: Confidence) -> Hit:
        source, location = self.source, self.location(node)
        return Hit(
            rule=rule,
            location=location,
            code=masked(source.text(location), self.secrets),
            evidence=masked(source.evidence(location), self.secrets),
            confidence=confidence,
            suppressed=source.suppresses(location),
            scope=self._scope(node),
        )

    def call(
        self, node: ast.AST, name: str, *, arguments: Mapping[str, Value], receiver: Value = NOTHING, part: str = ""
    ) -> str:
        """Note a call that may lead into the project; gives its key. `part` tells calls of the same place apart."""
        location = self.location(node)
        key = f"{location.path}:{location.line}:{location.column}:{location.end_column}{part}"
        arguments = {at: slim(value, self.may_be_ours) for at, value in arguments.items()}
        receiver = slim(receiver, self.may_be_ours)
        known = self.calls.get(key)
        if known is not None:
            arguments = _both(known.arguments, arguments)
            receiver = join(known.receiver, receiver)
        self.calls[key] = Call(name, location, arguments, receiver, self._line(node))
        return key

    def store(self, owner: str, name: str, *, value: Value, initial: bool = False) -> None:
        """Note what is put under an attribute of a class (`initial`: when it is made) or a global of the module."""
        shown = slim(value, self.may_be_ours)
        kept = self.initial if initial else self.stored
        known = kept.get((owner, name))
        kept[owner, name] = shown if known is None else join(known, shown)
        if value.name:
            self.attribute_names.setdefault((owner, name), value.name)

    def may_be_ours(self, name: str) -> bool:
        """Whether a dotted name may lead to code of the project rather than to a library that we know."""
        root, dot, _ = name.partition(".")
        return bool(dot and root) and root not in _LIBRARIES

    def _line(self, node: ast.AST) -> str:
        """The line that a node begins in, secrets masked; of a long one the part around the node."""
        number = getattr(node, "lineno", 1)
        if number not in self._lines:
            self._lines[number] = masked("".join(self.source.lines[number - 1 : number]).strip(), self.secrets)
        line = self._lines[number]
        if len(line) <= _LONGEST_LINE:
            return line
        first = max(0, getattr(node, "col_offset", 0) - _LONGEST_LINE // 4)
        return line[first : first + _LONGEST_LINE]

    def _scope(self, node: ast.AST) -> str:
        if self._owners is None:
            self._owners = owners(self.source.tree, len(self.source.lines))
        return self._owners[min(getattr(node, "lineno", 0), len(self._owners) - 1)]

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
            stars=tuple(sorted(self.stars)),
        )


def _both(first: Mapping[str, Value], second: Mapping[str, Value]) -> Mapping[str, Value]:
    return {at: join(first.get(at, NOTHING), second.get(at, NOTHING)) for at in {**first, **second}}
