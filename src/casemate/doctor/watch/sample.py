"""What was seen at one moment, as values. Pure.

None is "not told", never zero. Shares are of 1; rates are per second; a counter only grows until its process ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Reach = Literal["answered", "refused", "silent", "strange", "not asked"]
"""What came of asking the engine: `silent` took the connection and said nothing in time, `strange` is no metrics."""


@dataclass(frozen=True, slots=True)
class Use:
    """A process on a card: pid as the driver tells it (of the host, in a container), its name where it is visible."""

    pid: int
    name: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CardSample:
    """One card over one interval; what can be averaged is an average over it.

    Attributes:
        busy: share of the time in which any kernel was resident. A kernel that only waits for another card counts.
        memory_busy: share of the time in which its memory was read or written.
        pcie_bound_bytes_per_s: what the link as it is now carries one way, before protocol.
        nvlink_received_bytes, nvlink_sent_bytes: counters over all links.
        throttle: reasons in the words of `machine.Card.throttle`, each with its share of the interval.
    """

    index: int
    name: str = ""
    busy: float | None = None
    memory_busy: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    pcie_received_bytes_per_s: float | None = None
    pcie_sent_bytes_per_s: float | None = None
    pcie_bound_bytes_per_s: float | None = None
    nvlink_received_bytes: int | None = None
    nvlink_sent_bytes: int | None = None
    nvlink_bound_bytes_per_s: float | None = None
    nvlinks_active: int | None = None
    sm_clock_hz: float | None = None
    sm_clock_max_hz: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_limit_default_w: float | None = None
    temperature_c: int | None = None
    throttle: tuple[tuple[str, float], ...] = ()
    processes: tuple[Use, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineSample:
    """What an engine's `/metrics` said. Over several engines behind one address: sums, and the fullest cache.

    Attributes:
        kind: `vllm` or `llamacpp`, by the names that it uses.
        waiting_deferred: those of `waiting` that wait for something else than room (an adapter, a transfer).
        kv_usage: share of the cache's blocks in use.
        prompt_tokens, generation_tokens: counters. vLLM counts a prompt when its first token comes out, so a long
            prefill moves neither.
        iterations, iteration_tokens: engine steps that gave output, and the tokens in them.
        small_step_tokens: about how many of them came in steps of up to 256.
        cpu_s: processor time of the process that serves HTTP.
        started_s: when that process started; another one is another process.
        running_by_engine: where several engines stand behind the address.
    """

    kind: Literal["vllm", "llamacpp"]
    running: float | None = None
    waiting: float | None = None
    waiting_deferred: float | None = None
    kv_usage: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_queries: float | None = None
    prefix_hits: float | None = None
    preemptions: float | None = None
    draft_tokens: float | None = None
    accepted_tokens: float | None = None
    iterations: float | None = None
    iteration_tokens: float | None = None
    small_step_tokens: float | None = None
    queue_s: float | None = None
    queued: float | None = None
    first_token_s: float | None = None
    first_tokens: float | None = None
    between_tokens_s: float | None = None
    between_tokens: float | None = None
    finished: float | None = None
    flops: float | None = None
    memory_bytes: float | None = None
    cpu_s: float | None = None
    started_s: float | None = None
    running_by_engine: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Worker:
    """A process of the engine: cores it used over the interval, and the busiest of its threads' share of one core.

    `serves` is whether it is the one that listens at the engine's address.
    """

    pid: int
    name: str
    cores: float
    hottest_thread: float | None = None
    serves: bool = False


@dataclass(frozen=True, slots=True)
class HostSample:
    """The host over one interval.

    Attributes:
        cores: that there are.
        busy: share of all of them.
        workers: the engine's processes; empty where they are not visible.
        compilers: how many compilers run among the engine's processes.
        children_cores: cores that ended children of the engine's processes had used (a compiler that came and went).
        faults_per_s: memory pages that the engine's processes touched for the first time, without the one that serves
            if there are others. Waiting touches none.
        max_num_seqs: the engine's limit of running requests, if its command line tells it.
    """

    cores: int
    busy: float | None = None
    memory_available_bytes: int | None = None
    workers: tuple[Worker, ...] = ()
    compilers: int | None = None
    children_cores: float | None = None
    faults_per_s: float | None = None
    max_num_seqs: int | None = None


@dataclass(frozen=True, slots=True)
class LogSample:
    """What the engine's log added: lines that tell of compiling, and whether one was begun and not yet ended."""

    compile_lines: int
    compiling: bool = False
    last: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment: seconds on a clock that only goes forward, and what each side told.

    `cards_error` says why no card was told; empty with no card means that there is none.
    """

    time_s: float
    reach: Reach = "not asked"
    engine: EngineSample | None = None
    reach_error: str = ""
    cards: tuple[CardSample, ...] = ()
    cards_error: str = ""
    host: HostSample | None = None
    log: LogSample | None = None
