"""Attention as weights and caches: grouped heads with their options, and multi-head latent attention.

Which weights tensor parallelism slices follows the loaders of vLLM 0.33.0 (`model_executor/models`): projections by
heads are sliced, latents, norms and indexers are on every rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from casemate.checkpoint.facts import Cache, Grouped, Latent
from casemate.checkpoint.keys import Keys
from casemate.checkpoint.parts import Part, Share, Weight, matrix, vector

SLIDING = frozenset({"sliding_attention", "sliding", "local_attention", "chunked_attention", "compressed_sliding"})
_WIDE = 1 << 32
FULL = frozenset({"full_attention", "full", "global_attention", "attention", "global"})


@dataclass(frozen=True, slots=True)
class Heads:
    """Grouped attention: query heads, key-value heads, and numbers per head."""

    query: int
    kv: int
    key_size: int
    value_size: int
    hidden: int

    @property
    def query_width(self) -> int:
        """Numbers of all query heads together."""
        return self.query * self.key_size


@dataclass(frozen=True, slots=True)
class Options:
    """What differs between families: biases, norms of query and key (`head`: one for all heads; `all`: each its own).

    `gated` doubles the query projection for an output gate, `fused` stores query, key and value as one matrix, `sinks`
    gives each head a learnt logit.
    """

    bias: bool = False
    out_bias: bool = False
    norms: Literal["", "head", "all"] = ""
    gated: bool = False
    fused: bool = False
    sinks: bool = False
    prefix: str = "self_attn."
    out: str = "o_proj"


def heads_of(keys: Keys) -> Heads:
    """Read the heads; a head's size is explicit or hidden over heads."""
    hidden = keys.number("hidden_size", "n_embd", "d_model")
    query = keys.number("num_attention_heads", "n_head", "num_heads")
    kv = keys.number("num_key_value_heads", "num_kv_heads", "n_head_kv", default=query)
    size = keys.number("head_dim", "attention_head_dim", "kv_channels", default=max(hidden // query, 1))
    if query % kv:
        keys.refuse(f"{query} attention heads cannot share {kv} key-value heads")
    return Heads(query, kv, key_size=size, value_size=keys.number("v_head_dim", default=size), hidden=hidden)


def grouped(heads: Heads, options: Options) -> Part:
    """The weights of one layer of grouped attention."""
    query = heads.query_width * (2 if options.gated else 1)
    keys, values = heads.kv * heads.key_size, heads.kv * heads.value_size
    rows = {"q_proj": query, "k_proj": keys, "v_proj": values}
    if options.fused:
        rows = {"qkv_proj": query + keys + values}
    at = options.prefix
    weights = [matrix(at + name, (out, heads.hidden)) for name, out in rows.items()]
    weights.append(matrix(at + options.out, (heads.hidden, heads.query * heads.value_size)))
    if options.bias:
        weights += [vector(f"{at}{name}.bias", out, share=Share.SHARDED) for name, out in rows.items()]
    if options.out_bias:
        weights.append(vector(f"{at}{options.out}.bias", heads.hidden))
    if options.norms:
        each = options.norms == "head"
        weights += [
            vector(f"{at}q_norm.weight", heads.key_size if each else heads.query_width),
            vector(f"{at}k_norm.weight", heads.key_size if each else keys),
        ]
    if options.sinks:
        weights.append(vector(at + "sinks", heads.query, share=Share.SHARDED))
    return tuple(weights)


def grouped_caches(heads: Heads, windows: Sequence[int | None]) -> tuple[Cache, ...]:
    """One group for each window among the layers; `windows` has an entry for each layer, None for all tokens."""
    return caches_by({number: (heads, window) for number, window in enumerate(windows)})


def caches_by(layers: dict[int, tuple[Heads, int | None]]) -> tuple[Cache, ...]:
    """Groups of equal layers, in the order of their first."""
    groups: dict[tuple[Heads, int | None], list[int]] = {}
    for number, shape in layers.items():
        groups.setdefault(shape, []).append(number)
    return tuple(
        Grouped(tuple(numbers), heads.kv, key_size=heads.key_size, value_size=heads.value_size, window=window)
        for (heads, window), numbers in groups.items()
    )


def layer_types(keys: Keys, layers: int) -> list[str]:
    """The kind of each layer; empty where the config does not list them."""
    kinds = keys.texts("layer_types")
    if kinds and len(kinds) < layers:
        keys.refuse(f"{keys.path}layer_types has {len(kinds)} entries for {layers} layers")
    return kinds[:layers]


def windows(keys: Keys, layers: int) -> list[int | None]:
    """The sliding window of each layer in tokens; None for full attention.

    By `layer_types`, a pattern (`sliding_window_pattern`: each n-th layer is full), or one window for all layers.
    """
    kinds = layer_types(keys, layers)
    window = keys.number(
        "sliding_window", "sliding_window_size", "attention_chunk_size", default=0, least=0, most=_WIDE
    )
    if not window or keys.get("use_sliding_window") is False:
        return [None] * layers
    if kinds:
        return [window if kind in SLIDING else None for kind in kinds]
    pattern = keys.get("sliding_window_pattern")
    if isinstance(pattern, str) and pattern:  # Exaone writes LLLG
        return [window if pattern[n % len(pattern) :].startswith("L") else None for n in range(layers)]
    every = keys.number("sliding_window_pattern", "_sliding_window_pattern", default=0, least=0)
    first = keys.number("max_window_layers", default=0, least=0)
    return [None if (every and not (number + 1) % every) or number < first else window for number in range(layers)]


@dataclass(frozen=True, slots=True)
class LatentHeads:
    """Multi-head latent attention: its ranks and the sizes of a head. `query_rank` is 0 where queries are direct."""

    hidden: int
    query: int
    query_rank: int
    latent: int
    nope: int
    rope: int
    value: int
    index_heads: int = 0
    index_size: int = 0


def latent_of(keys: Keys) -> LatentHeads:
    """Read multi-head latent attention (`kv_lora_rank` and its kin), and the sparse indexer if there is one."""
    return LatentHeads(
        hidden=keys.number("hidden_size"),
        query=keys.number("num_attention_heads"),
        query_rank=keys.number("q_lora_rank", default=0, least=0),
        latent=keys.number("kv_lora_rank"),
        nope=keys.number("qk_nope_head_dim"),
        rope=keys.number("qk_rope_head_dim", least=0),
        value=keys.number("v_head_dim"),
        index_heads=keys.number("index_n_heads", default=0, least=0) if keys.has("index_topk") else 0,
        index_size=keys.number("index_head_dim", default=0, least=0) if keys.has("index_topk") else 0,
    )


def latent(heads: LatentHeads, *, prefix: str = "self_attn.") -> Part:
    """The weights of one layer of latent attention (arXiv 2405.04434, section 2.1)."""
    wide = heads.query * (heads.nope + heads.rope)
    weights = [matrix("q_proj", (wide, heads.hidden))]
    if heads.query_rank:
        weights = [
            matrix("q_a_proj", (heads.query_rank, heads.hidden), share=Share.REPLICATED),
            vector("q_a_layernorm.weight", heads.query_rank),
            matrix("q_b_proj", (wide, heads.query_rank)),
        ]
    weights += [
        matrix("kv_a_proj_with_mqa", (heads.latent + heads.rope, heads.hidden), share=Share.REPLICATED),
        vector("kv_a_layernorm.weight", heads.latent),
        matrix("kv_b_proj", (heads.query * (heads.nope + heads.value), heads.latent)),
        matrix("o_proj", (heads.hidden, heads.query * heads.value)),
        *_indexer(heads),
    ]
    return tuple(replace(weight, name=prefix + weight.name) for weight in weights)


def _indexer(heads: LatentHeads) -> list[Weight]:
    if not heads.index_size:
        return []
    return [
        matrix("indexer.wq_b", (heads.index_heads * heads.index_size, heads.query_rank), share=Share.REPLICATED),
        matrix("indexer.wk", (heads.index_size, heads.hidden), share=Share.REPLICATED),
        vector("indexer.k_norm.weight", heads.index_size, dtype="float32"),
        vector("indexer.k_norm.bias", heads.index_size, dtype="float32"),
        vector("indexer.weights_proj.weight", heads.index_heads, heads.hidden),
    ]


def latent_cache(heads: LatentHeads, layers: Sequence[int]) -> Cache:
    """What these layers keep."""
    return Latent(tuple(layers), heads.latent, rope_size=heads.rope, index_size=heads.index_size)
