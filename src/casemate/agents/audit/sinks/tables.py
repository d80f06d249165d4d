"""Every sink by the name of the call, and which of them a call is."""

from __future__ import annotations

import ast

from casemate.agents.audit.facts.sink import Invocation, Sink
from casemate.agents.audit.sinks import commands, files, network, pages, queries, state
from casemate.agents.audit.sinks.table import Table, joined

SINKS: Table = joined((commands.TABLE, queries.TABLE, files.TABLE, pages.TABLE, network.TABLE, state.TABLE))
_PAGES = frozenset({"html", "redirect"})


def sinks_of(call: Invocation) -> tuple[Sink, ...]:
    """The sinks that a call is, under its full name or as a method of any object; the main one first."""
    found = SINKS.get(call.name)
    if found is None and isinstance(call.node.func, ast.Attribute) and not call.ours:
        owner, _, last = call.name.rpartition(".")
        found = SINKS.get(f".{owner.rpartition('.')[2]}.{last}") or SINKS.get(f".{last}")
    chosen = tuple(sink for sink in found or () if sink.when(call))
    return (*chosen, state.MODEL) if "**" in call.keywords and state.is_model(call) else chosen


def answers(name: str) -> str:
    """`html` for a call that makes a whole answer; whether it is a page was decided where it was made."""
    found = SINKS.get(name, ())
    return "html" if any(sink.kind in _PAGES for sink in found) else ""
