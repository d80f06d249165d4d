"""The image or sound part of a model that also reads text: its size is estimated from its own config."""

from __future__ import annotations

from casemate.checkpoint.keys import Keys
from casemate.checkpoint.parts import Part, vector

_CONFIGS = ("vision_config", "vit_config", "audio_config")
_CHANNELS = 3


def towers(keys: Keys, hidden: int) -> tuple[Part, tuple[str, ...]]:
    """The weights of all towers beside the text model, every rank having all of them, and notes on what was guessed.

    `hidden` is the text model's width, which the towers project to.
    """
    found: list[Part] = []
    notes: list[str] = []
    for name in _CONFIGS:
        inner = keys.inner(name)
        if inner is None:
            continue
        tower = _tower(inner, hidden)
        found.append(tower)
        notes.append(
            f"the weights of {name} are estimated from its widths; read the headers to be sure"
            if tower
            else f"{name} does not tell its widths; its weights are left out"
        )
    return tuple(weight for part in found for weight in part), tuple(notes)


def _tower(keys: Keys, hidden: int) -> Part:
    """A plain transformer encoder (arXiv 2010.11929) with a projector of two layers."""
    width_keys = [name for name in ("embed_dim", "hidden_size", "d_model", "width") if keys.has(name)]
    depth_keys = [name for name in ("depth", "num_hidden_layers", "encoder_layers", "layers") if keys.has(name)]
    if not width_keys or not depth_keys:
        return ()
    width, depth = keys.number(*width_keys), keys.number(*depth_keys, most=1 << 10)
    ratio = keys.get("mlp_ratio")
    stated = int(width * ratio) if isinstance(ratio, int | float) and 0 < ratio <= 64 else 4 * width
    inner = keys.number("intermediate_size", "encoder_ffn_dim", default=stated)
    gated = 3 if keys.get("hidden_act") == "silu" else 2
    patch = keys.number("patch_size", default=0, least=0, most=1 << 10)
    merged = width * keys.number("spatial_merge_size", default=1, most=64) ** 2
    # Qwen3-VL merges the states of some blocks in the middle as well.
    mergers = 1 + len(keys.numbers("deepstack_visual_indexes", most=1 << 10))
    return (
        *(vector(f"visual.blocks.{n}", 4 * width * width + gated * width * inner + 6 * width) for n in range(depth)),
        vector("visual.patch_embed", width, _CHANNELS * patch * patch),
        vector("visual.merger", mergers * (merged * merged + merged * hidden)),
    )
