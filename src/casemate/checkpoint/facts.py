"""Facts of a model, as values. `reading` makes them of any path: by `gguf`, by `config`, by `weights` (the headers).

Nothing here depends on an engine or a machine; what a rank of some parallel layout holds of it is `plan.memory`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Gguf:
    """What a GGUF model file says of itself.

    `path` is the file, `name` its own title, `weights_bytes` what it occupies on disk, `context_length` the window that
    it was trained for in tokens, `kv_bytes_per_token` the cache that one token of one sequence needs with 16-bit keys
    and values.
    """

    path: str
    name: str
    architecture: str
    weights_bytes: int
    layers: int
    context_length: int
    kv_bytes_per_token: int


@dataclass(frozen=True, slots=True)
class Grouped:
    """Layers that cache keys and values per head (MHA, GQA, MQA), all tokens or the last `window`.

    Sizes are numbers per head and token. Tensor parallelism splits the heads, and copies them past one a rank.
    """

    layers: tuple[int, ...]
    kv_heads: int
    key_size: int
    value_size: int
    window: int | None = None


@dataclass(frozen=True, slots=True)
class Latent:
    """Layers of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434): one latent a token, on every rank.

    `index_size` is the width of a sparse indexer's key (DeepSeek-V3.2), 0 where there is none.
    """

    layers: tuple[int, ...]
    latent_size: int
    rope_size: int
    index_size: int = 0


@dataclass(frozen=True, slots=True)
class Compressed:
    """Layers of DeepSeek-V4: a raw window, and beyond it one entry for each `ratio` tokens (0: the window alone).

    `index_size` is the width of the indexer's key (layers of ratio 4), 0 where there is none. The same on every rank.
    """

    layers: tuple[int, ...]
    ratio: int
    window: int
    head_size: int
    rope_size: int
    index_size: int = 0


@dataclass(frozen=True, slots=True)
class Recurrent:
    """Layers whose state does not grow with the context (linear attention, state space): numbers per sequence.

    `heads` is what tensor parallelism splits; `state_numbers` and `convolution_numbers` count all heads of one layer.
    `state_dtype` is the type of the state's numbers where it is not the model's (the convolution's always is); the
    convolution grows by one column for each token of a draft. `groups` must be cut into equal shares beside the heads
    (groups of a state space, key heads of a delta net); 0 where nothing is, as with one group, which ranks copy.
    """

    layers: tuple[int, ...]
    heads: int
    state_numbers: int
    convolution_numbers: int
    state_dtype: str = ""
    groups: int = 0


Cache = Grouped | Latent | Compressed | Recurrent
"""What layers keep of the tokens that they saw."""


@dataclass(frozen=True, slots=True)
class Block:
    """The weights of one layer, or of a part outside the layers, by how tensor-parallel ranks share them.

    Bytes as stored; `parameters` and `expert_parameters` are counts of numbers (experts: all of them, not the active).
    """

    sharded_bytes: int = 0
    replicated_bytes: int = 0
    expert_bytes: int = 0
    parameters: int = 0
    expert_parameters: int = 0

    @property
    def total_bytes(self) -> int:
        """Everything in it."""
        return self.sharded_bytes + self.replicated_bytes + self.expert_bytes


@dataclass(frozen=True, slots=True)
class Cut:
    """A side of a packed matrix that tensor-parallel ranks cut: `numbers` long, with one scale for each `block`.

    `name` is the matrix within its layer. `routed` marks routed experts, which may be dealt out whole instead.
    """

    name: str
    numbers: int
    block: int
    routed: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """A module that guesses tokens for speculative decoding, shipped inside the checkpoint.

    `method` is the engine's word for it (`mtp`, `dspark`), `tokens` how many it proposes at once.
    """

    method: str
    tokens: int
    blocks: tuple[Block, ...]
    caches: tuple[Cache, ...] = ()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a model folder, or its config.json alone, says of the model. Its name decides nothing.

    `architecture` is the engine's class name, `model_type` the config's. `weights_from` tells whether the bytes were
    read from safetensors headers, computed from the config, or spread by the config from an index's total (a folder
    without its weights); `tensors` counts them, 0 where that is not known. `layers` has one block a layer, in order;
    `embedding` and `head` stand outside (the last norm is the head's; a tied head has no matrix). `context_length` is 0
    where the config tells none. `quantization` is the config's method (`fp8`, `gptq`, …; empty for
    none), `expert_dtype` the config's word for routed experts where it differs. `rope_scaled_from` is the window before
    scaling, 0 where there is no scaling. `fp4` tells that some weights are FP4, whatever the method is called; `cuts`
    where ranks must cut in whole blocks. `notes` tells what was guessed.
    """

    path: str
    name: str
    architecture: str
    model_type: str
    weights_from: Literal["headers", "config", "index"]
    layers: tuple[Block, ...]
    embedding: Block
    head: Block
    caches: tuple[Cache, ...]
    hidden_size: int
    vocabulary: int
    attention_heads: int
    kv_heads: int
    context_length: int
    intermediate_size: int
    """Widest feed-forward activation of one token in one expert or dense layer."""
    experts: int = 0
    experts_per_token: int = 0
    dtype: str = "bfloat16"
    quantization: str = ""
    expert_dtype: str = ""
    draft: Draft | None = None
    rope_scaled_from: int = 0
    vision: Block = Block()
    tensors: int = 0
    fp4: bool = False
    cuts: tuple[Cut, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def weights_bytes(self) -> int:
        """All weights as stored, the draft's included."""
        drafted = sum(block.total_bytes for block in self.draft.blocks) if self.draft else 0
        parts = (*self.layers, self.embedding, self.head, self.vision)
        return sum(block.total_bytes for block in parts) + drafted
