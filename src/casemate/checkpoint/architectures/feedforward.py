"""Feed-forward layers as weights: dense ones, and mixtures of experts by how families name their parts."""

from __future__ import annotations

from dataclasses import dataclass

from casemate.checkpoint.keys import MOST_LAYERS, Keys
from casemate.checkpoint.parts import Part, Share, Weight, matrix, vector

_STEPS = ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval")


@dataclass(frozen=True, slots=True)
class Names:
    """How a family calls the parts of a feed-forward.

    Without `gate` there is no gate, or, where `joined`, `up` holds it too.
    """

    gate: str = "gate_proj"
    up: str = "up_proj"
    down: str = "down_proj"
    joined: bool = False

    def rows(self, inner: int) -> dict[str, int]:
        """The matrices that lead in, with their rows."""
        if self.joined:
            return {self.up: 2 * inner}
        return {name: inner for name in (self.gate, self.up) if name}


LLAMA = Names()
MIXTRAL = Names("w1", "w3", "w2")
UNGATED = Names("")
JOINED = Names("", "gate_up_proj", joined=True)


def dense(hidden: int, inner: int, *, prefix: str = "mlp.", names: Names = LLAMA, bias: bool = False) -> Part:
    """One feed-forward of `inner` activations."""
    rows = names.rows(inner)
    weights = [matrix(prefix + name, (out, hidden)) for name, out in rows.items()]
    weights.append(matrix(prefix + names.down, (hidden, inner)))
    if bias:
        weights += [vector(f"{prefix}{name}.bias", out, share=Share.SHARDED) for name, out in rows.items()]
        weights.append(vector(f"{prefix}{names.down}.bias", hidden))
    return tuple(weights)


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture: `count` experts of `inner` activations, `chosen` of them for a token, and `shared` for all tokens."""

    count: int
    chosen: int
    inner: int
    shared: int = 0


@dataclass(frozen=True, slots=True)
class Mixture:
    """How a family stores a mixture.

    `router` is the matrix that chooses, `correction` a float32 number for each expert beside it, `shared_gate` a row
    that weighs the shared expert. `fused` names the two tensors of families that store all experts of a layer as one.
    """

    prefix: str = "mlp."
    router: str = "gate.weight"
    router_bias: str = ""
    correction: str = ""
    shared: str = "shared_experts."
    shared_gate: str = ""
    names: Names = LLAMA
    router_dtype: str = ""
    fused: tuple[str, str] | None = None


FUSED = ("experts.gate_up_proj", "experts.down_proj")


def experts_of(keys: Keys) -> Experts | None:
    """Read the mixture by the keys that families of today use; None for a dense model."""
    count = keys.number("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts", default=0, least=0)
    if count <= 1:
        return None
    chosen = keys.number("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "moe_top_k", most=count)
    inner = keys.number("moe_intermediate_size", "expert_ffn_hidden_size", "intermediate_size")
    shared = keys.number("shared_expert_intermediate_size", "shared_intermediate_size", default=0, least=0)
    number = keys.number("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", default=0, least=0)
    return Experts(count, chosen, inner, shared=shared or number * inner)


def mixture(hidden: int, experts: Experts, *, how: Mixture) -> Part:
    """The weights of one layer's mixture."""
    at = how.prefix
    weights = [vector(at + how.router, experts.count, hidden, dtype=how.router_dtype)]
    if how.router_bias:
        weights.append(vector(at + how.router_bias, experts.count))
    if how.correction:
        weights.append(vector(at + how.correction, experts.count, dtype="float32"))
    weights += _routed(hidden, experts, how=how)
    if experts.shared:
        weights += dense(hidden, experts.shared, prefix=at + how.shared, names=how.names)
    if experts.shared and how.shared_gate:
        weights.append(vector(at + how.shared_gate, 1, hidden))
    return tuple(weights)


def _routed(hidden: int, experts: Experts, *, how: Mixture) -> list[Weight]:
    out = (hidden, experts.inner)
    shapes = {f"experts.{{}}.{name}": (rows, hidden) for name, rows in how.names.rows(experts.inner).items()}
    shapes[f"experts.{{}}.{how.names.down}"] = out
    if how.fused:
        shapes = {how.fused[0]: (2 * experts.inner, hidden), how.fused[1]: out}
    return [
        Weight(how.prefix + name, shape, Share.EXPERT, linear=True, copies=experts.count, fused=how.fused is not None)
        for name, shape in shapes.items()
    ]


def sparse_layers(keys: Keys, layers: int) -> frozenset[int]:
    """Which layers have the mixture, by whichever of the families' ways the config tells it; all where it does not."""
    kinds = keys.texts("mlp_layer_types")
    if kinds and len(kinds) < layers:
        keys.refuse(f"{keys.path}mlp_layer_types has {len(kinds)} entries for {layers} layers")
    if kinds:
        return frozenset(number for number in range(layers) if kinds[number] != "dense")
    first = keys.number("first_k_dense_replace", "moe_layer_start_index", "num_dense_layers", default=0, least=0)
    listed = keys.numbers("moe_layers", most=MOST_LAYERS)
    if listed:
        return frozenset(number for number in listed if number < layers)
    every = keys.number(*_STEPS, default=1)
    dense_ones = frozenset(keys.numbers("mlp_only_layers", most=MOST_LAYERS))
    # Steps count from 1 (Qwen, Llama 4); DeepSeek's frequency counts from 0 and is 1 in every released config.
    return frozenset(n for n in range(first, layers) if (n + 1) % every == 0 and n not in dense_ones)
