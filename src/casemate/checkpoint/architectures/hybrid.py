"""Models with state space layers: Mamba and Mamba-2 alone, Jamba, Bamba, Falcon-H1, Granite 4, Nemotron-H."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from casemate.checkpoint.architectures import outside
from casemate.checkpoint.architectures.attention import FULL, Heads, Options, caches_by, grouped, heads_of, layer_types
from casemate.checkpoint.architectures.decoder import TWO_NORMS, layer_count
from casemate.checkpoint.architectures.feedforward import (
    UNGATED,
    Experts,
    Mixture,
    dense,
    experts_of,
    mixture,
)
from casemate.checkpoint.architectures.state_space import (
    mamba1,
    mamba1_of,
    mamba1_states,
    mamba2,
    mamba2_of,
    mamba2_states,
)
from casemate.checkpoint.facts import Cache
from casemate.checkpoint.keys import MOST_LAYERS, Keys
from casemate.checkpoint.parts import Anatomy, Outside, Part, Share, Weight, matrix, vector

_BEFORE = ("input_layernorm", "pre_ff_layernorm")
_BACKBONE = "backbone.layers."


def mamba(keys: Keys) -> Anatomy:
    """Mamba layers alone."""
    net, count = mamba1_of(keys), layer_count(keys)
    layer = (*mamba1(net, "mixer."), vector("norm.weight", net.hidden))
    return _alone(
        (layer,) * count, _backbone(keys, net.hidden), caches=mamba1_states(net, range(count)), inner=net.inner
    )


def mamba_2(keys: Keys) -> Anatomy:
    """Mamba-2 layers alone."""
    net, count = mamba2_of(keys), layer_count(keys)
    layer = (*mamba2(net, "mixer."), vector("norm.weight", net.hidden))
    return _alone(
        (layer,) * count, _backbone(keys, net.hidden), caches=mamba2_states(net, range(count)), inner=net.inner
    )


def _alone(layers: tuple[Part, ...], around: Outside, *, caches: tuple[Cache, ...], inner: int) -> Anatomy:
    return Anatomy(layers, around, caches, attention_heads=0, kv_heads=0, intermediate_size=inner, prefix=_BACKBONE)


def _backbone(keys: Keys, hidden: int) -> Outside:
    norm = (vector("backbone.norm_f.weight", hidden),)
    embedding, head = outside.ends(keys, norm=norm, embedding="backbone.embeddings.weight")
    return Outside(embedding, head)


def jamba(keys: Keys) -> Anatomy:
    """Jamba (arXiv 2403.19887): Mamba with attention and experts in turns."""
    heads, experts, count = heads_of(keys), experts_of(keys), layer_count(keys)
    net = mamba1_of(keys, normed=True)
    full = _turns(keys, "attn_layer", count=count)
    sparse = _turns(keys, "expert_layer", count=count) if experts else frozenset()
    inner = keys.number("intermediate_size")
    mixers = {True: grouped(heads, Options()), False: mamba1(net, "mamba.")}
    how = Mixture("feed_forward.", router="router.weight")
    feeds: dict[bool, Part] = {False: dense(heads.hidden, inner, prefix="feed_forward.")}
    if experts:
        feeds[True] = mixture(heads.hidden, experts, how=how)
    norms = tuple(vector(f"{name}.weight", heads.hidden) for name in _BEFORE)
    layers = tuple((*mixers[n in full], *feeds[n in sparse], *norms) for n in range(count))
    rest = [n for n in range(count) if n not in full]
    caches = (*_attention_caches(heads, full), *mamba1_states(net, rest))
    last = (vector("model.final_layernorm.weight", heads.hidden),)
    return _with_heads(layers, outside.plain(keys, norm=last), caches=caches, heads=heads, feed=(inner, experts))


def _turns(keys: Keys, name: str, *, count: int) -> frozenset[int]:
    period = keys.number(f"{name}_period")
    offset = keys.number(f"{name}_offset", default=0, least=0) % period
    return frozenset(range(offset, count, period))


def granite(keys: Keys) -> Anatomy:
    """Granite 4: Mamba-2 with attention by `layer_types`, experts and a shared feed-forward in each layer."""
    heads, experts, count = heads_of(keys), experts_of(keys), layer_count(keys)
    net = mamba2_of(keys)
    full = _listed(keys, count)
    shared = keys.number("shared_intermediate_size", default=0, least=0)
    bias = keys.flag("attention_bias")
    mixers = {True: grouped(heads, Options(bias=bias, out_bias=bias)), False: mamba2(net, "mamba.")}
    how = Mixture("block_sparse_moe.", router="router.layer.weight", fused=("input_linear", "output_linear"))
    feed: list[Weight] = []
    if experts:
        feed += mixture(heads.hidden, replace(experts, shared=0), how=how)
    if shared:
        feed += [
            matrix("shared_mlp.input_linear", (2 * shared, heads.hidden)),
            matrix("shared_mlp.output_linear", (heads.hidden, shared)),
        ]
    norms = [vector(f"{name}.weight", heads.hidden) for name in TWO_NORMS]
    layers = tuple((*mixers[n in full], *feed, *norms) for n in range(count))
    caches = (*_attention_caches(heads, full), *mamba2_states(net, [n for n in range(count) if n not in full]))
    return _with_heads(layers, outside.plain(keys), caches=caches, heads=heads, feed=(shared, experts))


def bamba(keys: Keys) -> Anatomy:
    """Bamba: Mamba-2 with attention in the listed layers, and a feed-forward in each."""
    heads, count, net = heads_of(keys), layer_count(keys), mamba2_of(keys)
    full = frozenset(keys.numbers("attn_layer_indices", most=MOST_LAYERS)) & frozenset(range(count))
    inner = keys.number("intermediate_size")
    mixers = {True: grouped(heads, Options()), False: mamba2(net, "mamba.")}
    norms = [vector(f"{name}.weight", heads.hidden) for name in _BEFORE]
    feed = dense(heads.hidden, inner, prefix="feed_forward.")
    layers = tuple((*mixers[n in full], *feed, *norms) for n in range(count))
    caches = (*_attention_caches(heads, full), *mamba2_states(net, [n for n in range(count) if n not in full]))
    last = (vector("model.final_layernorm.weight", heads.hidden),)
    return _with_heads(layers, outside.plain(keys, norm=last), caches=caches, heads=heads, feed=(inner, None))


def falcon(keys: Keys) -> Anatomy:
    """Falcon-H1 (arXiv 2507.22448): attention and Mamba-2 side by side in each layer, then a feed-forward."""
    heads, count, net = heads_of(keys), layer_count(keys), mamba2_of(keys)
    inner = keys.number("intermediate_size")
    unnormed = not keys.flag("mamba_rms_norm")
    mixer = [weight for weight in mamba2(net, "mamba.") if not (unnormed and weight.name == "mamba.norm.weight")]
    norms = [vector(f"{name}.weight", heads.hidden) for name in _BEFORE]
    bias = keys.flag("attention_bias")
    layer = (
        *grouped(heads, Options(bias=bias, out_bias=bias)),
        *mixer,
        *dense(heads.hidden, inner, prefix="feed_forward.", bias=keys.flag("mlp_bias")),
        *norms,
    )
    caches = (*_attention_caches(heads, frozenset(range(count))), *mamba2_states(net, range(count)))
    last = (vector("model.final_layernorm.weight", heads.hidden),)
    return _with_heads((layer,) * count, outside.plain(keys, norm=last), caches=caches, heads=heads, feed=(inner, None))


def _listed(keys: Keys, count: int) -> frozenset[int]:
    kinds = layer_types(keys, count) or keys.texts("layers_block_type")
    if len(kinds) < count:
        keys.refuse(f"the config does not tell {keys.path}layer_types")
    return frozenset(n for n in range(count) if kinds[n] in FULL)


_NEMOTRON_LAYERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def nemotron(keys: Keys) -> Anatomy:
    """Nemotron-H: one mixer a layer, by a pattern of letters (`M` Mamba-2, `*` attention, `-` dense, `E` experts)."""
    heads, net, experts = heads_of(keys), mamba2_of(keys), experts_of(keys)
    kinds = _pattern(keys)
    mixers = _mixers(keys, heads, experts=experts, kinds=frozenset(kinds))
    norm = vector("norm.weight", heads.hidden)
    layers = tuple((*(mamba2(net, "mixer.") if kind == "mamba" else mixers[kind]), norm) for kind in kinds)
    dtype = keys.text("mamba_ssm_cache_dtype", default="float32")
    states = mamba2_states(net, [n for n, kind in enumerate(kinds) if kind == "mamba"], dtype=dtype)
    caches = (*_attention_caches(heads, frozenset(n for n, kind in enumerate(kinds) if kind == "attention")), *states)
    inner = keys.number("intermediate_size") if "mlp" in kinds else 0
    around = _backbone(keys, heads.hidden)
    return replace(_with_heads(layers, around, caches=caches, heads=heads, feed=(inner, experts)), prefix=_BACKBONE)


def _pattern(keys: Keys) -> list[str]:
    kinds = keys.texts("layers_block_type")
    pattern = keys.get("hybrid_override_pattern")
    if isinstance(pattern, str) and len(pattern) <= MOST_LAYERS:
        kinds = [_NEMOTRON_LAYERS.get(letter, letter) for letter in pattern]
    if not kinds or set(kinds) - set(_NEMOTRON_LAYERS.values()):
        keys.refuse(f"{keys.path}hybrid_override_pattern does not tell each layer's kind by M, *, - or E")
    return kinds


def _mixers(keys: Keys, heads: Heads, *, experts: Experts | None, kinds: frozenset[str]) -> Mapping[str, Part]:
    bias = keys.flag("attention_bias")
    options = Options(bias=bias, out_bias=bias, prefix="mixer.")
    mixers: dict[str, Part] = {"attention": grouped(heads, options)}
    if "mlp" in kinds:
        inner = keys.number("intermediate_size")
        mixers["mlp"] = dense(heads.hidden, inner, prefix="mixer.", names=UNGATED, bias=keys.flag("mlp_bias"))
    if "moe" in kinds and experts is None:
        keys.refuse(f"the config does not tell {keys.path}n_routed_experts")
    if "moe" in kinds and experts is not None:
        mixers["moe"] = _latent_mixture(keys, heads.hidden, experts=experts)
    return mixers


def _latent_mixture(keys: Keys, hidden: int, *, experts: Experts) -> Part:
    """Experts over the hidden state, or over a narrower latent (`moe_latent_size`)."""
    number = keys.number("n_shared_experts", default=0, least=0)
    shared = number * keys.number("moe_shared_expert_intermediate_size", default=experts.inner)
    latent = keys.number("moe_latent_size", default=hidden)
    how = Mixture("mixer.", correction="gate.e_score_correction_bias", names=UNGATED)
    routed = [w for w in mixture(latent, replace(experts, shared=0), how=how) if w.share is Share.EXPERT]
    rest = [w for w in mixture(hidden, replace(experts, shared=shared), how=how) if w.share is not Share.EXPERT]
    if latent != hidden:
        rest += [
            matrix("mixer.fc1_latent_proj", (latent, hidden), share=Share.REPLICATED),
            matrix("mixer.fc2_latent_proj", (hidden, latent), share=Share.REPLICATED),
        ]
    return (*rest, *routed)


def _attention_caches(heads: Heads, layers: frozenset[int]) -> tuple[Cache, ...]:
    return caches_by(dict.fromkeys(sorted(layers), (heads, None)))


def _with_heads(
    layers: tuple[Part, ...],
    around: Outside,
    *,
    caches: tuple[Cache, ...],
    heads: Heads,
    feed: tuple[int, Experts | None],
) -> Anatomy:
    inner, experts = feed
    return Anatomy(
        layers,
        around,
        caches,
        attention_heads=heads.query,
        kv_heads=heads.kv,
        intermediate_size=max(inner, experts.inner if experts else 0, 1),
        experts=experts.count if experts else 0,
        experts_per_token=experts.chosen if experts else 0,
    )
