"""DeepSeek V2, V3, R1, V3.2 and the models built alike (Kimi K2, GLM 5): latent attention, experts, guessed tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from casemate.checkpoint.architectures import outside
from casemate.checkpoint.architectures.attention import LatentHeads, latent, latent_cache, latent_of
from casemate.checkpoint.architectures.decoder import TWO_NORMS, layer_count
from casemate.checkpoint.architectures.feedforward import Mixture, dense, experts_of, mixture, sparse_layers
from casemate.checkpoint.facts import Cache
from casemate.checkpoint.keys import Keys
from casemate.checkpoint.parts import Anatomy, Part, vector


@dataclass(frozen=True, slots=True)
class Variant:
    """`own_ends`: the layer of multi-token prediction repeats embedding and head."""

    own_ends: bool = True


DEFAULTS_V3: Mapping[str, object] = MappingProxyType(
    {
        "intermediate_size": 18432,
        "vocab_size": 129280,
        "num_attention_heads": 128,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "max_position_embeddings": 4096,
    }
)
"""What transformers' DeepseekV3Config assumes. Other models of this type have other sizes, so that each is told."""

VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {
        "deepseek_v2": Variant(),
        "deepseek_v3": Variant(),
        "deepseek_v32": Variant(),
        "kimi_k2": Variant(),
        "glm_moe_dsa": Variant(own_ends=False),
        "glm4_moe_lite": Variant(),
    }
)


def build(keys: Keys, variant: Variant) -> Anatomy:
    """A decoder with multi-head latent attention.

    Raises:
        UsageError: a key that its size needs is missing or makes no sense.
    """
    heads, experts, count = latent_of(keys), experts_of(keys), layer_count(keys)
    hidden = heads.hidden
    sparse = sparse_layers(keys, count) if experts else frozenset()
    indexed = _indexed(keys, count)
    norms = tuple(vector(f"{name}.weight", hidden) for name in TWO_NORMS)
    mixers = {True: (*latent(heads), *norms), False: (*latent(replace(heads, index_size=0)), *norms)}
    inner = keys.number("intermediate_size")
    corrected = keys.text("topk_method") == "noaux_tc" or keys.text("scoring_func") == "sigmoid"
    how = Mixture(correction="gate.e_score_correction_bias" if corrected else "")
    feeds: dict[bool, Part] = {False: dense(hidden, inner)}
    if experts:
        feeds[True] = mixture(hidden, experts, how=how)
    kinds = {(n in indexed, n in sparse) for n in range(count)}
    layers = {(mixed, fed): (*mixers[mixed], *feeds[fed]) for mixed, fed in kinds}
    guesses = keys.number("num_nextn_predict_layers", default=0, least=0, most=16)
    guessing = outside.guessing(keys, layer=(*mixers[True], *feeds[experts is not None]), own_ends=variant.own_ends)
    return Anatomy(
        tuple(layers[n in indexed, n in sparse] for n in range(count)),
        outside.with_guesses(
            keys, [guessing] * guesses, caches=(latent_cache(heads, range(guesses)),) if guesses else (), first=count
        ),
        _caches(heads, count, indexed=indexed),
        attention_heads=heads.query,
        kv_heads=1,
        intermediate_size=max(inner if len(sparse) < count else 0, experts.inner if experts else 0),
        experts=experts.count if experts else 0,
        experts_per_token=experts.chosen if experts else 0,
    )


def _indexed(keys: Keys, count: int) -> frozenset[int]:
    """The layers with an indexer of their own; the others use the choice of the one before (GLM 5.2)."""
    kinds = keys.texts("indexer_types")
    if kinds and len(kinds) < count:
        keys.refuse(f"{keys.path}indexer_types has {len(kinds)} entries for {count} layers")
    return frozenset(n for n in range(count) if not kinds or kinds[n] != "shared")


def _caches(heads: LatentHeads, count: int, *, indexed: frozenset[int]) -> tuple[Cache, ...]:
    own, shared = sorted(indexed), [n for n in range(count) if n not in indexed]
    found = [latent_cache(heads, own)] if own else []
    return (*found, latent_cache(replace(heads, index_size=0), shared)) if shared else tuple(found)
