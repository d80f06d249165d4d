"""How many bytes a weight takes as stored, by what the config says of dtype and quantisation.

Every method of today keeps a packed matrix, scales for blocks of it, and little else; so each is one `Packing`. Layouts
are those that vLLM 0.33.0 loads (`model_executor/layers/quantization`): what it cannot load is refused, not guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from casemate.checkpoint.keys import Keys, shown
from casemate.checkpoint.matching import Names
from casemate.checkpoint.parts import Share, Weight

BYTES = {
    "float64": 8, "float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2, "float8_e4m3fn": 1,
    "float8_e5m2": 1, "int8": 1, "uint8": 1, "int32": 4, "int64": 8,
}  # fmt: skip
"""Bytes of one number, by the config's word for its type."""


@dataclass(frozen=True, slots=True)
class Packing:
    """A packed matrix: `bits` a number, and a scale of `scale_bits` for each block of `rows` times `columns` (0: all).

    `zero_bits` stand beside each scale (zero points), `column_bytes` beside each column (the order of activations);
    `rest_bytes` in `rest_tensors` are what else a matrix has, whatever its size. `scale_tensors` is 0 where there are
    none.
    """

    bits: int
    scale_bits: float = 0
    rows: int = 1
    columns: int = 0
    zero_bits: int = 0
    column_bytes: int = 0
    rest_bytes: int = 0
    rest_tensors: int = 0

    def stored_bytes(self, out: int, into: int) -> int:
        """Bytes of one matrix with all that belongs to it."""
        scales = ceil(out / (self.rows or out)) * ceil(into / (self.columns or into))
        beside = ceil(scales * self.scale_bits / 8) + ceil(scales * self.zero_bits / 8)
        return ceil(out * into * self.bits / 8) + beside + into * self.column_bytes + self.rest_bytes

    @property
    def tensors(self) -> int:
        """In how many tensors it is stored."""
        return 1 + sum(bool(part) for part in (self.scale_bits, self.zero_bits, self.column_bytes)) + self.rest_tensors


MXFP4 = Packing(bits=4, scale_bits=8, columns=32)
"""Microscaling FP4 (OCP MX 1.0): an 8-bit exponent for 32 numbers."""
NVFP4 = Packing(bits=4, scale_bits=8, columns=16, rest_bytes=8, rest_tensors=2)
"""NVFP4: an FP8 scale for 16 numbers, and two float32 scales for the whole."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Weights that a packing is for: those of experts alone, of some names, or all."""

    packing: Packing
    experts_only: bool = False
    names: Names | None = None

    def fits(self, weight: Weight, module: str) -> bool:
        """Whether it is for this weight, which the checkpoint calls `module`."""
        if self.experts_only and weight.share is not Share.EXPERT:
            return False
        return self.names is None or self.names.has(module)


@dataclass(frozen=True, slots=True)
class Storage:
    """How a checkpoint stores its weights: `dtype`, and packed where a rule fits (the first that does).

    `method` is the config's word for the quantisation, empty for none; `heads` tells whether the output head is packed
    too unless it is ignored.
    """

    dtype: str
    method: str = ""
    rules: tuple[Rule, ...] = ()
    ignored: Names = field(default_factory=Names)
    heads: bool = False
    notes: tuple[str, ...] = ()

    def stored(self, weight: Weight, module: str, *, head: bool = False) -> tuple[int, int]:
        """Bytes and number of tensors of a weight with all its copies; `module` is its full name."""
        packing = self.packing(weight, module, head=head)
        copies = 1 if weight.fused else weight.copies
        if packing is None:
            return weight.numbers * BYTES[weight.dtype or self.dtype], copies
        out, into = weight.shape
        return weight.copies * packing.stored_bytes(out, into), copies * packing.tensors

    @property
    def by_name(self) -> bool:
        """Whether equal weights may be stored differently by their names."""
        return bool(self.ignored.entries) or any(rule.names for rule in self.rules)

    @property
    def is_fp4(self) -> bool:
        """Whether some weights are FP4: four bits with an 8-bit scale (MXFP4, NVFP4)."""
        return any(rule.packing.bits == 4 and rule.packing.scale_bits == 8 for rule in self.rules)

    def packing(self, weight: Weight, module: str, *, head: bool = False) -> Packing | None:
        """How a weight is packed; None where it is not."""
        if not weight.linear or not self.rules or (head and not self.heads):
            return None
        if self.ignored.has(module):
            return None
        return next((rule.packing for rule in self.rules if rule.fits(weight, module)), None)


def dtype_of(keys: Keys, *, default: str = "bfloat16") -> tuple[str, tuple[str, ...]]:
    """The model's own type of number and, where the config leaves it out, a note that it was guessed.

    Raises:
        UsageError: the config names a type that is none.
    """
    word = keys.text("dtype", "torch_dtype").removeprefix("torch.")
    if not word:
        return default, (f"the config tells no dtype; {default} is assumed",)
    if word not in BYTES:
        key = "dtype" if keys.has("dtype") else "torch_dtype"
        keys.refuse(f"{keys.path}{key} is {shown(word)}, which is no type of number that we know")
    return word, ()
