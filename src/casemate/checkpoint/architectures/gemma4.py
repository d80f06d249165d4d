"""Gemma 4: window and full attention, each with heads of its own size; in some models experts beside the feed-forward.

Its smallest models have embeddings for each layer, and late layers that use the cache of earlier ones. Read in vLLM
0.33.0 (`models/gemma4.py`). Values that equal the keys (`attention_k_eq_v`) are not stored, though the engine holds
both.
"""

from __future__ import annotations

from dataclasses import replace

from casemate.checkpoint.architectures import outside
from casemate.checkpoint.architectures.attention import (
    Heads,
    Options,
    caches_by,
    grouped,
    heads_of,
    windows,
)
from casemate.checkpoint.architectures.decoder import FOUR_NORMS, layer_count
from casemate.checkpoint.architectures.feedforward import Experts, Mixture, dense, experts_of, mixture
from casemate.checkpoint.keys import MOST_LAYERS, Keys
from casemate.checkpoint.parts import Anatomy, Outside, Part, Share, Weight, matrix, vector

DEFAULTS = {"tie_word_embeddings": True, "head_dim": 256, "sliding_window_pattern": 6}
"""What the family's configs may leave out."""
_OPTIONS = Options(norms="head")
_MIXTURE = Mixture(prefix="", router="router.proj.weight", fused=("experts.gate_up_proj", "experts.down_proj"))
_EXPERT_NORMS = ("post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2")


def build(keys: Keys) -> Anatomy:
    """A model of this family.

    Raises:
        UsageError: a key that its size needs is missing or makes no sense.
    """
    count = layer_count(keys)
    near, far = heads_of(keys), _far_heads(keys)
    spans = windows(keys, count)
    first_shared = count - keys.number("num_kv_shared_layers", default=0, least=0, most=MOST_LAYERS)
    experts = _experts(keys)
    layers = tuple(
        _layer(keys, near if spans[n] else far, full=not spans[n], shares=n >= first_shared, experts=experts)
        for n in range(count)
    )
    owners = {n: (near if spans[n] else far, spans[n]) for n in range(min(count, max(first_shared, 1)))}
    return Anatomy(
        layers,
        _outside(keys, count),
        caches_by(owners),
        attention_heads=near.query,
        kv_heads=near.kv,
        intermediate_size=max(_inner(keys, shares=first_shared < count), experts.inner if experts else 0),
        experts=experts.count if experts else 0,
        experts_per_token=experts.chosen if experts else 0,
    )


def _far_heads(keys: Keys) -> Heads:
    """The heads of layers that see all tokens: wider, and where keys serve as values fewer of them."""
    near = heads_of(keys)
    size = keys.number("global_head_dim", default=near.key_size)
    kv = near.kv
    if keys.flag("attention_k_eq_v"):
        kv = keys.number("num_global_key_value_heads", default=near.kv)
    if near.query % kv:
        keys.refuse(f"{near.query} attention heads cannot share {kv} key-value heads")
    return replace(near, kv=kv, key_size=size, value_size=size)


def _experts(keys: Keys) -> Experts | None:
    chosen = {"num_experts_per_tok": keys.get("top_k_experts")} if keys.has("top_k_experts") else {}
    inner = {"moe_intermediate_size": keys.get("expert_intermediate_size")}
    more = inner if keys.has("expert_intermediate_size") and not keys.has("moe_intermediate_size") else {}
    return experts_of(keys.behind({**chosen, **more}))


def _layer(keys: Keys, heads: Heads, *, full: bool, shares: bool, experts: Experts | None) -> Part:
    hidden = heads.hidden
    weights = [weight for weight in grouped(heads, _OPTIONS) if weight.name not in _left_out(keys, full, shares=shares)]
    weights += dense(hidden, _inner(keys, shares=shares))
    weights += [vector(f"{name}.weight", hidden) for name in FOUR_NORMS]
    weights.append(vector("layer_scalar", 1))
    if experts:
        weights += mixture(hidden, experts, how=_MIXTURE)
        weights += [vector("router.scale", hidden), vector("router.per_expert_scale", experts.count)]
        weights += [vector(f"{name}.weight", hidden) for name in _EXPERT_NORMS]
    return (*weights, *_layer_input(hidden, _input_size(keys)))


def _left_out(keys: Keys, full: bool, *, shares: bool) -> frozenset[str]:  # noqa: FBT001 - a kind of layer
    if shares:
        return frozenset({"self_attn.k_proj", "self_attn.v_proj", "self_attn.k_norm.weight"})
    return frozenset({"self_attn.v_proj"}) if full and keys.flag("attention_k_eq_v") else frozenset()


def _inner(keys: Keys, *, shares: bool) -> int:
    return keys.number("intermediate_size") * (2 if shares and keys.flag("use_double_wide_mlp") else 1)


def _input_size(keys: Keys) -> int:
    return keys.number("hidden_size_per_layer_input", default=0, least=0)


def _layer_input(hidden: int, size: int) -> list[Weight]:
    """What mixes a layer's own embedding of the token into its state."""
    if not size:
        return []
    return [
        matrix("per_layer_input_gate", (size, hidden), share=Share.REPLICATED),
        matrix("per_layer_projection", (hidden, size), share=Share.REPLICATED),
        vector("post_per_layer_input_norm.weight", hidden),
    ]


def _outside(keys: Keys, count: int) -> Outside:
    embedding, head = outside.ends(keys)
    size = _input_size(keys)
    if size:
        words = keys.number("vocab_size_per_layer_input", default=outside.vocabulary(keys))
        embedding = (
            *embedding,
            vector("model.embed_tokens_per_layer.weight", words, count * size, share=Share.SHARDED),
        )
        head = (
            *head,
            matrix("model.per_layer_model_projection", (count * size, keys.number("hidden_size"))),
            vector("model.per_layer_projection_norm.weight", size),
        )
    return Outside(embedding, head)
