"""State space layers (Mamba, arXiv 2312.00752; Mamba-2, 2405.21060) as weights and states.

Shapes follow vLLM 0.33.0 (`layers/mamba/mamba_mixer.py`, `mamba_mixer2.py`, `mamba_utils.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from casemate.checkpoint.facts import Cache, Recurrent
from casemate.checkpoint.keys import Keys
from casemate.checkpoint.parts import Part, Share, Weight, matrix, named, vector


@dataclass(frozen=True, slots=True)
class Mamba2:
    """The sizes of a Mamba-2 layer; `heads` of `head` numbers are its inner width."""

    hidden: int
    heads: int
    head: int
    groups: int
    state: int
    kernel: int
    bias: bool
    convolution_bias: bool

    @property
    def inner(self) -> int:
        """Numbers of all heads."""
        return self.heads * self.head

    @property
    def convolved(self) -> int:
        """Channels that the convolution runs over."""
        return self.inner + 2 * self.groups * self.state


def mamba2_of(keys: Keys) -> Mamba2:
    """Read a Mamba-2 layer by the keys that the families use."""
    return Mamba2(
        hidden=keys.number("hidden_size"),
        heads=keys.number("mamba_num_heads", "mamba_n_heads", "num_heads"),
        head=keys.number("mamba_head_dim", "mamba_d_head", "head_dim"),
        groups=keys.number("n_groups", "mamba_n_groups", default=1),
        state=keys.number("ssm_state_size", "mamba_d_state", "state_size"),
        kernel=keys.number("conv_kernel", "mamba_d_conv", default=4, most=64),
        bias=keys.flag("mamba_proj_bias", default=keys.flag("use_bias")),
        convolution_bias=keys.flag("mamba_conv_bias", default=keys.flag("use_conv_bias", default=True)),
    )


def mamba2(net: Mamba2, prefix: str) -> Part:
    """The weights of one layer."""
    into = net.inner + net.convolved + net.heads
    weights = [
        matrix("in_proj", (into, net.hidden)),
        vector("conv1d.weight", net.convolved, 1, net.kernel, share=Share.SHARDED),
        *(vector(name, net.heads, share=Share.SHARDED) for name in ("A_log", "D", "dt_bias")),
        vector("norm.weight", net.inner, share=Share.SHARDED),
        matrix("out_proj", (net.hidden, net.inner)),
        *_biases({"in_proj": into, "out_proj": net.hidden} if net.bias else {}),
        *_biases({"conv1d": net.convolved} if net.convolution_bias else {}),
    ]
    return named(prefix, weights)


def mamba2_states(net: Mamba2, layers: Sequence[int], *, dtype: str = "") -> tuple[Cache, ...]:
    """What these layers keep for a sequence."""
    if not layers:
        return ()
    state = Recurrent(
        tuple(layers),
        net.heads,
        state_numbers=net.inner * net.state,
        convolution_numbers=net.convolved * (net.kernel - 1),
        state_dtype=dtype,
        # One group is copied to every rank; several must divide (`mamba_mixer2.py`).
        groups=net.groups if net.groups > 1 else 0,
    )
    return (state,)


@dataclass(frozen=True, slots=True)
class Mamba1:
    """The sizes of a Mamba layer; `normed` gives time step and states a norm each (Jamba)."""

    hidden: int
    inner: int
    state: int
    kernel: int
    rank: int
    bias: bool
    convolution_bias: bool
    normed: bool = False


def mamba1_of(keys: Keys, *, normed: bool = False) -> Mamba1:
    """Read a Mamba layer by the keys that the families use."""
    hidden = keys.number("hidden_size", "d_model")
    expand = keys.number("mamba_expand", "expand", default=2, most=64)
    stated = keys.get("mamba_dt_rank" if keys.has("mamba_dt_rank") else "time_step_rank")
    rank = ceil(hidden / 16) if stated in (None, "auto") else keys.number("mamba_dt_rank", "time_step_rank")
    return Mamba1(
        hidden=hidden,
        inner=expand * hidden if normed else keys.number("intermediate_size", "d_inner", default=expand * hidden),
        state=keys.number("mamba_d_state", "state_size", default=16),
        kernel=keys.number("mamba_d_conv", "conv_kernel", default=4, most=64),
        rank=rank,
        bias=keys.flag("mamba_proj_bias", default=keys.flag("use_bias")),
        convolution_bias=keys.flag("mamba_conv_bias", default=keys.flag("use_conv_bias", default=True)),
        normed=normed,
    )


def mamba1(net: Mamba1, prefix: str) -> Part:
    """The weights of one layer."""
    norms = {"dt_layernorm": net.rank, "b_layernorm": net.state, "c_layernorm": net.state} if net.normed else {}
    weights = [
        matrix("in_proj", (2 * net.inner, net.hidden)),
        vector("conv1d.weight", net.inner, 1, net.kernel, share=Share.SHARDED),
        matrix("x_proj", (net.rank + 2 * net.state, net.inner)),
        matrix("dt_proj", (net.inner, net.rank)),
        vector("dt_proj.bias", net.inner, share=Share.SHARDED),
        vector("A_log", net.inner, net.state, share=Share.SHARDED),
        vector("D", net.inner, share=Share.SHARDED),
        matrix("out_proj", (net.hidden, net.inner)),
        *(vector(f"{name}.weight", size) for name, size in norms.items()),
        *_biases({"in_proj": 2 * net.inner, "out_proj": net.hidden} if net.bias else {}),
        *_biases({"conv1d": net.inner} if net.convolution_bias else {}),
    ]
    return named(prefix, weights)


def mamba1_states(net: Mamba1, layers: Sequence[int]) -> tuple[Cache, ...]:
    """What these layers keep for a sequence; each channel is a head of its own."""
    if not layers:
        return ()
    states, columns = net.inner * net.state, net.inner * (net.kernel - 1)
    return (Recurrent(tuple(layers), net.inner, state_numbers=states, convolution_numbers=columns),)


def _biases(rows: dict[str, int]) -> list[Weight]:
    """Of output projections every rank has all, of the others its slice."""
    return [
        vector(f"{name}.bias", out, share=Share.REPLICATED if name == "out_proj" else Share.SHARDED)
        for name, out in rows.items()
    ]
