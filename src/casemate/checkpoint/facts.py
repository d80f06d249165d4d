"""Facts of a model file. Pure values; reading them from a header is `checkpoint.tools`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a model file says of itself.

    `path` is the file or folder, `name` its own title, `weights_bytes` what it occupies on disk, `context_length` the
    window that it was trained for in tokens, `kv_bytes_per_token` the cache that one token of one sequence needs with
    16-bit keys and values.
    """

    path: str
    name: str
    architecture: str
    weights_bytes: int
    layers: int
    context_length: int
    kv_bytes_per_token: int
