"""An engine without a model: scripted answers on a token clock, and the faults that engines have. Product code.

It is a real process with a real OpenAI-compatible server (`simulator_server`), so whatever drives an engine can be
tried and measured against known answers, known times and known failures.
"""

from __future__ import annotations

import json
import secrets
import sys
from dataclasses import asdict, dataclass, field

from casemate.chat.model import Endpoint
from casemate.engine.interface import Launch, Starting
from casemate.plan.decision import CpuPlan


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong; nothing by default.

    Args:
        die_at_start: write this to stderr and end with status 3 before anything is served.
        die_after_tokens: end with status 4 when this many tokens were sent, the supervisor's first one included.
        never_ready: answer 503 forever.
        open_door: answer without the key.
        deaf: ignore SIGTERM.
        orphan: start a process that ignores SIGTERM, in a session of its own.
        noise_bytes: write this much to stdout, and again to stderr, before anything is served.
    """

    die_at_start: str = ""
    die_after_tokens: int = 0
    never_ready: bool = False
    open_door: bool = False
    deaf: bool = False
    orphan: bool = False
    noise_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Script:
    """What it answers, and when.

    Args:
        answers: pairs of words and answer; the first pair whose words are in the last user message answers.
        otherwise: the answer to everything else.
        first_token_ms: from a request's turn to its first token.
        token_ms: from one token to the next.
        load_ms: from the start until it serves.
        faults: see there.
    """

    answers: tuple[tuple[str, str], ...] = ()
    otherwise: str = "This is the simulator; it knows no answer to that."
    first_token_ms: float = 0.0
    token_ms: float = 0.0
    load_ms: float = 0.0
    faults: Faults = field(default_factory=Faults)

    def to_json(self) -> str:
        """The script as one argument of a command line."""
        return json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Script:
        """Read what `to_json` wrote.

        Raises:
            ValueError, TypeError, KeyError: it did not write that.
        """
        fields = json.loads(text)
        fields["faults"] = Faults(**fields["faults"])
        fields["answers"] = tuple((words, answer) for words, answer in fields["answers"])
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Simulator:
    """The engine port for a script; slots, context and model name are the plan's."""

    script: Script = field(default_factory=Script)
    key: str = field(default_factory=secrets.token_urlsafe, repr=False)
    name: str = field(default="simulator", init=False)

    def launch(self, plan: CpuPlan, port: int) -> Launch:
        """The server's process; the key travels in its environment."""
        program = (sys.executable, "-P", "-m", "casemate.engine.simulator_server")
        return Launch(
            argv=(*program, plan.model, str(plan.slots), str(plan.context), str(port), self.script.to_json()),
            environment=(("CASEMATE_ENGINE_KEY", self.key),),
        )

    def endpoint(self, plan: CpuPlan, port: int) -> Endpoint:
        """Loopback."""
        return Endpoint(f"http://127.0.0.1:{port}", plan.model, plan.context)

    def phase(self, line: str) -> Starting | None:
        """Its log has one line of interest."""
        return Starting("warm", 0.95) if line.startswith("simulator: serving") else None
