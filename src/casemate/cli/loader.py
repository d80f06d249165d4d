"""The verbs, and the one place where code is imported late.

`casemate --help` must be cheap, and a verb that needs no model must not pay for one: so a verb's module is imported
when it is called, and only here.
"""

from __future__ import annotations

import importlib
from typing import Any, cast

import typer
from typer.core import TyperGroup

VERBS: dict[str, str] = {
    "fetch": "Fetch pinned artefacts: the model and the graph's sources.",
    "up": "Run the platform: engine, gateway and page, until told to stop.",
    "down": "Stop the running platform.",
    "status": "Say whether the platform runs, with which model, and where.",
    "ask": "Answer a question, or judge the code in it, with citations.",
    "audit": "Audit a folder of code; the model explains, it never decides.",
    "kb": "Build and query the knowledge graph.",
    "doctor": "Examine this machine and say what to do.",
    "plan": "Plan how to run a model on these cards, or say why it cannot.",
    "calibrate": "Correct the planner by what an engine's start-up measured.",
    "lint": "Judge the command that starts an engine, and correct it.",
    "checkpoint": "Inspect, verify, rename or re-shard a model's files.",
    "simulate": "Run the engine simulator: scripted answers, a clock, faults.",
}
"""Verb to its one-line help. The line is the first of the verb's docstring; a test holds the two together."""


class LazyVerbs(TyperGroup):
    """A command group that imports a verb when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The verbs in their order of use."""
        del ctx
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and build one verb; None for an unknown name."""
        del ctx
        if cmd_name not in VERBS:
            return None
        self.commands.setdefault(cmd_name, _load(cmd_name))
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As the parent does it; a mistyped verb is compared with all verbs, not only the loaded ones."""
        if args and args[0] not in VERBS:
            self.commands = cast("Any", dict.fromkeys(VERBS))  # names alone are compared
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the verbs from the table above, without importing one."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


def _load(verb: str) -> Any:
    target = getattr(importlib.import_module(f"casemate.cli.{verb}"), verb)
    if isinstance(target, typer.Typer):
        return typer.main.get_group(target)
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(verb)(target)
    return typer.main.get_command(app)
