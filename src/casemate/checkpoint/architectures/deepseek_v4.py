"""DeepSeek V4: shared keys compressed by 4 or 128 tokens, several residual streams, FP4 experts, and its drafts.

The list of tensors is that of vLLM 0.33.0's loader (`models/deepseek_v4`: `nvidia/model.py`, `attention.py`,
`compressor.py`, `nvidia/mtp.py`, `nvidia/dspark.py`) under the checkpoint's own names.
"""

from __future__ import annotations

from dataclasses import dataclass

from casemate.checkpoint.architectures import outside
from casemate.checkpoint.architectures.decoder import layer_count
from casemate.checkpoint.architectures.feedforward import MIXTRAL, Experts, Mixture, experts_of, mixture
from casemate.checkpoint.facts import Cache, Compressed
from casemate.checkpoint.keys import Keys
from casemate.checkpoint.parts import Anatomy, Outside, Part, Share, Weight, matrix, named, vector

DEFAULTS = {"expert_dtype": "fp4"}
"""What the loader assumes where a config leaves it out."""
_SPARSE_RATIO = 4
"""Only layers of this ratio have an indexer, and windows of theirs overlap."""
_RATIOS = frozenset({0, 1, _SPARSE_RATIO, 128})
_DRAFT_LAYERS = 3


@dataclass(frozen=True, slots=True)
class _Sizes:
    hidden: int
    heads: int
    head: int
    rope: int
    query_rank: int
    out_rank: int
    groups: int
    index_heads: int
    index_size: int
    streams: int
    window: int


def build(keys: Keys) -> Anatomy:
    """A model of this family.

    Raises:
        UsageError: a key that its size needs is missing or makes no sense.
    """
    sizes, count, experts = _sizes(keys), layer_count(keys), experts_of(keys)
    if experts is None:
        keys.refuse(f"the config does not tell {keys.path}n_routed_experts")
    ratios = _ratios(keys, count)
    hashed = keys.number("num_hash_layers", default=keys.texts("mlp_layer_types").count("hash_moe"), least=0)
    layers = [_layer(keys, sizes, experts=experts, ratio=ratio, hashed=n < hashed) for n, ratio in enumerate(ratios)]
    return Anatomy(
        tuple(layers),
        _outside(keys, sizes, experts=experts),
        tuple(
            _cache(sizes, ratio, layers=[n for n in range(count) if ratios[n] == ratio])
            for ratio in dict.fromkeys(ratios)
        ),
        attention_heads=sizes.heads,
        kv_heads=1,
        intermediate_size=experts.inner,
        experts=experts.count,
        experts_per_token=experts.chosen,
        prefix="layers.",
    )


def _sizes(keys: Keys) -> _Sizes:
    return _Sizes(
        hidden=keys.number("hidden_size"),
        heads=keys.number("num_attention_heads"),
        head=keys.number("head_dim"),
        rope=keys.number("qk_rope_head_dim"),
        query_rank=keys.number("q_lora_rank"),
        out_rank=keys.number("o_lora_rank"),
        groups=keys.number("o_groups"),
        index_heads=keys.number("index_n_heads"),
        index_size=keys.number("index_head_dim"),
        streams=keys.number("hc_mult", most=64),
        window=keys.number("sliding_window"),
    )


def _ratios(keys: Keys, count: int) -> list[int]:
    """Tokens in one compressed entry, for each layer; 0 where a layer has its window alone."""
    ratios = keys.numbers("compress_ratios")
    rates = keys.inner("compress_rates")
    if not ratios and rates is not None:
        ratios = [rates.number(kind, default=0, least=0) for kind in keys.texts("layer_types")]
    if len(ratios) < count:
        keys.refuse(f"{keys.path}compress_ratios has {len(ratios)} entries for {count} layers")
    strange = sorted(set(ratios[:count]) - _RATIOS)
    if strange:
        keys.refuse(f"{keys.path}compress_ratios has {strange[0]}; 0, 4 and 128 are known")
    return [0 if ratio == 1 else ratio for ratio in ratios[:count]]


def _cache(sizes: _Sizes, ratio: int, *, layers: list[int]) -> Cache:
    index = sizes.index_size if ratio == _SPARSE_RATIO else 0
    return Compressed(
        tuple(layers), ratio, window=sizes.window, head_size=sizes.head, rope_size=sizes.rope, index_size=index
    )


def _layer(keys: Keys, sizes: _Sizes, *, experts: Experts, ratio: int, hashed: bool = False) -> Part:
    mixed = (2 + sizes.streams) * sizes.streams
    streams = [
        weight
        for kind in ("attn", "ffn")
        for weight in (
            vector(f"hc_{kind}_fn", mixed, sizes.streams * sizes.hidden, dtype="float32"),
            vector(f"hc_{kind}_base", mixed, dtype="float32"),
            vector(f"hc_{kind}_scale", 3, dtype="float32"),
        )
    ]
    return (
        *named("attn.", _attention(sizes, ratio)),
        *_feedforward(keys, sizes.hidden, experts=experts, hashed=hashed),
        vector("attn_norm.weight", sizes.hidden),
        vector("ffn_norm.weight", sizes.hidden),
        *streams,
    )


def _attention(sizes: _Sizes, ratio: int) -> list[Weight]:
    wide = sizes.heads * sizes.head
    weights = [
        vector("attn_sink", sizes.heads, share=Share.SHARDED, dtype="float32"),
        matrix("wq_a", (sizes.query_rank, sizes.hidden), share=Share.REPLICATED),
        vector("q_norm.weight", sizes.query_rank),
        matrix("wq_b", (wide, sizes.query_rank)),
        matrix("wkv", (sizes.head, sizes.hidden), share=Share.REPLICATED),
        vector("kv_norm.weight", sizes.head),
        matrix("wo_a", (sizes.groups * sizes.out_rank, wide // sizes.groups)),
        matrix("wo_b", (sizes.hidden, sizes.groups * sizes.out_rank)),
    ]
    if ratio:
        weights += named("compressor.", _compressor(sizes.hidden, sizes.head, ratio=ratio))
    if ratio == _SPARSE_RATIO:
        weights += [
            matrix("indexer.wq_b", (sizes.index_heads * sizes.index_size, sizes.query_rank), share=Share.REPLICATED),
            vector("indexer.weights_proj.weight", sizes.index_heads, sizes.hidden),
            *named("indexer.compressor.", _compressor(sizes.hidden, sizes.index_size, ratio=ratio)),
        ]
    return weights


def _compressor(hidden: int, head: int, *, ratio: int) -> list[Weight]:
    wide = head * (2 if ratio == _SPARSE_RATIO else 1)
    return [
        vector("ape", ratio, wide, dtype="float32"),
        vector("wkv.weight", wide, hidden),
        vector("wgate.weight", wide, hidden),
        vector("norm.weight", head),
    ]


def _feedforward(keys: Keys, hidden: int, *, experts: Experts, hashed: bool) -> Part:
    """Experts chosen by scores, or in the first layers by a table of the token's number."""
    how = Mixture("ffn.", correction="" if hashed else "gate.bias", names=MIXTRAL)
    weights = mixture(hidden, experts, how=how)
    if not hashed:
        return weights
    return (*weights, vector("ffn.gate.tid2eid", outside.vocabulary(keys), experts.chosen, dtype="int64"))


def _outside(keys: Keys, sizes: _Sizes, *, experts: Experts) -> Outside:
    merge = _merge(sizes)
    embedding, head = outside.ends(
        keys, norm=(vector("norm.weight", sizes.hidden), *merge), embedding="embed.weight", head="head"
    )
    block = keys.number("dspark_block_size", default=0, least=0, most=64)
    parts = _blocks(keys, sizes, experts=experts) if block else _predictors(keys, sizes, experts=experts)
    return Outside(
        embedding,
        head,
        draft=tuple(named(f"mtp.{number}.", part) for number, part in enumerate(parts)),
        draft_method="dspark" if block else "mtp" if parts else "",
        draft_tokens=block or len(parts),
        draft_caches=(_cache(sizes, 0, layers=list(range(len(parts)))),) if parts else (),
    )


def _merge(sizes: _Sizes) -> Part:
    """What folds the residual streams into one before the head."""
    return (
        vector("hc_head_fn", sizes.streams, sizes.streams * sizes.hidden, dtype="float32"),
        vector("hc_head_base", sizes.streams, dtype="float32"),
        vector("hc_head_scale", 1, dtype="float32"),
    )


def _predictors(keys: Keys, sizes: _Sizes, *, experts: Experts) -> list[Part]:
    """Layers of multi-token prediction."""
    hidden = sizes.hidden
    part: Part = (
        *_layer(keys, sizes, experts=experts, ratio=0),
        vector("enorm.weight", hidden),
        vector("hnorm.weight", hidden),
        matrix("e_proj", (hidden, hidden), share=Share.REPLICATED),
        matrix("h_proj", (hidden, hidden), share=Share.REPLICATED),
        vector("norm.weight", hidden),
        *_merge(sizes),
    )
    return [part] * keys.number("num_nextn_predict_layers", default=0, least=0, most=16)


def _blocks(keys: Keys, sizes: _Sizes, *, experts: Experts) -> list[Part]:
    """The layers of a DSpark draft: the first takes states of the target, the last has the heads."""
    hidden, words, rank = sizes.hidden, outside.vocabulary(keys), keys.number("dspark_markov_rank")
    sources = len(keys.numbers("dspark_target_layer_ids"))
    if not sources:
        keys.refuse(f"the config does not tell {keys.path}dspark_target_layer_ids")
    count = keys.number("n_mtp_layers", default=_DRAFT_LAYERS, most=16)
    layer = _layer(keys, sizes, experts=experts, ratio=0)
    joint = matrix("main_proj", (hidden, sources * hidden), share=Share.REPLICATED)
    last: Part = (
        vector("norm.weight", hidden),
        *_merge(sizes),
        vector("markov_head.markov_w1.weight", words, rank),
        vector("markov_head.markov_w2.weight", words, rank),
        vector("confidence_head.proj.weight", 1, hidden + rank, dtype="float32"),
    )
    parts = [layer] * count
    parts[0] = (*parts[0], joint, vector("main_norm.weight", hidden))
    parts[-1] = (*parts[-1], *last)
    return parts
