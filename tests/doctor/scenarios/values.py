"""What a simulated engine is made of, and what it publishes."""

from __future__ import annotations

from dataclasses import dataclass, field

from doctor.scenarios.plant import NO_LINK, Chip, Link, Model

EDGES = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, float("inf"))
"""Classes of vLLM's histogram of tokens in a step."""


@dataclass(frozen=True, slots=True)
class Setup:
    """How an engine is set up and what it costs beside arithmetic.

    `split` are the shares of a step's work by card (all alike: 1 each); `stages` is how many of them follow each other
    instead of working together. `offloaded_bytes` come from the host in every step.
    """

    chip: Chip
    model: Model
    split: tuple[float, ...] = (1.0,)
    link: Link = NO_LINK
    stages: int = 1
    max_num_seqs: int = 256
    budget: int = 4096
    kv_tokens: int = 400_000
    step_cpu_s: float = 0.002
    sequence_cpu_s: float = 20e-6
    overlap: bool = True
    serve_token_s: float = 12e-6
    serve_request_s: float = 1e-3
    offloaded_bytes: float = 0.0
    host_bytes_per_s: float = 52e9
    efficiency: float = 0.6
    compile_s: float = 0.0
    """Seconds to compile a shape that was not met before; 0 where all were met."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Who asks: `rate` requests a second of their own accord, or `users` who ask again when they were answered."""

    prompt: int
    output: int
    rate: float = 0.0
    users: int = 0
    think_s: float = 0.0
    spread: float = 0.4
    cached: float = 0.0
    starts_s: float = 0.0


@dataclass(slots=True)
class Request:
    born: float
    prefill: int
    output: int
    prompt: int
    context: int = 0
    told: bool = False
    hits: int = 0


@dataclass(slots=True)
class Books:
    """Seconds that steps spent on each resource while it was the slowest, and seconds without any work."""

    arithmetic: float = 0.0
    memory: float = 0.0
    link: float = 0.0
    processor: float = 0.0
    nothing: float = 0.0
    compiling: float = 0.0
    turns: int = 0
    at_cap: int = 0
    no_room: int = 0


@dataclass(slots=True)
class State:
    """What the engine publishes."""

    time: float = 0.0
    running: int = 0
    waiting: int = 0
    kv: float = 0.0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    hits: int = 0
    queries: int = 0
    preemptions: int = 0
    iterations: int = 0
    iteration_tokens: int = 0
    finished: int = 0
    queue_s: float = 0.0
    queued: int = 0
    serve_cpu_s: float = 0.0
    compiling: bool = False
    steps_by_size: tuple[int, ...] = (0,) * 14

    def copy(self) -> State:
        return State(*(getattr(self, name) for name in State.__slots__))


@dataclass(slots=True)
class Turn:
    """A step's cost: seconds by card of arithmetic and memory, seconds on the link, of the processor, and in all."""

    arithmetic: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    kernels: list[float] = field(default_factory=list)
    link: float = 0.0
    link_bytes: float = 0.0
    host: float = 0.0
    processor: float = 0.0
    whole: float = 0.0
