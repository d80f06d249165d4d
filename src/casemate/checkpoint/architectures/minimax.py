"""MiniMax-Text-01 and M1 (arXiv 2501.08313): lightning attention, full attention in some layers, experts in all.

Shapes follow vLLM (`models/minimax_text_01.py`, `MambaStateShapeCalculator.linear_attention_state_shape`).
"""

from __future__ import annotations

from casemate.checkpoint.architectures import outside
from casemate.checkpoint.architectures.attention import FULL, Heads, Options, caches_by, grouped, heads_of, layer_types
from casemate.checkpoint.architectures.decoder import TWO_NORMS, layer_count
from casemate.checkpoint.architectures.feedforward import MIXTRAL, Mixture, dense, experts_of, mixture
from casemate.checkpoint.facts import Cache, Recurrent
from casemate.checkpoint.keys import Keys
from casemate.checkpoint.parts import Anatomy, Part, Share, matrix, vector

_ROUTED = Mixture("block_sparse_moe.", names=MIXTRAL, router_dtype="float32")


def build(keys: Keys) -> Anatomy:
    """A model of this family.

    Raises:
        UsageError: a key that its size needs is missing or makes no sense, or the kinds of layers are not told.
    """
    heads, experts, count = heads_of(keys), experts_of(keys), layer_count(keys)
    full = _full_layers(keys, count)
    inner = keys.number("intermediate_size")
    feed = mixture(heads.hidden, experts, how=_ROUTED) if experts else dense(heads.hidden, inner)
    norms = tuple(vector(f"{name}.weight", heads.hidden) for name in TWO_NORMS)
    layers = {True: (*grouped(heads, Options()), *feed, *norms), False: (*_lightning(heads), *feed, *norms)}
    return Anatomy(
        tuple(layers[n in full] for n in range(count)),
        outside.plain(keys),
        (
            *caches_by(dict.fromkeys(sorted(full), (heads, None))),
            *_states(heads, [n for n in range(count) if n not in full]),
        ),
        attention_heads=heads.query,
        kv_heads=heads.kv,
        intermediate_size=experts.inner if experts else inner,
        experts=experts.count if experts else 0,
        experts_per_token=experts.chosen if experts else 0,
    )


def _full_layers(keys: Keys, count: int) -> frozenset[int]:
    """By `attn_type_list` (1: full, 0: lightning), or by transformers' `layer_types`."""
    listed = keys.numbers("attn_type_list", most=1)
    if listed and len(listed) < count:
        keys.refuse(f"{keys.path}attn_type_list has {len(listed)} entries for {count} layers")
    if listed:
        return frozenset(n for n in range(count) if listed[n])
    kinds = layer_types(keys, count)
    if not kinds:
        keys.refuse(f"the config does not tell {keys.path}attn_type_list")
    return frozenset(n for n, kind in enumerate(kinds) if kind in FULL)


def _lightning(heads: Heads) -> Part:
    wide, at = heads.query_width, "self_attn."
    return (
        matrix(f"{at}qkv_proj", (3 * wide, heads.hidden)),
        matrix(f"{at}output_gate", (wide, heads.hidden)),
        matrix(f"{at}out_proj", (heads.hidden, wide)),
        vector(f"{at}norm.weight", wide, share=Share.SHARDED),
    )


def _states(heads: Heads, layers: list[int]) -> tuple[Cache, ...]:
    """One square of a head's size for each head, and no convolution."""
    if not layers:
        return ()
    numbers = heads.query * heads.key_size * heads.key_size
    return (Recurrent(tuple(layers), heads.query, state_numbers=numbers, convolution_numbers=0),)
