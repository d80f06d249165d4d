"""Qwen3-Next, Qwen3.5 and their kin: gated delta nets (arXiv 2412.06464) with full attention in every n-th layer.

Shapes follow vLLM 0.33.0 (`layers/mamba/gdn/qwen_gdn_linear_attn.py`, `layers/mamba/mamba_utils.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from casemate.checkpoint.architectures import outside
from casemate.checkpoint.architectures.attention import (
    FULL,
    Heads,
    Options,
    caches_by,
    grouped,
    heads_of,
    layer_types,
)
from casemate.checkpoint.architectures.decoder import TWO_NORMS, layer_count
from casemate.checkpoint.architectures.feedforward import (
    FUSED,
    Experts,
    Mixture,
    dense,
    experts_of,
    mixture,
    sparse_layers,
)
from casemate.checkpoint.facts import Cache, Recurrent
from casemate.checkpoint.keys import Keys
from casemate.checkpoint.parts import Anatomy, Outside, Part, Share, Weight, matrix, named, vector

DEFAULTS = {"head_dim": 256, "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "mamba_ssm_dtype": "float32"}
"""What the family's configs may leave out."""
_ASSUMED = "a layer of multi-token prediction is counted, as the released models have one; the config tells none"
_GUESSES = ("num_nextn_predict_layers", "mtp_num_hidden_layers")


@dataclass(frozen=True, slots=True)
class Variant:
    """`split` stores each input projection of the delta net apart (Qwen3.5), `fused` all experts as one tensor."""

    split: bool = False
    fused: bool = False


@dataclass(frozen=True, slots=True)
class _Net:
    """The sizes of a delta net's layer."""

    key_heads: int
    value_heads: int
    key_size: int
    value_size: int
    kernel: int

    @property
    def keys_width(self) -> int:
        return self.key_heads * self.key_size

    @property
    def values_width(self) -> int:
        return self.value_heads * self.value_size

    @property
    def convolved(self) -> int:
        return 2 * self.keys_width + self.values_width


def build(keys: Keys, variant: Variant) -> Anatomy:
    """A model of this family.

    Raises:
        UsageError: a key that its size needs is missing or makes no sense.
    """
    heads, experts, count = heads_of(keys), experts_of(keys), layer_count(keys)
    net, full = _net(keys), _full_layers(keys, count)
    sparse = sparse_layers(keys, count) if experts else frozenset()
    mixers = {True: _attention(keys, heads), False: _linear(heads.hidden, net, variant=variant)}
    feeds = {
        kind: _feedforward(keys, heads.hidden, experts=experts if kind else None, variant=variant)
        for kind in {n in sparse for n in range(count)}
    }
    return Anatomy(
        tuple((*mixers[n in full], *feeds[n in sparse]) for n in range(count)),
        _outside(keys, heads, layer=(*mixers[True], *feeds[count - 1 in sparse])),
        (
            *caches_by(dict.fromkeys(sorted(full), (heads, None))),
            *_states(keys, net, layers=[n for n in range(count) if n not in full]),
        ),
        attention_heads=heads.query,
        kv_heads=heads.kv,
        intermediate_size=max(experts.inner if experts else 0, 0 if experts and len(sparse) == count else _inner(keys)),
        experts=experts.count if experts else 0,
        experts_per_token=experts.chosen if experts else 0,
        notes=() if any(keys.has(name) for name in _GUESSES) else (_ASSUMED,),
    )


def _net(keys: Keys) -> _Net:
    return _Net(
        key_heads=keys.number("linear_num_key_heads"),
        value_heads=keys.number("linear_num_value_heads"),
        key_size=keys.number("linear_key_head_dim"),
        value_size=keys.number("linear_value_head_dim"),
        kernel=keys.number("linear_conv_kernel_dim", most=64),
    )


def _inner(keys: Keys) -> int:
    return keys.number("intermediate_size")


def _full_layers(keys: Keys, count: int) -> frozenset[int]:
    kinds = layer_types(keys, count)
    if kinds:
        return frozenset(n for n, kind in enumerate(kinds) if kind in FULL)
    every = keys.number("full_attention_interval")
    return frozenset(n for n in range(count) if (n + 1) % every == 0)


def _attention(keys: Keys, heads: Heads) -> Part:
    bias = keys.flag("attention_bias")
    gated = keys.flag("attn_output_gate", default=True)
    return grouped(heads, Options(bias=bias, out_bias=bias, norms="head", gated=gated))


def _linear(hidden: int, net: _Net, *, variant: Variant) -> Part:
    rows = {"in_proj_qkvz": net.convolved + net.values_width, "in_proj_ba": 2 * net.value_heads}
    if variant.split:
        rows = {
            "in_proj_qkv": net.convolved,
            "in_proj_z": net.values_width,
            "in_proj_b": net.value_heads,
            "in_proj_a": net.value_heads,
        }
    weights = [
        *(matrix(name, (out, hidden)) for name, out in rows.items()),
        vector("conv1d.weight", net.convolved, 1, net.kernel, share=Share.SHARDED),
        vector("A_log", net.value_heads, share=Share.SHARDED),
        vector("dt_bias", net.value_heads, share=Share.SHARDED),
        vector("norm.weight", net.value_size),
        matrix("out_proj", (hidden, net.values_width)),
    ]
    return named("linear_attn.", weights)


def _feedforward(keys: Keys, hidden: int, *, experts: Experts | None, variant: Variant) -> Part:
    norms = [vector(f"{name}.weight", hidden) for name in TWO_NORMS]
    if experts is None:
        return (*dense(hidden, _inner(keys)), *norms)
    fused = FUSED if variant.fused else None
    how = Mixture(shared="shared_expert.", shared_gate="shared_expert_gate.weight", fused=fused)
    return (*mixture(hidden, experts, how=how), *norms)


def _outside(keys: Keys, heads: Heads, *, layer: Part) -> Outside:
    embedding, head = outside.ends(keys)
    count = keys.number(*_GUESSES, default=1, least=0, most=16)
    if not count:
        return Outside(embedding, head)
    hidden = heads.hidden
    around: list[Weight] = [
        matrix("mtp.fc", (hidden, 2 * hidden)),
        *(vector(f"mtp.{name}.weight", hidden) for name in ("norm", "pre_fc_norm_hidden", "pre_fc_norm_embedding")),
    ]
    drafts = [named(f"mtp.layers.{number}.", layer) for number in range(count)]
    drafts[0] = (*drafts[0], *around)
    caches = caches_by(dict.fromkeys(range(count), (heads, None)))
    return Outside(embedding, head, tuple(drafts), draft_method="mtp", draft_tokens=count, draft_caches=caches)


def _states(keys: Keys, net: _Net, *, layers: list[int]) -> tuple[Cache, ...]:
    if not layers:
        return ()
    state = Recurrent(
        tuple(layers),
        net.value_heads,
        state_numbers=net.value_heads * net.value_size * net.key_size,
        convolution_numbers=net.convolved * (net.kernel - 1),
        state_dtype=keys.text("mamba_ssm_dtype"),
        groups=net.key_heads,
    )
    return (state,)
