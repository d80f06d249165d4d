"""What a watched engine looks like in a terminal: a table that fits into 80 columns, and the verdict with its reasons.

Names of processes and lines of a log are foreign text: they are shown with control characters made visible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from casemate.doctor.watch.bottleneck import Verdict
from casemate.doctor.watch.engine_figures import steps
from casemate.doctor.watch.evidence import number
from casemate.doctor.watch.sample import CardSample, EngineSample, Sample
from casemate.report.visible import visible

_BARS = "▁▂▃▄▅▆▇█"
_HISTORY = 28
_SHOWN_SUSPECTS = 3
_SHOWN_EVIDENCE = 6


def screen(window: Sequence[Sample], verdict: Verdict, *, url: str) -> RenderableType:
    """Everything, newest figures first, history beside them."""
    return Group(_engine(window, url), *_ratios(verdict), *_cards(window, verdict), Text(""), *_told(verdict))


def lines(verdict: Verdict) -> list[str]:
    """The verdict and its reasons as plain lines."""
    head = f"verdict: {verdict.kind}"
    told = [head, f"advice:  {verdict.advice}"]
    for suspect in verdict.suspects[:_SHOWN_SUSPECTS]:
        told.append(f"{suspect.kind} ({suspect.weight:.2f})")
        told += [f"    {one.text}" for one in suspect.evidence[: 2 * _SHOWN_EVIDENCE]]
    told += [f"not seen: {missing}" for missing in verdict.partial]
    return [visible(line) for line in told]


def spark(values: Iterable[float | None], *, most: float = 0.0) -> str:
    """A line of bars, one a value; a gap where a value is not known. `most` is the full bar, else the largest is."""
    held = list(values)[-_HISTORY:]
    top = most or max((value for value in held if value is not None), default=0.0)
    return "".join(" " if value is None else _bar(value, top) for value in held)


def _bar(value: float, top: float) -> str:
    share = value / top if top > 0 else 0.0
    return _BARS[min(len(_BARS) - 1, max(0, int(share * len(_BARS))))]


def _engine(window: Sequence[Sample], url: str) -> Table:
    table = Table(
        box=None, padding=(0, 1), expand=False, title=Text(visible(url), overflow="ellipsis"), title_justify="left"
    )
    for heading in ("", "now", "history"):
        table.add_column(heading, no_wrap=True)
    last = window[-1]
    if last.engine is None:
        table.add_row("engine", visible(last.reach), visible(last.reach_error)[:48])
    told = [sample.engine for sample in window]
    for name, value in _GAUGES:
        history = [value(engine) if engine else None for engine in told]
        table.add_row(name, _shown(history[-1]), spark(history, most=1.0 if name == "cache" else 0.0))
    for name, counter in _RATES:
        history = _rates(window, counter)
        table.add_row(name, _shown(history[-1] if history else None), spark(history))
    return table


_GAUGES: tuple[tuple[str, Callable[[EngineSample], float | None]], ...] = (
    ("running", lambda engine: engine.running),
    ("waiting", lambda engine: engine.waiting),
    ("cache", lambda engine: engine.kv_usage),
)
_RATES = (
    ("prompt tokens/s", "prompt_tokens"),
    ("tokens/s", "generation_tokens"),
    ("preemptions/s", "preemptions"),
)


def _ratios(verdict: Verdict) -> Iterable[Text]:
    """Means over the window, of those that the engine tells."""
    engine = verdict.figures.engine
    told = (
        ("prefix cache hits", _percent(engine.prefix_hits)),
        ("drafts accepted", _percent(engine.acceptance)),
        ("in the queue", f"{_shown(engine.queue_s)} s"),
        ("to the first token", f"{_shown(engine.first_token_s)} s"),
    )
    line = " · ".join(f"{name} {value}" for name, value in told if not value.startswith("?"))
    if line:
        yield Text(f" {line}", style="dim")


def _rates(window: Sequence[Sample], counter: str) -> list[float | None]:
    found: list[float | None] = []
    for step in steps(window):
        one, other = getattr(step.one, counter), getattr(step.other, counter)
        known = one is not None and other is not None and other >= one
        found.append((other - one) / step.time_s if known else None)
    return found


def _cards(window: Sequence[Sample], verdict: Verdict) -> Iterable[RenderableType]:
    last = window[-1]
    if not last.cards:
        return
    table = Table(box=None, padding=(0, 1), expand=False)
    for heading in ("card", "busy", "mem", "VRAM", "watt", "MHz", "°C", "PCIe", "NVL", "held back by"):
        table.add_column(heading, no_wrap=True, justify="left" if heading in ("card", "held back by") else "right")
    links = {card.index: card.nvlink_bytes_per_s for card in verdict.figures.cards}
    for card in last.cards:
        table.add_row(*_row(card, links.get(card.index)))
    yield Text("")
    yield table
    for card in last.cards:
        for use in card.processes[:4]:
            held = f"{use.memory_bytes / 1e9:.1f} GB" if use.memory_bytes is not None else "?"
            yield Text(f"   {card.index}: process {use.pid} {visible(use.name)[:24]} {held}", style="dim")


def _row(card: CardSample, nvlink: float | None) -> tuple[str, ...]:
    held = ", ".join(reason.removesuffix("_slowdown") for reason, share in card.throttle if share > 0.1)
    link = max(card.pcie_received_bytes_per_s or 0.0, card.pcie_sent_bytes_per_s or 0.0)
    return (
        str(card.index),
        _percent(card.busy),
        _percent(card.memory_busy),
        _percent(_over(card.memory_used_bytes, card.memory_total_bytes)),
        "?" if card.power_w is None else f"{card.power_w:.0f}",
        "?" if card.sm_clock_hz is None else f"{card.sm_clock_hz / 1e6:.0f}",
        "?" if card.temperature_c is None else str(card.temperature_c),
        "?" if card.pcie_sent_bytes_per_s is None else f"{link / 1e9:.1f}G",
        "?" if nvlink is None else f"{nvlink / 1e9:.0f}G",
        held[:18],
    )


def _told(verdict: Verdict) -> Iterable[Text]:
    style = "red" if verdict.found else "green" if verdict.suspects else "yellow"
    yield Text(f"{verdict.kind}", style=f"bold {style}") + Text(f"  {verdict.advice}", style="")
    if verdict.suspects:
        for one in verdict.suspects[0].evidence[:_SHOWN_EVIDENCE]:
            yield Text(f"  · {visible(one.text)}")
    others = [f"{suspect.kind} {suspect.weight:.2f}" for suspect in verdict.suspects[1 : 1 + _SHOWN_SUSPECTS]]
    if others:
        yield Text("  also: " + ", ".join(others), style="dim")
    for missing in verdict.partial:
        yield Text(f"  not seen: {visible(missing)}", style="yellow")


def _shown(value: float | None) -> str:
    return "?" if value is None else number(value)


def _percent(value: float | None) -> str:
    return "?" if value is None else f"{100 * value:.0f}%"


def _over(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other
