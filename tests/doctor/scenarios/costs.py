"""What one step of an engine costs its cards, the link between them, and the processor."""

from __future__ import annotations

from doctor.scenarios.plant import Card
from doctor.scenarios.values import Setup, Turn


def cost(setup: Setup, cards_: list[Card], *, prefill: int, decoding: int, context: tuple[int, float]) -> Turn:
    """What one step costs, with every card's clock as it is."""
    model = setup.model
    whole, mean = context
    tokens = prefill + decoding
    stages = setup.stages
    cards = len(cards_) // stages
    attention = 4 * model.layers * model.hidden * (prefill * mean / 2)
    flops = (2 * model.active * tokens + attention) / cards
    read = (model.read_bytes(tokens) + whole * model.kv_bytes + tokens * model.hidden * model.layers * 120) / cards
    turn = Turn()
    for card, share in zip(cards_, setup.split, strict=True):
        part = share / stages
        turn.arithmetic.append(part * flops / (card.chip.flops * setup.efficiency / 0.6 * card.clock))
        turn.memory.append(part * read / (card.chip.bandwidth * 0.92))
        turn.kernels.append((turn.arithmetic[-1] ** 4 + turn.memory[-1] ** 4) ** 0.25 + model.layers / stages * 8e-6)
    slowest = max(turn.kernels)
    if cards > 1:
        moved = tokens * model.hidden * 2 * 2 * (cards - 1) / cards
        turn.link = 2 * model.layers * (setup.link.latency_s + moved / setup.link.bytes_per_s)
        turn.link_bytes = 2 * model.layers * moved
    turn.host = setup.offloaded_bytes / setup.host_bytes_per_s
    turn.processor = setup.step_cpu_s + setup.sequence_cpu_s * (decoding + 1)
    busy = max(slowest + turn.link, turn.host)
    turn.whole = max(busy, turn.processor) if setup.overlap else busy + turn.processor
    return turn
