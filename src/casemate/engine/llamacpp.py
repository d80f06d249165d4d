"""llama.cpp's own OpenAI server in a child process, for machines without a GPU. What runs there: `llamacpp_server`."""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass, field

from casemate.chat.model import Endpoint
from casemate.engine.interface import Launch, Starting
from casemate.plan.decision import CpuPlan

_PHASES = (
    ("loading model '", Starting("load", 0.1)),
    ("threadpool init", Starting("load", 0.4)),
    ("initializing, n_slots", Starting("load", 0.9)),
    ("srv          init: model loaded", Starting("warm", 0.95)),
)
"""What its log says on the way, in order. It names no percentage; the shares are how long each took, measured."""


@dataclass(frozen=True, slots=True)
class LlamaCpp:
    """The CPU engine. Each instance has a fresh key, so one instance is one launch."""

    key: str = field(default_factory=secrets.token_urlsafe, repr=False)
    name: str = field(default="llamacpp", init=False)

    def launch(self, plan: CpuPlan, port: int) -> Launch:
        """The server's process; the key travels in its environment."""
        options = {
            "--path": plan.path,
            "--name": plan.model,
            "--context": plan.context,
            "--slots": plan.slots,
            "--threads": plan.threads,
            "--port": port,
        }
        pairs = (str(part) for option in options.items() for part in option)
        return Launch(
            argv=(sys.executable, "-P", "-m", "casemate.engine.llamacpp_server", *pairs),
            environment=(("CASEMATE_ENGINE_KEY", self.key),),
        )

    def endpoint(self, plan: CpuPlan, port: int) -> Endpoint:
        """Loopback."""
        return Endpoint(f"http://127.0.0.1:{port}", plan.model, plan.context)

    def phase(self, line: str) -> Starting | None:
        """What it is loading."""
        return next((starting for words, starting in _PHASES if words in line), None)
