"""How fast a plan will be: first token, token after token, all streams together, from the steps it takes. Pure.

Definitions, for every figure printed from here:

    TTFT   from sending to the first token of any kind, one request alone: steps of the prompt, and the way through HTTP
    TPOT   (last token - first token) / (tokens - 1) of one stream, without TTFT, while all streams decode and no prompt
           is read; loaded: while each stream that ends is followed by a new prompt, whose steps all others wait for
    tokens/s   output tokens of all streams: streams / TPOT while they decode; sustained: over whole requests, with
           their prompts, in a closed loop of so many streams
"""

from __future__ import annotations

from dataclasses import dataclass

from casemate.checkpoint.facts import Checkpoint
from casemate.plan.decision import Speculation, Speed
from casemate.plan.launch import Launch, ceil_div
from casemate.plan.pages import is_packed
from casemate.plan.rates import Rates
from casemate.plan.step import Engine, Step, draft_s, terms

_ENTRY_S, _ENTRY_V4_S = 0.008, 0.09
"""Once a request: HTTP, templating, tokens, the first step's set-up."""
_ERROR_ENTRY_S = 0.015
"""How much longer that takes elsewhere: public short prompts, seen from their clients, came 13 to 16 ms later."""
_ERROR_READING, _ERROR_LINK, _ERROR_LAUNCH = 0.3, 0.45, 0.75
_ERROR_PROMPT, _ERROR_BOUNDED, _ERROR_ASSUMED, _ERROR_CALIBRATED = 0.4, 0.25, 0.25, 0.12
"""Bands by what a step's time is made of: reading and arithmetic are known best, launches differ by release and host.
Of 129 public figures that nothing was fitted to, nine in ten lay within; `tests/plan/speeds.tsv` has the others. Rates
that are bounds and an assumed acceptance of a draft widen a band; a measurement on the machine narrows it."""
_MOST = 0.75
"""The widest band of a TTFT: beyond it a figure says no more than that a prompt is short."""
_KEPT_BY_BLOCK = (0.72, 0.45, 0.32, 0.18, 0.13, 0.08, 0.05)
"""Share of a DSpark draft's tokens kept, by place: 2.82 tokens a step of five on GSM8K (vllm#56797), 2.91 and 2.93 of
seven (vllm-ascend#13640)."""
_KEPT = 0.8
"""Of each further token of a draft: 85 to 90 % of the first one (DeepSeek-V3, arXiv 2412.19437), 2.94 tokens a step of
three (a public run of Qwen3.6). Chance text and other languages keep fewer."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What is predicted for: prompts of `prompt_tokens`, answers of `output_tokens`, `concurrency` streams at once.

    `fitting` is how many such streams the cache holds at once, None where that is not known; `kept` how many of a
    draft's tokens a step keeps on the average, None for what public runs kept.
    """

    prompt_tokens: int
    output_tokens: int
    concurrency: int
    fitting: int | None = None
    kept: float | None = None


@dataclass(frozen=True, slots=True)
class Pace:
    """How much slower than predicted a measured engine was: factors for prompts and for decoding, and who measured."""

    prefill: float = 1.0
    decode: float = 1.0
    measured: str = ""


def speed(checkpoint: Checkpoint, launch: Launch, *, rates: Rates, workload: Workload, pace: Pace = Pace()) -> Speed:
    """Predict TTFT, TPOT and tokens/s for one launch.

    Args:
        checkpoint: the model.
        launch: layout, batched tokens, captured sizes, speculation.
        rates: of the cards used.
        workload: prompts, answers, streams.
        pace: what a measurement on this machine corrects.

    Returns:
        The figures with the bands that they may be off by, how many of the streams run at once and what limits them,
        and the seconds of each term of one decode step.
    """
    engine = Engine(checkpoint, launch, rates)
    streams, limited_by = _running(launch, workload)
    kept = kept_tokens(launch.speculation) if workload.kept is None else workload.kept
    assumed = _ERROR_ASSUMED if launch.speculation and workload.kept is None else 0.0
    decode = _decode(engine, workload, streams=streams)
    tpot_s = sum(decode.values()) / (1 + kept) * pace.decode
    prompt_s, waited_s = _prompt(engine, workload, decode_s=sum(decode.values()))
    ttft_s = (_ENTRY_V4_S if is_packed(checkpoint) else _ENTRY_S) + prompt_s * pace.prefill
    loaded_s = tpot_s + waited_s * pace.prefill * (streams - 1) / max(workload.output_tokens, 1)
    request_s = max(ttft_s, loaded_s) + max(workload.output_tokens - 1, 0) * loaded_s
    return Speed(
        prompt_tokens=workload.prompt_tokens,
        concurrency=streams,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        output_tokens_per_s=streams / tpot_s,
        error=_error(rates, pace, cold=_mixed(decode) + assumed),
        calibrated=pace.measured,
        terms=tuple(decode.items()),
        ttft_error=_error(rates, pace, cold=min(_ERROR_PROMPT + _ERROR_ENTRY_S / ttft_s, _MOST)),
        asked=workload.concurrency,
        limited_by=limited_by,
        tpot_loaded_s=loaded_s,
        sustained_tokens_per_s=streams * workload.output_tokens / request_s,
        tokens_per_step=1 + kept,
    )


def kept_tokens(speculation: Speculation | None) -> float:
    """How many of a draft's tokens a step keeps on the average, by what public runs kept; 0 without a draft."""
    if speculation is None:
        return 0.0
    if speculation.method == "dspark":
        return sum(_KEPT_BY_BLOCK[: speculation.tokens])
    return sum(_KEPT**place for place in range(1, speculation.tokens + 1))


def _running(launch: Launch, workload: Workload) -> tuple[int, str]:
    """Streams that decode at once, and what keeps the others waiting: `max_num_seqs`, `cache`, or nothing."""
    streams, limited_by = workload.concurrency, ""
    if launch.sequences < streams:
        streams, limited_by = launch.sequences, "max_num_seqs"
    if workload.fitting is not None and workload.fitting < streams:
        streams, limited_by = workload.fitting, "cache"
    return max(streams, 1), limited_by


def _decode(engine: Engine, workload: Workload, *, streams: int) -> dict[str, float]:
    """The terms of a step in which all streams decode. Stages and replicas have their parts of the streams."""
    launch = engine.launch
    replicas = min(launch.layout.data, streams)
    together = ceil_div(streams, launch.layout.pipeline * replicas)
    tokens = together * launch.decode_tokens
    context = workload.prompt_tokens + workload.output_tokens // 2
    captured = tokens <= launch.capture
    found = terms(engine, Step(tokens, together, context, attended=context, captured=captured, replicas=replicas))
    if launch.speculation:
        found["draft_s"] = draft_s(engine, streams=together * replicas)
    return found


def _prompt(engine: Engine, workload: Workload, *, decode_s: float) -> tuple[float, float]:
    """Seconds of one prompt alone, chunk after chunk, and of those by which it holds up streams that decode.

    With stages the first chunk passes all of them, and each further one follows a stage behind.
    """
    launch = engine.launch
    chunks = max(ceil_div(workload.prompt_tokens, launch.batched_tokens), 1)
    done, alone_s, waited_s = 0, 0.0, 0.0
    for chunk in range(chunks):
        tokens = max(min(launch.batched_tokens, workload.prompt_tokens - done), 1)
        step = Step(tokens, 1, done + tokens, attended=done + tokens / 2, captured=tokens <= launch.capture)
        taken_s = sum(terms(engine, step).values())
        alone_s += taken_s if chunk == 0 else taken_s / launch.layout.pipeline
        waited_s += max(taken_s - decode_s, 0.0)
        done += tokens
    return alone_s, waited_s


def _mixed(decode: dict[str, float]) -> float:
    """The band of a step from those of its terms, each by its part of the time."""
    weights = {"memory_s": _ERROR_READING, "arithmetic_s": _ERROR_READING, "all_reduce_s": _ERROR_LINK}
    return sum(weights.get(name, _ERROR_LAUNCH) * taken_s for name, taken_s in decode.items()) / sum(decode.values())


def _error(rates: Rates, pace: Pace, *, cold: float) -> float:
    if pace.measured:
        return _ERROR_CALIBRATED
    return cold + _ERROR_BOUNDED if rates.bounded else cold
