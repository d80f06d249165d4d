"""Which family builds a model: by the config's `model_type`, and for one that is not known by what its keys tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from casemate.checkpoint.architectures import (
    deepseek,
    deepseek_v4,
    gated_delta,
    gemma4,
    gpt_oss,
    hybrid,
    kimi_linear,
    minimax,
)
from casemate.checkpoint.architectures.attention import FULL, SLIDING
from casemate.checkpoint.architectures.decoder import STYLES, Style, plain
from casemate.checkpoint.keys import Keys, shown
from casemate.checkpoint.parts import Anatomy

FAMILIES: Mapping[str, Callable[[Keys], Anatomy]] = MappingProxyType(
    {
        **{name: partial(plain, style=style) for name, style in STYLES.items()},
        **{name: partial(deepseek.build, variant=variant) for name, variant in deepseek.VARIANTS.items()},
        "deepseek_v4": deepseek_v4.build,
        "gpt_oss": gpt_oss.build,
        "qwen3_next": partial(gated_delta.build, variant=gated_delta.Variant()),
        "qwen3_5": partial(gated_delta.build, variant=gated_delta.Variant(split=True)),
        "qwen3_5_text": partial(gated_delta.build, variant=gated_delta.Variant(split=True)),
        "qwen3_5_moe": partial(gated_delta.build, variant=gated_delta.Variant(split=True, fused=True)),
        "qwen3_5_moe_text": partial(gated_delta.build, variant=gated_delta.Variant(split=True, fused=True)),
        "mamba": hybrid.mamba,
        "falcon_mamba": hybrid.mamba,
        "mamba2": hybrid.mamba_2,
        "jamba": hybrid.jamba,
        "bamba": hybrid.bamba,
        "falcon_h1": hybrid.falcon,
        "gemma4_text": gemma4.build,
        "kimi_linear": kimi_linear.build,
        "minimax": minimax.build,
        "minimax_text_01": minimax.build,
        "minimax_m1": minimax.build,
        "granitemoehybrid": hybrid.granite,
        "nemotron_h": hybrid.nemotron,
    }
)

_TIED = {"tie_word_embeddings": True}
_DEFAULTS: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        **{name: style.defaults for name, style in STYLES.items()},
        **{name: gated_delta.DEFAULTS for name in FAMILIES if name.startswith(("qwen3_next", "qwen3_5"))},
        "deepseek_v4": deepseek_v4.DEFAULTS,
        "gpt_oss": gpt_oss.DEFAULTS,
        "gemma4_text": gemma4.DEFAULTS,
        "mamba": _TIED,
        "granitemoehybrid": _TIED,
    }
)
"""What a family's class assumes for keys that its configs leave out (transformers 5)."""

SPARING = frozenset({"gemma3_text", "mamba", "falcon_mamba", "mamba2"})
"""Families whose configs rightly leave out keys that most models need."""

_STRANGE = (
    "mamba_", "ssm_", "linear_", "state_size", "time_mix", "rwkv", "hc_mult", "compress_", "conv_L_cache", "kda_",
    "block_types", "attn_type_list", "hybrid_", "recurrent", "num_zero_experts", "altup_", "laurel_",
    "hidden_size_per_layer", "num_kv_shared_layers", "global_head_dim", "swa_", "attention_other_setting",
    "moe_latent_size",
)  # fmt: skip
"""Keys that begin so tell of layers which are no plain attention."""
_REMEDY = "what its layers keep of a sequence cannot be computed; plan it by the engine's own figures"


_WINDOWS = {"gemma": 8192, "gemma2": 8192, "gemma3_text": 131_072}
_NOTED: Mapping[str, Mapping[str, object]] = MappingProxyType(
    {
        "deepseek_v3": deepseek.DEFAULTS_V3,
        **{name: {"max_position_embeddings": window} for name, window in _WINDOWS.items()},
    }
)
"""Such values that say so much of a model that a plan which rests on one must tell it."""


def with_defaults(keys: Keys, model_type: str) -> tuple[Keys, tuple[str, ...]]:
    """The keys of a config with what its family assumes behind them, and a note of those that weigh much.

    A key that the config itself sets to null (a `q_lora_rank` of none) is told, not left out.
    """
    told = set(keys.names())
    noted = {name: value for name, value in _NOTED.get(model_type, {}).items() if name not in told}
    listed = ", ".join(f"{name} {value}" for name, value in noted.items())
    note = (f"left out by the config, taken as the type {model_type} has them: {listed}",) if noted else ()
    return keys.behind({**_DEFAULTS.get(model_type, {}), **noted}), note


def build(keys: Keys, model_type: str) -> Anatomy:
    """The anatomy of a model.

    Args:
        keys: its config with the family's defaults, that of the text model where the model has several.
        model_type: the config's word.

    Raises:
        UsageError: the keys do not suffice, or tell of layers whose size we cannot compute.
    """
    family = FAMILIES.get(model_type)
    if family is not None:
        return family(keys)
    strange = sorted(name for name in keys.names() if name.startswith(_STRANGE))
    kinds = sorted(set(keys.texts("layer_types")) - SLIDING - FULL)
    if strange or kinds:
        told = shown(", ".join([*strange[:3], *kinds[:3]]))
        keys.refuse(
            f"the model type {shown(model_type or 'that it does not name')} is not known, and has {told}",
            remedy=_REMEDY,
        )
    if keys.has("kv_lora_rank"):
        return _guessed(deepseek.build(keys, deepseek.Variant()), model_type, what="a decoder with latent attention")
    return _guessed(plain(keys, Style(guesses=True)), model_type, what="a plain decoder")


def _guessed(anatomy: Anatomy, model_type: str, *, what: str) -> Anatomy:
    named = f"the model type {shown(model_type)} is not known" if model_type else "the config names no model type"
    note = f"{named}: computed as {what}; read the headers to be sure"
    return replace(anatomy, notes=(*anatomy.notes, note))
