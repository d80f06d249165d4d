"""gpt-oss: grouped attention with sinks in turns of window and all tokens, and experts fused in one tensor a layer."""

from __future__ import annotations

from dataclasses import replace

from casemate.checkpoint.architectures import outside
from casemate.checkpoint.architectures.attention import Options, grouped, grouped_caches, heads_of, windows
from casemate.checkpoint.architectures.decoder import TWO_NORMS, layer_count
from casemate.checkpoint.architectures.feedforward import FUSED, Experts, Mixture, experts_of, mixture
from casemate.checkpoint.keys import Keys
from casemate.checkpoint.parts import Anatomy, Part, Share, Weight, vector

DEFAULTS = {"attention_bias": True, "sliding_window_pattern": 2}
"""What the family's configs may leave out."""
_MIXTURE = Mixture(router="router.weight", router_bias="router.bias", fused=FUSED)


def build(keys: Keys) -> Anatomy:
    """A model of this family.

    Raises:
        UsageError: a key that its size needs is missing or makes no sense.
    """
    heads, experts, count = heads_of(keys), experts_of(keys), layer_count(keys)
    if experts is None:
        keys.refuse(f"the config does not tell {keys.path}num_local_experts")
    bias = keys.flag("attention_bias")
    layer: Part = (
        *grouped(heads, Options(bias=bias, out_bias=bias, sinks=True)),
        *mixture(heads.hidden, experts, how=_MIXTURE),
        *_biases(heads.hidden, experts),
        *(vector(f"{name}.weight", heads.hidden) for name in TWO_NORMS),
    )
    return Anatomy(
        (layer,) * count,
        outside.plain(keys),
        grouped_caches(heads, windows(keys, count)),
        attention_heads=heads.query,
        kv_heads=heads.kv,
        intermediate_size=experts.inner,
        experts=experts.count,
        experts_per_token=experts.chosen,
    )


def _biases(hidden: int, experts: Experts) -> list[Weight]:
    shapes = {"mlp.experts.gate_up_proj_bias": 2 * experts.inner, "mlp.experts.down_proj_bias": hidden}
    bias = Weight("", (), Share.EXPERT, copies=experts.count, fused=True)
    return [replace(bias, name=name, shape=(size,)) for name, size in shapes.items()]
