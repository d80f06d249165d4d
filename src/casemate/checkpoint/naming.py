"""What a tensor's name tells: the part of the model that it belongs to, and how tensor-parallel ranks share it.

The names are those that the loaders of vLLM 0.33.0 know (`model_executor/models`, `models`), as checkpoints write them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from casemate.checkpoint.parts import Share

_COLUMNS = frozenset({
    "q_proj", "k_proj", "v_proj", "qkv_proj", "c_attn", "query_key_value", "wq", "wk", "wv", "wqkv", "Wqkv", "q_b_proj",
    "kv_b_proj", "wq_b", "wo_a", "gate_proj", "up_proj", "gate_up_proj", "w1", "w3", "w13", "fc", "fc1", "c_fc",
    "input_linear", "dense_h_to_4h", "in_proj", "in_proj_qkvz", "in_proj_ba", "in_proj_qkv", "in_proj_z", "in_proj_b",
    "in_proj_a", "dt_proj", "conv1d", "q_conv1d", "k_conv1d", "v_conv1d", "f_b_proj", "g_b_proj", "b_proj",
    "per_layer_model_projection",
})  # fmt: skip
"""Modules whose rows ranks share, biases with them."""
_ROWS = frozenset({
    "o_proj", "out_proj", "wo", "wo_b", "down_proj", "w2", "fc2", "c_proj", "dense", "dense_4h_to_h", "output_linear",
    "x_proj",
})  # fmt: skip
"""Modules whose columns ranks share; each rank has the bias."""
_BY_HEAD = frozenset({"A_log", "D", "dt_bias", "sinks", "attn_sink"})
_EVERYWHERE = frozenset({
    "q_a_proj", "kv_a_proj_with_mqa", "fused_qkv_a_proj", "kv_a_proj", "gate", "router", "shared_expert_gate",
    "weights_proj", "wq_a", "wkv", "wgate", "ape", "tid2eid", "bias", "e_score_correction_bias", "eh_proj", "e_proj",
    "h_proj", "main_proj", "hc_attn_fn", "hc_attn_base", "hc_attn_scale", "hc_ffn_fn", "hc_ffn_base", "hc_ffn_scale",
    "hc_head_fn", "hc_head_base", "hc_head_scale", "f_a_proj", "g_a_proj", "fc1_latent_proj", "fc2_latent_proj",
    "rotary_emb", "layer_scalar", "k_scale", "v_scale", "q_scale", "kv_scale",
    "per_layer_input_gate", "per_layer_projection", "per_expert_scale",
})  # fmt: skip
_WHOLE = re.compile(r"(?:norm|layernorm|ln(?:_\w+)?)\d?$|norm|router\.(?:layer|proj)$|markov_head\.|confidence_head\.")
"""Norms and small heads, by the end of the module's name."""
_BESIDE = re.compile(r"(?:^|\.)(?:indexer|compressor)\.")
_MIXER_NORM = re.compile(r"(?:^|\.)(?:mixer|mamba)\.norm$")
"""The norm of a Mamba-2 mixer runs over the inner width, which ranks share."""
_EXPERTS = re.compile(r"(?:^|\.)(?:experts|moe_experts)(?:\.|$)|block_sparse_moe\.(?:input|output)_linear(?:\.|$)")
_LEAVES = frozenset({
    "weight", "bias", "scale", "scales", "qweight", "qzeros", "g_idx", "weight_scale", "weight_scale_inv",
    "weight_scale_2", "weight_packed", "weight_shape", "weight_zero_point", "weight_g_idx", "weight_global_scale",
    "input_global_scale", "input_scale", "output_scale", "SCB", "weight_format", "blocks", "zeros",
})  # fmt: skip
"""What stands behind a module's name: the matrix itself, and what a quantisation method keeps beside it."""
MATRICES = frozenset({"weight", "bias", "qweight", "weight_packed", "blocks"})
"""Leaves that hold numbers of the model; the others only tell how to read these."""
_SIDE = re.compile(r"^(.*)\.weight\.(?:absmax|quant_map|nested_absmax|nested_quant_map|quant_state\.\w+)$")
"""What bitsandbytes keeps beside a matrix."""
_GROUPED = re.compile(r"^(.*)_(blocks|scales|bias)$")
"""gpt-oss writes the leaf of its fused experts behind an underscore."""

_DIGITS = re.compile(r"(?<=\.)\d+(?=\.)")
_LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks|layer)\.(\d{1,9})\.")
_TOWER = re.compile(
    r"^(?:model\.|thinker\.|base_model\.)*(?:vision|visual|vit|audio|image|video|speech|mm_|multi_modal|multimodal|"
    r"siglip|aligner|connector|resampler|mlp1\.|embed_vision|embed_audio|encoder\.)"
)
_DRAFT = re.compile(r"^(?:model\.)?(?:mtp|nextn|eagle|draft|mtp_block|mtp_layers)(?:\.(?:layers\.)?(\d{1,9}))?(?:\.|$)")
_EMBEDDING = re.compile(
    r"(?:^|\.)(?:embed_tokens(?:_per_layer)?|embeddings?|wte|tok_embeddings|word_embeddings|embed_in|embed)\.\w+$"
)
_HEAD = re.compile(r"^(?:model\.|language_model\.)*(?:lm_head|head|output|embed_out)(?:\.|$)|shared_head\.head(?:\.|$)")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tensor belongs: its part, the layer or stage in it (-1 outside), and how ranks share it.

    `part` is `layer`, `draft`, `embedding`, `head` (with all that is outside and nothing else), or `vision`. `leaf` is
    what the tensor is to its module (`weight`, `scale`, …), `matrix` whether it is an output head's own matrix, and
    `known` whether its name was understood.
    """

    part: str
    number: int
    share: Share
    leaf: str
    known: bool = True
    matrix: bool = False


def place_of(name: str, *, layers: int) -> Place:
    """Where a tensor of a model with so many layers belongs; what lies beyond them is a draft's."""
    part, share, leaf, known = _kind(_DIGITS.sub("0", name))
    if part == "draft":
        stage = _DRAFT.match(name)
        return Place(part, int(stage[1] or 0) if stage else 0, share, leaf, known)
    if part == "layer":
        layer = _LAYER.search(name)
        number = int(layer[1]) if layer else 0
        beyond = number >= layers
        return Place("draft" if beyond else part, number - layers * beyond, share, leaf, known)
    return Place(part, -1, share, leaf, known, matrix=part == "head" and bool(_HEAD.search(name)))


@lru_cache(maxsize=1 << 14)
def _kind(name: str) -> tuple[str, Share, str, bool]:
    """Part, share, leaf, and whether the name is known, of a name whose numbers were made equal."""
    module, leaf = _split(name)
    if _TOWER.match(name):
        return "vision", Share.REPLICATED, leaf, True
    share, known = _share(module, leaf, name=name)
    if _DRAFT.match(name):
        return "draft", share, leaf, known
    if _LAYER.search(name):
        return "layer", share, leaf, known
    return ("embedding" if _EMBEDDING.search(name) else "head"), share, leaf, known


def _split(name: str) -> tuple[str, str]:
    """The module's dotted name and the leaf behind it."""
    module, _, last = name.rpartition(".")
    side = _SIDE.match(name)
    if side:
        return side[1], "absmax"
    if last in _LEAVES:
        return module, last
    grouped = _GROUPED.match(last)
    if grouped and "experts" in module:
        return f"{module}.{grouped[1]}", grouped[2]
    return name, "weight"


def _share(module: str, leaf: str, *, name: str) -> tuple[Share, bool]:
    last = module.rpartition(".")[2]
    if _EXPERTS.search(module):
        return Share.EXPERT, True
    if _BESIDE.search(module):
        return Share.REPLICATED, True
    if last in _ROWS:
        return Share.REPLICATED if leaf == "bias" else Share.SHARDED, True
    if last in _COLUMNS or last in _BY_HEAD or _MIXER_NORM.search(module):
        return Share.SHARDED, True
    if _EMBEDDING.search(name) or _HEAD.search(module):
        return Share.SHARDED, True
    return Share.REPLICATED, last in _EVERYWHERE or bool(_WHOLE.search(module))
