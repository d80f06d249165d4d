"""What a request takes of the cache, from two things that an engine printed: a part a request, and one a token. Pure.

For a model whose cache nobody has described. It holds where window and tokens in flight are shorter than the request;
for DeepSeek-V4 below that the true curve is steeper, and `kv.Pool` knows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from casemate.errors import UsageError


@dataclass(frozen=True, slots=True)
class Affine:
    """`request_bytes` for every request, whatever its length, and `token_bytes` for each of its tokens."""

    request_bytes: float
    token_bytes: float

    def need_bytes(self, context: int) -> float:
        """What one request of `context` tokens takes."""
        return self.request_bytes + self.token_bytes * context

    def requests(self, available_bytes: float, context: int) -> float:
        """Requests of that length that fit at once."""
        return available_bytes / self.need_bytes(context)

    def printed_tokens(self, available_bytes: float, context: int) -> int:
        """The pool size that the engine prints with this `max_model_len`; a smaller one prints less and serves more."""
        return int(self.requests(available_bytes, context) * context)

    def longest(self, available_bytes: float) -> int:
        """The longest request that fits, 0 if none does."""
        return max(int((available_bytes - self.request_bytes) / self.token_bytes), 0)


def fitted(first: tuple[int, float], second: tuple[int, float]) -> Affine:
    """The line through two observations of (tokens, bytes). A refused start-up prints both.

    Raises:
        UsageError: they are of the same length, or the longer one takes no more.
    """
    (short, small), (long, large) = sorted((first, second))
    if long == short or large <= small:
        raise UsageError(
            "two observations of one length, or of a longer request that takes no more, tell no slope",
            remedy="give two start-ups with different max_model_len",
        )
    token = (large - small) / (long - short)
    return Affine(request_bytes=small - token * short, token_bytes=token)
