"""Kimi Linear (arXiv 2510.26692): delta attention with a gate for each channel, and latent attention in some layers.

Shapes follow vLLM 0.33.0 (`layers/mamba/gdn/kimi_gdn_linear_attn.py`, `kda_state_shape`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from casemate.checkpoint.architectures import outside
from casemate.checkpoint.architectures.attention import latent, latent_cache, latent_of
from casemate.checkpoint.architectures.decoder import TWO_NORMS, layer_count
from casemate.checkpoint.architectures.feedforward import MIXTRAL, Mixture, dense, experts_of, mixture, sparse_layers
from casemate.checkpoint.facts import Cache, Recurrent
from casemate.checkpoint.keys import MOST_LAYERS, Keys
from casemate.checkpoint.parts import Anatomy, Part, Share, Weight, matrix, named, vector

_AT = "block_sparse_moe."
_ROUTED = Mixture(_AT, names=MIXTRAL, correction="gate.e_score_correction_bias")
_OTHER_FORMS = ("routed_expert_hidden_size", "attn_res_block_size")
"""Keys of the models after this one, which are built otherwise."""


@dataclass(frozen=True, slots=True)
class _Net:
    """The sizes of a delta layer: `heads` of `size` numbers for query, key and value alike."""

    hidden: int
    heads: int
    size: int
    kernel: int

    @property
    def width(self) -> int:
        return self.heads * self.size


def build(keys: Keys) -> Anatomy:
    """A model of this family.

    Raises:
        UsageError: a key that its size needs is missing or makes no sense, or tells of a later form of the family.
    """
    told = keys.inner("linear_attn_config")
    later = [name for name in _OTHER_FORMS if keys.get(name) is not None]
    if told is None or later or keys.flag("mla_use_output_gate") or told.flag("use_full_rank_gate"):
        keys.refuse(f"the config does not tell {keys.path}linear_attn_config of the form that is known")
    count, heads, experts = layer_count(keys), latent_of(keys), experts_of(keys)
    net = _Net(
        heads.hidden,
        told.number("num_heads"),
        size=told.number("head_dim"),
        kernel=told.number("short_conv_kernel_size", default=4, most=64),
    )
    # The config counts layers from 1.
    full = frozenset(n - 1 for n in told.numbers("full_attn_layers", least=1, most=MOST_LAYERS) if n <= count)
    sparse = sparse_layers(keys, count) if experts else frozenset()
    norms = tuple(vector(f"{name}.weight", heads.hidden) for name in TWO_NORMS)
    mixers = {True: latent(heads), False: _delta(net)}
    inner = keys.number("intermediate_size")
    feeds: dict[bool, Part] = {False: dense(heads.hidden, inner)}
    if experts:
        routed = mixture(heads.hidden, replace(experts, shared=0), how=_ROUTED)
        shared = dense(heads.hidden, experts.shared, prefix=f"{_AT}shared_experts.") if experts.shared else ()
        feeds[True] = (*routed, *shared)
    return Anatomy(
        tuple((*mixers[n in full], *feeds[n in sparse], *norms) for n in range(count)),
        outside.plain(keys),
        (*_latents(keys, full), *_states(net, [n for n in range(count) if n not in full])),
        attention_heads=heads.query,
        kv_heads=1,
        intermediate_size=max(inner if len(sparse) < count else 0, experts.inner if experts else 0),
        experts=experts.count if experts else 0,
        experts_per_token=experts.chosen if experts else 0,
    )


def _delta(net: _Net) -> Part:
    wide, low = net.width, net.size
    weights: list[Weight] = [matrix(f"{name}_proj", (wide, net.hidden)) for name in "qkv"]
    weights += [vector(f"{name}_conv1d.weight", wide, 1, net.kernel, share=Share.SHARDED) for name in "qkv"]
    for gate in "fg":
        weights.append(matrix(f"{gate}_a_proj", (low, net.hidden), share=Share.REPLICATED))
        weights.append(matrix(f"{gate}_b_proj", (wide, low)))
    weights += [
        matrix("b_proj", (net.heads, net.hidden)),
        vector("A_log", net.heads, share=Share.SHARDED, dtype="float32"),
        vector("dt_bias", wide, share=Share.SHARDED, dtype="float32"),
        vector("o_norm.weight", net.size),
        matrix("o_proj", (net.hidden, wide)),
    ]
    return named("self_attn.", weights)


def _latents(keys: Keys, layers: frozenset[int]) -> tuple[Cache, ...]:
    return (latent_cache(latent_of(keys), sorted(layers)),) if layers else ()


def _states(net: _Net, layers: list[int]) -> tuple[Cache, ...]:
    if not layers:
        return ()
    state = Recurrent(
        tuple(layers),
        net.heads,
        state_numbers=net.width * net.size,
        convolution_numbers=3 * net.width * (net.kernel - 1),
        state_dtype="float32",
    )
    return (state,)
