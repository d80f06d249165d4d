"""Where tensor parallelism must cut packed matrices in whole blocks of scales, by anatomy and storage.

vLLM refuses a rank whose slice ends inside a block (`validate_fp8_block_shape`, `BaseAWQLinearMethod`, the kernels of
`mixed_precision`; 0.26 and 0.33): projections back to the hidden state are cut along their inputs, and so are the
scales of groups and blocks; merged projections into a layer may end anywhere, single ones may not.
"""

from __future__ import annotations

from collections.abc import Iterator

from casemate.checkpoint.facts import Cut
from casemate.checkpoint.parts import Anatomy, Share, Weight
from casemate.checkpoint.storage import Packing, Storage

_BACK = frozenset({"o_proj", "out_proj", "down_proj", "w2", "c_proj", "output_linear", "wo_b", "dense"})
"""Projections back to the hidden state, by their last name."""
_SINGLE = frozenset({"q_b_proj", "kv_b_proj"})
"""Projections cut along their outputs that the engine merges with no other."""
_FREE = frozenset({"bitsandbytes"})
"""Methods whose blocks run on over the rows."""


def cuts_of(anatomy: Anatomy, storage: Storage) -> tuple[Cut, ...]:
    """Every side of a packed matrix that ranks must cut in whole blocks; equal ones once."""
    if not storage.rules or storage.method in _FREE:
        return ()
    found: dict[Cut, None] = {}
    seen: set[tuple[int, str]] = set()
    for number, part in enumerate(anatomy.layers):
        prefix = f"{anatomy.prefix}{number}." if storage.by_name else ""
        if (id(part), prefix) in seen:
            continue
        seen.add((id(part), prefix))
        for weight in part:
            packing = storage.packing(weight, prefix + weight.name.replace("{}", "0"))
            found.update(dict.fromkeys(_cuts(weight, packing) if packing else ()))
    return tuple(found)


def _cuts(weight: Weight, packing: Packing) -> Iterator[Cut]:
    if weight.share is Share.REPLICATED:
        return
    name = weight.name.replace(".{}", "").replace("{}", "")
    last = name.rsplit(".", 1)[-1]
    out, into = weight.shape
    if weight.share is Share.EXPERT:
        # Experts in groups of int4 get smaller groups, and FP4 ones are padded; blocks in both directions stay.
        if last in _BACK and packing.bits == 8 and packing.rows > 1:
            yield Cut(name, into, packing.columns, routed=True)
    elif last in _BACK and 1 < packing.columns < into:
        yield Cut(name, into, packing.columns)
    elif last in _SINGLE and packing.rows > 1:
        yield Cut(name, out, packing.rows)
