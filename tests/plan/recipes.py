"""What the tests of the recipe linter judge by: small models and hosts of our own making, in the real forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

from casemate.checkpoint.config import checkpoint_from_config
from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.machine import Card, Machine, Pair
from casemate.engine.flags.advice import advice
from casemate.engine.flags.published import published
from casemate.engine.flags.table import recorded
from casemate.plan.recipe.judging import Ground, Report, judge
from casemate.plan.recipe.reading import launches

GIB = 1 << 30
_DENSE: dict[str, object] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}


def dense() -> Checkpoint:
    """A dense model of eight billion parameters in bfloat16, not quantized."""
    return checkpoint_from_config(_DENSE, Path("dense/config.json"))


def v4(name: str = "DeepSeek-V4-Flash") -> Checkpoint:
    """DeepSeek-V4-Flash's facts as they are published, without weights."""
    found = published(f"deepseek-ai/{name}")
    assert found is not None
    return found


MODELS: dict[str, Callable[[], Checkpoint | None]] = {
    "": lambda: None,
    "dense": dense,
    "v4": v4,
    "0731": lambda: v4("DeepSeek-V4-Flash-0731"),
}


def host(
    count: int = 2, *, gib: float = 95.6, capability: tuple[int, int] = (9, 0), peer: bool | None = True
) -> Machine:
    """A host with so many equal cards, all linked alike."""
    cards = tuple(
        Card(index, "card", memory_total_bytes=int(gib * GIB), compute_capability=capability) for index in range(count)
    )
    pairs = tuple(Pair(a, b, "NV18", peer) for a in range(count) for b in range(a + 1, count))
    room = 256 * GIB
    return Machine(64, room, room, room, "Linux", "x86_64", cards, pairs)


HOSTS: dict[str, Callable[[], Machine | None]] = {
    "": lambda: None,
    "hopper": host,
    "blackwell": lambda: host(capability=(10, 0), gib=180),
    "unlinked": lambda: host(peer=False),
    "turing": lambda: host(gib=15.6, capability=(7, 5)),
    "tiny": lambda: host(1, gib=14.7, capability=(7, 5)),
    "small": lambda: host(1, gib=22, capability=(8, 9)),
}


@cache
def ground(version: str = "0.33.0", model: str = "", machine: str = "") -> Ground:
    """What to judge by: a recorded version, one of MODELS, one of HOSTS."""
    history = recorded()
    return Ground(history.table(version), history, advice(), MODELS[model](), HOSTS[machine]())


def judged(text: str, by: Ground | None = None) -> Report:
    """The only start in a text, judged."""
    (launch,) = launches(text)
    return judge(launch, by or ground())
