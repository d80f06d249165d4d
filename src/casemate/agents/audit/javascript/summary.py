"""One file of JavaScript or TypeScript in, its Module summary out. Nothing of it is executed."""

from __future__ import annotations

from casemate.agents.audit.facts.summary import Module
from casemate.agents.audit.javascript.members import package
from casemate.agents.audit.javascript.notes import Notes
from casemate.agents.audit.javascript.source import Source, broken_places, descendants, is_minified, parse, text_of
from casemate.agents.audit.javascript.statements import Walker
from casemate.agents.audit.javascript.weak import CHECKS, found_secrets

_MAX_BROKEN = 0.2
"""Share of a file that may be no valid syntax; beyond, what is left says too little."""
_SANITIZERS = {"express-mongo-sanitize": frozenset({"nosql"}), "xss-clean": frozenset({"html"})}
"""Middleware that cleans every request for these kinds of sink."""
_CHANGES = frozenset({"assignment_expression", "augmented_assignment_expression", "update_expression"})


def summarize(text: str, path: str) -> Module:
    """Analyse one file; a program that was written by a machine for a machine is skipped.

    Args:
        text: all of it.
        path: under the root; its ending tells the dialect.

    Raises:
        ValueError: too much of it is no valid syntax.
    """
    if is_minified(text):
        return Module(path, "", skipped="minified")
    source = parse(text, path)
    count, share = broken_places(source)
    if share > _MAX_BROKEN:
        raise ValueError(f"{count} places that are no valid syntax, {share:.0%} of the file")
    notes = _notes(source)
    Walker(notes).program(source.root)
    module = notes.summary()
    if not count:
        return module
    return Module(
        module.path,
        "",
        module.hits,
        module.calls,
        module.functions,
        module.stored,
        remarks=(f"syntax not understood in {count} places, the rest was analysed",),
    )


def _notes(source: Source) -> Notes:
    """What the whole file tells before it is walked: its imports, its secrets, what is weak by itself."""
    nodes = list(descendants(source.root))
    packages: set[str] = set()
    names: dict[str, int] = {}
    for node in nodes:
        if node.type == "string" and node.parent is not None:
            above = node.parent
            call = above.parent if above.type == "arguments" else None
            required = call is not None and text_of(call.child_by_field_name("function")) in {"require", "import"}
            if required or above.type in {"import_statement", "import_require_clause"}:
                packages.add(package(text_of(node)[1:-1]))
        elif node.type in _CHANGES:
            target = node.child_by_field_name("left") or node.child_by_field_name("argument")
            name = text_of(target)
            names[name] = names.get(name, 1) + 1
        elif node.type == "variable_declarator":
            name = text_of(node.child_by_field_name("name"))
            names[name] = names.get(name, 0) + 1
    hidden = found_secrets(nodes)
    sanitized = frozenset[str]().union(*(kinds for name, kinds in _SANITIZERS.items() if name in packages))
    notes = Notes(
        source,
        tuple({text for _, text, _ in hidden}),
        frozenset(packages),
        frozenset(name for name, count in names.items() if count > 1),
        sanitized,
    )
    for node, _, sure in hidden:
        notes.weak("hard-coded-secret", node, confidence=sure)
    for node in nodes:
        for check in CHECKS.get(node.type, ()):
            check(notes, node)
    return notes
