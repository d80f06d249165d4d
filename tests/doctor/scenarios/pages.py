"""What the simulated engine publishes: a page of metrics in the names of a version, and who looks at it how well."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from casemate.doctor.watch.sample import Reach
from doctor.scenarios.plant import Card, Link
from doctor.scenarios.serving import Serving
from doctor.scenarios.values import EDGES, State

KV_NAME = {"0.8.5": "gpu_cache_usage_perc", "0.13.0": "kv_cache_usage_perc", "0.26.0": "kv_cache_usage_perc"}


@dataclass(frozen=True, slots=True)
class Instruments:
    """How well one looks, and how much the looking distorts.

    `gain` is what the memory counter shows of the time in which memory works; `compiler` is how compiling shows.
    """

    version: str = "0.26.0"
    interval_s: float = 1.0
    gain: float = 0.9
    pcie: bool = True
    power: bool = True
    host: bool = True
    log: bool = False
    spinning: bool = True
    compiler: str = "child"
    answer_s: float = 3.0
    memory: bool = True
    lost: float = 0.0
    """Share of the answers that do not come in time although nothing is wrong."""


@dataclass(slots=True)
class World:
    """Everything behind the instruments. Several servings are engines behind one address."""

    servings: list[Serving]
    link: Link
    until: float = 40.0
    begins: float = 4.0
    dies_at: float = float("inf")
    wedged_at: float = float("inf")
    spins_when_wedged: bool = True
    threads: float = 0.0
    """What other threads of the engine's main process always take, beside its steps."""
    idle_cards: int = 0
    foreign_cards: int = 0
    """Cards on which somebody else works."""
    reset_at: float = float("inf")
    """When the engine was started anew; its counters then begin again."""

    @property
    def cards(self) -> list[Card]:
        return [card for serving in self.servings for card in serving.cards]


def state_at(serving: Serving, now: float) -> State:
    place = bisect_right(serving.history, now, key=lambda state: state.time)
    return serving.history[max(0, place - 1)]


def page(world: World, seen: Instruments, *, now: float) -> tuple[str, Reach]:
    """The text of the engine's metrics at a time, in the names of its version; or how it failed to come."""
    if now >= world.dies_at:
        return "", "refused"
    late = max(serving.serve_late(now) for serving in world.servings)
    if late > seen.answer_s:
        return "", "silent"
    lines: list[str] = []
    for number, serving in enumerate(world.servings):
        state = state_at(serving, now)
        if now >= world.reset_at:
            state = _since(state, state_at(serving, world.reset_at))
        _engine(lines, state, number=number, version=seen.version)
    served = sum(serving.served(now) for serving in world.servings)
    if seen.version != "0.8.5":  # more than one process behind the port: then nobody tells
        lines += [
            "# TYPE process_cpu_seconds_total counter",
            f"process_cpu_seconds_total {served + 48.5 * (now < world.reset_at):.2f}",
        ]
        lines += [f"process_start_time_seconds {1.79604339848e9 + 100 * (now >= world.reset_at)!r}"]
    return "\n".join(lines) + "\n", "answered"


def _since(state: State, begin: State) -> State:
    """The counters as a process shows them that was started then."""
    anew = state.copy()
    for name in ("prompt_tokens", "generation_tokens", "hits", "queries", "preemptions", "iterations", "finished"):
        setattr(anew, name, getattr(state, name) - getattr(begin, name))
    anew.iteration_tokens -= begin.iteration_tokens
    anew.queue_s, anew.queued = state.queue_s - begin.queue_s, state.queued - begin.queued
    anew.steps_by_size = tuple(now - then for now, then in zip(state.steps_by_size, begin.steps_by_size, strict=True))
    return anew


def _engine(lines: list[str], state: State, *, number: int, version: str) -> None:
    labels = f'{{engine="{number}",model_name="made-up"}}' if version != "0.8.5" else '{model_name="made-up"}'

    def put(name: str, value: float, extra: str = "") -> None:
        shown = labels if not extra else labels[:-1] + f",{extra}}}"
        lines.append(f"vllm:{name}{shown} {float(value)!r}")

    put("num_requests_running", state.running)
    put("num_requests_waiting", state.waiting)
    if version == "0.26.0":
        put("num_requests_waiting_by_reason", state.waiting, 'reason="capacity"')
        put("num_requests_waiting_by_reason", 0, 'reason="deferred"')
    put(KV_NAME[version], state.kv)
    cache = "gpu_prefix_cache" if version == "0.8.5" else "prefix_cache"
    put(f"{cache}_queries_total", state.queries)
    put(f"{cache}_hits_total", state.hits)
    put("num_preemptions_total", state.preemptions)
    put("prompt_tokens_total", state.prompt_tokens)
    put("generation_tokens_total", state.generation_tokens)
    put("iteration_tokens_total_count", state.iterations)
    put("iteration_tokens_total_sum", state.iteration_tokens)
    for count, edge in zip(state.steps_by_size, EDGES, strict=True):
        put("iteration_tokens_total_bucket", count, f'le="{str(float(edge)).replace("inf", "+Inf")}"')
    put("request_queue_time_seconds_sum", state.queue_s)
    put("request_queue_time_seconds_count", state.queued)
    put("request_success_total", state.finished, 'finished_reason="stop"')
