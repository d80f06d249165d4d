"""Decoders of attention and feed-forward that differ in names, biases and norms alone, as one table of styles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from casemate.checkpoint.architectures import outside
from casemate.checkpoint.architectures.attention import Heads, Options, grouped, grouped_caches, heads_of, windows
from casemate.checkpoint.architectures.feedforward import (
    FUSED,
    JOINED,
    LLAMA,
    MIXTRAL,
    Experts,
    Mixture,
    Names,
    dense,
    experts_of,
    mixture,
    sparse_layers,
)
from casemate.checkpoint.keys import MOST_LAYERS, Keys
from casemate.checkpoint.parts import Anatomy, Outside, Part, vector

TWO_NORMS = ("input_layernorm", "post_attention_layernorm")
FOUR_NORMS = (*TWO_NORMS, "pre_feedforward_layernorm", "post_feedforward_layernorm")


@dataclass(frozen=True, slots=True)
class Style:
    """What a family does apart from the plain decoder.

    `bias` and `out_bias` None: the key `attention_bias` tells both. `norms` are the layer's, `norm_bias` gives each a
    bias; `norms_stated` says that `use_qk_norm` tells of norms of query and key. `guesses` says that layers of
    multi-token prediction (`num_nextn_predict_layers`) are stored, `own_ends` with their own embedding and head.
    `defaults` are the values of keys that the family's configs leave out.
    """

    options: Options = Options()  # noqa: RUF009 - a frozen value, the same for all styles
    bias: bool | None = None
    out_bias: bool | None = None
    norms: tuple[str, ...] = TWO_NORMS
    norm_bias: bool = False
    names: Names = LLAMA
    mixture: Mixture = Mixture()  # noqa: RUF009 - a frozen value, the same for all styles
    norms_stated: bool = False
    guesses: bool = False
    own_ends: bool = False
    defaults: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


_TIED = {"tie_word_embeddings": True}
_BIASED = {**_TIED, "mlp_bias": True}
_GEMMA = {**_TIED, "head_dim": 256}
_GEMMA_3 = {**_GEMMA, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 262_208}
_NORMED = Options(norms="head")
_NORMED_ALL = Options(norms="all")
_QWEN_SHARED = Mixture(shared="shared_expert.", shared_gate="shared_expert_gate.weight")
_CORRECTED = Mixture(correction="gate.e_score_correction_bias")
_MIXTRAL = Mixture("block_sparse_moe.", names=MIXTRAL)
_GRANITE = Mixture("block_sparse_moe.", router="router.layer.weight", fused=("input_linear", "output_linear"))
_AFTER = ("post_attention_layernorm", "post_feedforward_layernorm")

STYLES: Mapping[str, Style] = MappingProxyType(
    {
        "llama": Style(),
        "mistral": Style(),
        "ministral": Style(),
        "ministral3": Style(),
        "smollm3": Style(),
        "granite": Style(),
        "phi3": Style(Options(fused=True), names=JOINED, bias=False, out_bias=False),
        "qwen2": Style(bias=True, out_bias=False),
        "mimo": Style(bias=True, out_bias=False, guesses=True),
        "qwen2_vl": Style(bias=True, out_bias=False),
        "qwen2_vl_text": Style(bias=True, out_bias=False),
        "qwen2_5_vl": Style(bias=True, out_bias=False),
        "qwen2_5_vl_text": Style(bias=True, out_bias=False),
        "qwen3": Style(_NORMED),
        "qwen3_vl_text": Style(_NORMED),
        "gemma": Style(defaults=_GEMMA),
        "gemma2": Style(norms=FOUR_NORMS, defaults={**_GEMMA, "sliding_window": 4096, "sliding_window_pattern": 2}),
        "gemma3_text": Style(_NORMED, norms=FOUR_NORMS, defaults={**_GEMMA_3, "sliding_window_pattern": 6}),
        "glm": Style(out_bias=False, names=JOINED),
        "glm4": Style(out_bias=False, names=JOINED, norms=FOUR_NORMS),
        "seed_oss": Style(out_bias=False, defaults={"attention_bias": True}),
        "olmo2": Style(_NORMED_ALL, norms=_AFTER),
        "olmo3": Style(_NORMED_ALL, norms=_AFTER),
        "exaone4": Style(_NORMED, norms=_AFTER),
        "cohere": Style(norms=TWO_NORMS[:1], defaults=_TIED),
        "cohere2": Style(norms=TWO_NORMS[:1], defaults={**_TIED, "sliding_window_pattern": 4}),
        "starcoder2": Style(
            bias=True,
            out_bias=True,
            norm_bias=True,
            names=Names("", "c_fc", "c_proj"),
            defaults=_BIASED,
        ),
        "stablelm": Style(norm_bias=True, out_bias=False),
        "mixtral": Style(mixture=_MIXTRAL),
        "phimoe": Style(norm_bias=True, mixture=_MIXTRAL),
        "minimax_m2": Style(_NORMED_ALL, mixture=replace(_MIXTRAL, correction="e_score_correction_bias")),
        "qwen2_moe": Style(bias=True, out_bias=False, mixture=_QWEN_SHARED),
        "qwen3_moe": Style(_NORMED),
        "qwen3_vl_moe_text": Style(_NORMED, mixture=Mixture(fused=FUSED)),
        "olmoe": Style(_NORMED_ALL),
        "granitemoe": Style(mixture=_GRANITE, defaults=_TIED),
        "glm4_moe": Style(out_bias=False, mixture=_CORRECTED, norms_stated=True, guesses=True, own_ends=True),
        "dots1": Style(_NORMED, mixture=_CORRECTED),
        "ernie4_5": Style(),
        "llama4_text": Style(
            defaults={"num_shared_experts": 1, "sliding_window_pattern": 4},
            mixture=Mixture("feed_forward.", router="router.weight", shared="shared_expert.", fused=FUSED),
        ),
    }
)
"""By the config's `model_type`. Read in the loaders of vLLM 0.33.0 and the classes of transformers 5."""


def plain(keys: Keys, style: Style) -> Anatomy:
    """A decoder of this style.

    Raises:
        UsageError: a key that its size needs is missing or makes no sense.
    """
    heads, experts, count = heads_of(keys), experts_of(keys), layer_count(keys)
    sparse = sparse_layers(keys, count) if experts else frozenset()
    attention = grouped(heads, _options(keys, style))
    without = _layer(keys, style, attention=attention, experts=None) if len(sparse) < count else ()
    within = _layer(keys, style, attention=attention, experts=experts) if sparse else ()
    layers = tuple(within if number in sparse else without for number in range(count))
    return Anatomy(
        layers,
        _outside(keys, style, heads=heads, last=layers[-1]),
        grouped_caches(heads, windows(keys, count)),
        attention_heads=heads.query,
        kv_heads=heads.kv,
        intermediate_size=max(_inner(keys) if without else 0, experts.inner if experts else 0),
        experts=experts.count if experts else 0,
        experts_per_token=experts.chosen if experts else 0,
    )


def layer_count(keys: Keys) -> int:
    """How many layers the config tells."""
    return keys.number("num_hidden_layers", "n_layer", "n_layers", "num_layers", most=MOST_LAYERS)


def _options(keys: Keys, style: Style) -> Options:
    stated = keys.flag("attention_bias", default=keys.flag("qkv_bias", default=keys.flag("use_bias")))
    bias = stated if style.bias is None else style.bias
    out_bias = keys.flag("attention_out_bias", default=bias) if style.out_bias is None else style.out_bias
    norms = "head" if style.norms_stated and keys.flag("use_qk_norm") else style.options.norms
    return replace(style.options, bias=bias, out_bias=out_bias, norms=norms)


def _layer(keys: Keys, style: Style, *, attention: Part, experts: Experts | None) -> Part:
    hidden = keys.number("hidden_size", "n_embd", "d_model")
    norms = tuple(vector(f"{name}.weight", hidden) for name in style.norms)
    if style.norm_bias:
        norms += tuple(vector(f"{name}.bias", hidden) for name in style.norms)
    if experts:
        return (*attention, *mixture(hidden, experts, how=style.mixture), *norms)
    prefix = "feed_forward." if style.mixture.prefix == "feed_forward." else "mlp."
    bias = keys.flag("mlp_bias", default=keys.flag("use_bias"))
    return (*attention, *dense(hidden, _inner(keys), prefix=prefix, names=style.names, bias=bias), *norms)


def _inner(keys: Keys) -> int:
    return keys.number("intermediate_size_mlp", "intermediate_size", "ffn_hidden_size", "n_inner")


def _outside(keys: Keys, style: Style, *, heads: Heads, last: Part) -> Outside:
    hidden = keys.number("hidden_size", "n_embd", "d_model")
    norm: Part = (vector("model.norm.weight", hidden),)
    if style.norm_bias:
        norm = (*norm, vector("model.norm.bias", hidden))
    guesses = keys.number("num_nextn_predict_layers", default=0, least=0, most=16) if style.guesses else 0
    if not guesses:
        return outside.plain(keys, norm=norm)
    first = layer_count(keys)
    parts = [outside.guessing(keys, layer=last, own_ends=style.own_ends) for _ in range(guesses)]
    return outside.with_guesses(keys, parts, caches=grouped_caches(heads, [None] * guesses), first=first)
