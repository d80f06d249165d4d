"""What a plan says to people: decisions with their reasons, the memory of a card, speed, command, checks. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from casemate.plan.argv import command
from casemate.plan.decision import CardsPlan, CpuPlan, Refusal, Speculation, Speed
from casemate.plan.telling import DEFINITIONS, Start, band
from casemate.report import document as d

_MEMORY = {
    "weights_gib": "weights",
    "activation_gib": "peak of a step",
    "graphs_gib": "CUDA graphs, set aside",
    "other_gib": "outside the allocator",
    "kv_gib": "cache",
}
_DEMAND = ("need_gib", "start_gib", "full_length_requests")


def of_cards(plan: CardsPlan, start: Start, *, card_gib: float) -> d.Document:
    """A plan for cards; `card_gib` is the smallest used card's memory as the engine sees it."""
    sections = [
        d.Section("Decisions", (d.Table(("value", "set to", "why"), tuple(_decisions(plan))),)),
        d.Section(
            "Memory of one card, GiB",
            (d.Table(("part", "GiB", "why"), tuple(_memory(plan, card_gib))), *_demand(plan)),
        ),
        d.Section("Predicted speed", tuple(_speed(plan.speed))),
        d.Section("Start it", tuple(_start(start))),
    ]
    if plan.notes:
        sections.append(d.Section("Notes", tuple(d.Verdict("note", note) for note in plan.notes)))
    sections.append(d.Section("What to check next", (d.Table(("when", "look for"), tuple(_next(plan))),)))
    return d.Document(f"Plan: {plan.model} on vLLM {plan.engine_version}", tuple(sections), lead=(_verdict(plan),))


def of_cpu(plan: CpuPlan) -> d.Document:
    """A plan for the CPU."""
    rows = tuple((name, str(getattr(plan, name)), _without(why, getattr(plan, name))) for name, why in plan.reasons)
    verdict = d.Verdict("good", "It fits on the CPU with llama.cpp; `casemate up` starts it by itself.")
    table = d.Table(("value", "set to", "why"), rows)
    return d.Document(f"Plan: {plan.model} on the CPU", (d.Section("Decisions", (table,)),), lead=(verdict,))


def of_refusal(refusal: Refusal) -> d.Document:
    """A refusal: every reason, and what would help."""
    reasons = tuple(d.Verdict("note", reason) for reason in refusal.reasons)
    remedies = tuple(d.Verdict("note", remedy) for remedy in refusal.remedy.split("; ") if remedy)
    return d.Document(
        f"Plan: {refusal.model}",
        (d.Section("Why not", reasons), d.Section("What would help", remedies)),
        lead=(d.Verdict("bad", "It does not run here."),),
    )


def _verdict(plan: CardsPlan) -> d.Verdict:
    cards = len(plan.cards)
    where = f"{cards} card{'s' if cards > 1 else ''}" + (f" on each of {plan.nodes} hosts" if plan.nodes > 1 else "")
    told = (
        f"It fits on {where}: requests of up to {plan.max_model_len:,} tokens, {plan.full_length_requests:.2f} of that"
        " length at once, more of shorter ones."
    )
    return d.Verdict("good", told)


def _decisions(plan: CardsPlan) -> Iterator[tuple[str, str, str]]:
    for name, why in plan.reasons:
        if name not in _MEMORY and name not in _DEMAND:
            value = _shown(getattr(plan, name, ""))
            yield name, value, _without(why, value)


def _shown(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(str(item) for item in value)
        case Speculation(method=method, tokens=tokens):
            return f"{method}, {tokens}"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _without(why: str, value: object) -> str:
    """A reason without the value that stands beside it already."""
    return "" if why == str(value) else why.removeprefix(f"{value}: ")


def _memory(plan: CardsPlan, card_gib: float) -> Iterator[tuple[str, str, str]]:
    """Rows that add up, as printed, to the card: what is set aside for graphs is what the share has left."""
    why = dict(plan.reasons)
    share = plan.gpu_memory_utilization * card_gib
    parts = {name: round(getattr(plan, name), 2) for name in _MEMORY if name != "graphs_gib"}
    aside = max(round(share - sum(getattr(plan, name) for name in parts), 2), 0.0)
    for name, label in _MEMORY.items():
        yield label, f"{aside if name == 'graphs_gib' else parts[name]:.2f}", why.get(name, "")
    given = aside + sum(parts.values())
    yield "= given to the engine", f"{given:.2f}", f"{plan.gpu_memory_utilization:g} of the card"
    rest = "the driver's context, NCCL's buffers, and whatever else runs there"
    yield "left outside", f"{round(card_gib, 2) - given:.2f}", rest
    yield "= card", f"{round(card_gib, 2):.2f}", "the smallest one used, as the engine sees it"


def _demand(plan: CardsPlan) -> Iterator[d.Paragraph]:
    why = dict(plan.reasons)
    told = [why[name] for name in ("need_gib", "start_gib") if name in why]
    if "full_length_requests" in why:
        told.append(f"requests of full length at once: {why['full_length_requests']}")
    if told:
        yield d.Paragraph("; ".join(told) + ".")


_LIMITS = {"max_num_seqs": "`max_num_seqs` admits no more", "cache": "the cache holds no more of that length"}


def _speed(speed: Speed | None) -> Iterator[d.Block]:
    if speed is None:
        yield d.Paragraph("Not predicted: neither the kind of these cards nor their clocks and buses are known.")
        return
    yield d.Figures(
        (
            d.Figure(f"TTFT, {speed.prompt_tokens:,} tokens, alone", _ranged(speed.ttft_s, speed.ttft_error, unit="s")),
            d.Figure(
                f"TPOT, {speed.concurrency} streams", _ranged(speed.tpot_s * 1000, speed.error, unit="ms a token")
            ),
            d.Figure(
                f"output, {speed.concurrency} streams", _ranged(speed.output_tokens_per_s, speed.error, unit="tokens/s")
            ),
            d.Figure(
                "the same, a new prompt after each answer",
                _ranged(speed.sustained_tokens_per_s, speed.error, unit="tokens/s"),
            ),
        )
    )
    known = f"calibrated by {speed.calibrated}" if speed.calibrated else "not calibrated on this machine"
    meanings = "; ".join(f"{name.partition('_')[0].upper()}: {meaning}" for name, meaning in DEFINITIONS[:2])
    if speed.limited_by:
        yield d.Verdict(
            "warn", f"{speed.concurrency} of {speed.asked} streams run at once; {_LIMITS[speed.limited_by]}"
        )
    yield d.Paragraph(
        f"Figures may be off by {speed.error:.0%} either way, the TTFT by {speed.ttft_error:.0%} ({known}). {meanings}."
    )
    if speed.tokens_per_step > 1:
        yield d.Paragraph(f"Assumed: speculation yields {speed.tokens_per_step:.2f} tokens a step and stream.")
    terms = ", ".join(f"{name.removesuffix('_s')} {value * 1000:.2f} ms" for name, value in speed.terms)
    yield d.Paragraph(f"One decode step: {terms}.")


def _ranged(value: float, error: float, *, unit: str) -> str:
    low, high = band(value, error)
    return f"{value:.3g} {unit} ({low:.3g} to {high:.3g})"


def _start(start: Start) -> Iterator[d.Block]:
    yield d.Code(command(start.words, start.variables), language="sh")
    said = f"Checked against the flags of vLLM {start.checked}"
    if start.problems:
        yield d.Verdict("warn", f"{said}; the linter says of it:")
        yield from (d.Verdict("warn", problem) for problem in start.problems)
    else:
        yield d.Verdict("good", f"{said}; the linter finds nothing.")
    yield d.Paragraph(
        "The engine's key belongs into the environment, as VLLM_API_KEY; `--emit env --output` makes one."
    )


def _next(plan: CardsPlan) -> Iterator[tuple[str, str]]:
    yield "before", "`casemate doctor`: driver, links, shared memory, limits"
    yield "in the log", f"`Available KV cache memory`: about {plan.kv_gib:.1f} GiB was predicted"
    yield "in the log", f"`Maximum concurrency for {plan.max_model_len:,} tokens`: {plan.full_length_requests:.2f}x"
    yield "it stops", "`casemate doctor --log engine.log` finds the root line and says what to do"
    yield "it runs", "`casemate doctor watch` names what limits it"
