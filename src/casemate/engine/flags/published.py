"""What is known of a checkpoint that a command names by its hub id: the config's facts as they were published."""

from __future__ import annotations

import csv
from importlib import resources

from casemate.checkpoint.facts import Block, Checkpoint, Compressed, Draft

_FILE = "published.tsv"
_ANY_LAYER = Compressed(layers=(), ratio=0, window=0, head_size=0, rope_size=0)
"""Says that the cache is the compressed one; sizes are the planner's business and read from the model itself."""


def published(hub_id: str) -> Checkpoint | None:
    """The facts under that id, without any bytes; None for an id that is not in the table."""
    lines = (resources.files(__package__) / _FILE).read_text(encoding="utf-8").splitlines()
    table = csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t", quoting=csv.QUOTE_NONE)
    row = next((row for row in table if row["id"] == hub_id), None)
    if row is None:
        return None
    return Checkpoint(
        path="",
        name=hub_id,
        architecture="",
        model_type="",
        weights_from="config",
        layers=(),
        embedding=Block(),
        head=Block(),
        caches=(_ANY_LAYER,) if row["compressed"] == "yes" else (),
        hidden_size=0,
        vocabulary=0,
        attention_heads=int(row["attention_heads"]),
        kv_heads=int(row["kv_heads"]),
        context_length=int(row["context_length"]),
        intermediate_size=0,
        experts=int(row["experts"]),
        dtype=row["dtype"],
        quantization=row["quantization"],
        expert_dtype=row["expert_dtype"],
        draft=Draft(row["draft"], int(row["draft_tokens"]), ()) if row["draft"] else None,
        notes=(f"as published: {row['source']}",),
    )
