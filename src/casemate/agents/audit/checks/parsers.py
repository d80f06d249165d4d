"""Checks of parsers and unpackers that do more than read: objects, entities, markup, files outside the folder."""

from __future__ import annotations

import ast
import re

from casemate.agents.audit.checks.meaning import meanings
from casemate.agents.audit.facts.definitions import name_of
from casemate.agents.audit.facts.point import Point
from casemate.agents.audit.facts.sink import Invocation
from casemate.agents.audit.facts.values import NOTHING, Value
from casemate.finding import Confidence

_SAFE_LOADERS = frozenset({"SafeLoader", "CSafeLoader", "BaseLoader", "CBaseLoader", "FullLoader", "CFullLoader"})
_UNSAFE_LOADERS = frozenset({"Loader", "CLoader", "UnsafeLoader", "CUnsafeLoader"})
_MAX_BASES = 16
_CHECKS_PLACES = re.compile(r"realpath|resolve\(|commonpath|is_relative_to|relative_to|abspath")


def _yaml(here: Point, invocation: Invocation) -> None:
    name = invocation.name
    loader = invocation.argument(1, "Loader")
    if name in {"yaml.unsafe_load", "yaml.unsafe_load_all"} or (
        name in {"yaml.load", "yaml.load_all", "ruamel.yaml.load"}
        and (loader is NOTHING or any(_builds_objects(here, known) for known in loader.names()))
    ):
        here.record.weak("unsafe-deserialization", invocation.node)


def _builds_objects(here: Point, loader: str) -> bool:
    """Whether a loader makes any object that a document names: the library's own, or a class that derives from it."""
    waiting, seen = [loader], set[str]()
    while waiting and len(seen) < _MAX_BASES:
        name = waiting.pop()
        root, _, last = name.rpartition(".")
        if last in _UNSAFE_LOADERS and root.partition(".")[0] in {"", "yaml", "ruamel"}:
            return True
        if name not in seen and last not in _SAFE_LOADERS:
            waiting += here.record.bases.get(name, ())
        seen.add(name)
    return False


def _round_trip(here: Point, invocation: Invocation) -> None:
    """`ruamel.yaml.YAML(typ="unsafe")`."""
    if invocation.name.startswith("ruamel") and invocation.argument(0, "typ").constant == "unsafe":
        here.record.weak("unsafe-deserialization", invocation.node)


def _xml(here: Point, invocation: Invocation) -> None:
    name, keywords = invocation.name, invocation.keywords
    if name.startswith("lxml") and name.endswith("XMLParser"):
        wide = {"resolve_entities": True, "load_dtd": True, "no_network": False}
        if any(keywords.get(key, NOTHING).constant is value for key, value in wide.items()):
            here.record.weak("xml-external-entity", invocation.node)
    elif name.endswith(".setFeature") and any(map(_is_external, _features(here, invocation))):
        here.record.weak("xml-external-entity", invocation.node)


def _features(here: Point, invocation: Invocation) -> list[tuple[Value, Value]]:
    """What is switched and how; where a loop goes through pairs, each of them."""
    written = [name_of(argument) for argument in invocation.node.args[:2]]
    function = here.record.definitions.around(invocation.node.lineno)
    for line in here.record.definitions.body(here.record.source.tree, function):
        match line:
            case ast.For(target=ast.Tuple(elts=[first, second])) if [name_of(first), name_of(second)] == written:
                pairs = [pair for value in meanings(here.record, line.iter) for pair in (value.items or {}).values()]
                return [(pair.take(0), pair.take(1)) for pair in pairs]
    return [(invocation.argument(0), invocation.argument(1))]


def _is_external(pair: tuple[Value, Value]) -> bool:
    feature, state = pair
    named = any("external_ges" in name for name in feature.names())
    return state.constant in (True, 1) and (named or "external-general-entities" in str(feature.constant))


def _templates(here: Point, invocation: Invocation) -> None:
    if invocation.name not in {"jinja2.Environment", "jinja2.environment.Environment"}:
        return
    given = invocation.keywords.get("autoescape")
    if given is None and here.record.speaks_web:
        here.record.weak("autoescape-off", invocation.node, confidence=Confidence.LOW)
    elif given is not None and given.constant is False:
        here.record.weak("autoescape-off", invocation.node, confidence=Confidence.MEDIUM)


def _archives(here: Point, invocation: Invocation) -> None:
    """Members of a tar archive go where they ask for, unless a filter stops them."""
    name, chosen = invocation.name, invocation.keywords.get("filter", NOTHING)
    if not (name.startswith("tarfile.") and name.endswith((".extractall", ".extract"))):
        return
    trusting = chosen.constant == "fully_trusted" or chosen.name.endswith("fully_trusted_filter")
    if trusting and not _CHECKS_PLACES.search("\n".join(here.record.source.lines)):
        here.record.weak("archive-traversal", invocation.node)
    elif name.endswith("all") and not {"filter", "members"} & invocation.keywords.keys():
        here.record.weak("archive-traversal", invocation.node, confidence=Confidence.MEDIUM)


def _entities(here: Point, invocation: Invocation) -> None:
    """Entities that grow without a limit: `huge_tree=True`, `forbid_entities=False`."""
    huge = invocation.keywords.get("huge_tree", NOTHING).constant is True
    if huge or invocation.keywords.get("forbid_entities", NOTHING).constant is False:
        here.record.weak("entity-expansion", invocation.node, confidence=Confidence.MEDIUM)


TABLES = (
    dict.fromkeys(("load", "load_all", "unsafe_load", "unsafe_load_all"), _yaml),
    {"XMLParser": _xml, "setFeature": _xml, "Environment": _templates, "extractall": _archives, "extract": _archives},
    {"YAML": _round_trip},
)
KEYWORDS = (dict.fromkeys(("huge_tree", "forbid_entities"), _entities),)
