"""What stands outside the layers: embedding, head, and the layers that guess the next tokens."""

from __future__ import annotations

from collections.abc import Sequence

from casemate.checkpoint.facts import Cache
from casemate.checkpoint.keys import Keys
from casemate.checkpoint.parts import Outside, Part, Share, Weight, matrix, named, vector

EMBEDDING = "model.embed_tokens.weight"


def vocabulary(keys: Keys) -> int:
    """How many tokens the embedding has rows for."""
    return keys.number("vocab_size", "padded_vocab_size")


def ends(
    keys: Keys, *, norm: Part | None = None, embedding: str = EMBEDDING, head: str = "lm_head"
) -> tuple[Part, Part]:
    """Embedding and head. The head has the last norm, and its own matrix unless it is tied to the embedding."""
    hidden, words = keys.number("hidden_size", "n_embd", "d_model"), vocabulary(keys)
    last = norm if norm is not None else (vector("model.norm.weight", hidden),)
    if not keys.flag("tie_word_embeddings"):
        last = (*last, matrix(head, (words, hidden)))
    return (vector(embedding, words, hidden, share=Share.SHARDED),), last


def plain(keys: Keys, *, norm: Part | None = None) -> Outside:
    """Embedding and head without a drafting module."""
    embedding, head = ends(keys, norm=norm)
    return Outside(embedding, head)


def guessing(keys: Keys, *, layer: Part, own_ends: bool) -> Part:
    """One layer of multi-token prediction as DeepSeek-V3 stores it (arXiv 2412.19437, section 2.2).

    `own_ends` repeats embedding and head inside the layer.
    """
    hidden, words = keys.number("hidden_size"), vocabulary(keys)
    around: list[Weight] = [
        vector("enorm.weight", hidden),
        vector("hnorm.weight", hidden),
        vector("eh_proj.weight", hidden, 2 * hidden),
        vector("shared_head.norm.weight", hidden),
    ]
    if own_ends:
        around += [
            vector("embed_tokens.weight", words, hidden, share=Share.SHARDED),
            vector("shared_head.head.weight", words, hidden, share=Share.SHARDED),
        ]
    return (*layer, *around)


def with_guesses(keys: Keys, guesses: Sequence[Part], *, caches: tuple[Cache, ...], first: int) -> Outside:
    """Embedding and head with layers of multi-token prediction, which are numbered from `first`."""
    embedding, head = ends(keys)
    drafts = tuple(named(f"model.layers.{first + number}.", part) for number, part in enumerate(guesses))
    if not drafts:
        return Outside(embedding, head)
    return Outside(embedding, head, drafts, draft_method="mtp", draft_tokens=len(drafts), draft_caches=caches)
