"""What is said of a bottleneck: its kind, how much it weighs, and the figures that decided. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "dead", "wedged", "stalled", "jit", "throttling", "kv", "imbalance", "link", "cpu", "queue", "compute", "bandwidth",
    "light", "idle", "unknown",
]  # fmt: skip
"""`light` and `idle` are fine; `stalled` is on its way to `jit` or `wedged`; `unknown` is "too little was told"."""

FINE: tuple[Kind, ...] = ("light", "idle")


@dataclass(frozen=True, slots=True)
class Evidence:
    """A figure by its name in `figures`, and a sentence with it."""

    name: str
    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something that may limit the engine; `weight` (of 1) is how much speaks for it and how much it costs."""

    kind: Kind
    weight: float
    evidence: tuple[Evidence, ...]


def share(name: str, value: float | None, *, text: str) -> list[Evidence]:
    """Evidence of a share, written as percent where the text says `{}`; none if it was not told."""
    return [] if value is None else [Evidence(name, round(value, 4), text.format(f"{100 * value:.0f} %"))]


def plain(name: str, value: float | None, *, text: str) -> list[Evidence]:
    """Evidence of any number, written where the text says `{}`; none if it was not told."""
    return [] if value is None else [Evidence(name, round(value, 4), text.format(number(value)))]


def number(value: float) -> str:
    """A number as short as it may be read: three digits that count, whole ones from a hundred on."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def of(kind: Kind, weight: float, *evidence: Iterable[Evidence]) -> Suspect:
    """A suspect with all that speaks for it."""
    return Suspect(kind, round(min(1.0, max(0.0, weight)), 3), tuple(one for group in evidence for one in group))


ADVICE: dict[Kind, str] = {
    "dead": "start the engine again; the last lines of its log say why it ended (casemate doctor --log FILE)",
    "wedged": "restart the engine; answer what waits with 503 and Retry-After, and keep its stacks (py-spy dump)",
    "stalled": "watch on: it compiles, or it is wedged after 30 s without a token",
    "jit": "wait; then send every shape of work once before users come, and keep the kernel caches over restarts",
    "throttling": "cool the card, or give it its power back (nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE)",
    "kv": "fewer running requests, shorter contexts, a smaller cache type (fp8), more memory for the cache, or cards",
    "imbalance": "give every card the same work: the router, the layers of each stage, the experts, foreign processes",
    "link": "fewer cards that must talk in every layer, a better link between them, or nothing left on the host",
    "cpu": "more processes that serve, larger steps, CUDA graphs instead of eager mode, or a faster processor",
    "queue": "raise --max-num-seqs: cache and cards have room",
    "compute": "cache prefixes, shorten prompts, a smaller type of weights, or more cards",
    "bandwidth": "larger batches, a smaller type of weights or cache, speculative decoding, or more cards",
    "light": "nothing: there is room",
    "idle": "nothing: nobody asks; only a request of one token shows that it still answers",
    "unknown": "give an address with metrics (--endpoint) and watch where the cards are",
}

_ADVICE_LLAMACPP: dict[Kind, str] = {
    "wedged": "restart the engine; answer what waits with 503 and Retry-After, and keep its stacks "
    "(gdb -p PID -batch -ex 'thread apply all bt')",
    "kv": "shorter contexts, a smaller cache type (-ctk q8_0 -ctv q8_0), or a larger -c where memory allows it",
    "cpu": "a smaller quantization or model, as many threads (-t) as there are physical cores, or a card",
    "queue": "raise --parallel (-np), and -c with it: each slot takes its share of the context",
    "bandwidth": "a smaller quantization of weights or cache, speculative decoding, or a faster card",
    "jit": "wait; code for the card may be compiled at first use: build it for its architecture",
}
"""Where other options or tools than vLLM's are meant."""


def advice(kind: Kind, *, engine: str = "") -> str:
    """What to do, in the words of the engine that was seen (`vllm`, `llamacpp`; empty where none answered)."""
    ours = _ADVICE_LLAMACPP if engine == "llamacpp" else {}
    return ours.get(kind, ADVICE[kind])
