"""A `Checkpoint` from a config.json alone: weights and caches by the model's family, bytes by its storage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypedDict

from casemate.checkpoint.architectures import families, outside, vision
from casemate.checkpoint.architectures.attention import FULL
from casemate.checkpoint.cuts import cuts_of
from casemate.checkpoint.facts import Block, Cache, Checkpoint, Cut, Draft
from casemate.checkpoint.jsonscan import shown_path
from casemate.checkpoint.keys import MOST_CONTEXT, Keys, shown
from casemate.checkpoint.parts import Anatomy, Part, Share, Weight
from casemate.checkpoint.quantization import storage_of
from casemate.checkpoint.storage import Storage, dtype_of

_TEXT = ("text_config", "language_config", "llm_config", "language_model_config", "text_model_config")
_INHERITED = ("tie_word_embeddings", "torch_dtype", "dtype", "quantization_config", "expert_dtype")
"""What wrappers tell once for all their parts."""
_CONTEXT = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length", "max_sequence_length",
    "max_seq_length",
)  # fmt: skip
_STRETCHING = frozenset({"linear", "dynamic"})
"""Kinds of scaling that multiply the window which the config tells; the others have it multiplied already."""
_MOST_FACTOR = 1 << 12
_WIDTHS = ("ffn_hidden_size", "n_inner", "moe_intermediate_size", "intermediate_size_mlp", "shared_intermediate_size")
_USUAL_HEAD = 128
_USUAL_VOCABULARY = 1 << 17


@dataclass(frozen=True, slots=True)
class Told:
    """What a config tells: the keys of its text model and of the whole, and what they come to."""

    whole: Keys
    keys: Keys
    model_type: str
    anatomy: Anatomy
    storage: Storage
    notes: tuple[str, ...]


def checkpoint_from_config(
    config: Mapping[str, object], path: Path, *, modelopt: Mapping[str, object] | None = None
) -> Checkpoint:
    """Compute a model's facts from its config.

    Args:
        config: the content of config.json.
        path: where it was, and what the checkpoint is named after.
        modelopt: the content of ModelOpt's hf_quant_config.json, where there is one.

    Returns:
        The facts, with bytes by layer as the checkpoint stores them.

    Raises:
        UsageError: a key is missing or makes no sense; its text names the key.
    """
    return computed(tell(config, path, modelopt=modelopt), path)


def tell(
    config: Mapping[str, object], path: Path, *, modelopt: Mapping[str, object] | None = None, sized: bool = True
) -> Told:
    """Read what a config tells, before any bytes are counted.

    Args:
        config: the content of config.json.
        path: where it was.
        modelopt: the content of ModelOpt's hf_quant_config.json, where there is one.
        sized: whether bytes must follow from the config; without it (headers or an index tell them) keys that only they
            need may be missing, and any quantisation method will do.

    Raises:
        UsageError: as `checkpoint_from_config`.
    """
    whole = Keys(config, where=shown_path(path))
    text = _text_model(whole)
    model_type = text.text("model_type") or whole.text("model_type")
    text, defaults = families.with_defaults(text, model_type)
    keys, notes = _with_assumptions(text, needed=not sized)
    anatomy = families.build(keys, model_type)
    dtype, guessed = dtype_of(keys)
    quantization = keys.inner("quantization_config") or keys.inner("compression_config")
    if quantization is None and modelopt is not None:
        quantization = Keys(modelopt, where=whole.where)
    storage = storage_of(keys, quantization, dtype=dtype, sized=sized)
    told = (*anatomy.notes, *defaults, *notes, *guessed, *storage.notes)
    return Told(whole, keys, model_type, anatomy, storage, told)


def _with_assumptions(keys: Keys, *, needed: bool) -> tuple[Keys, tuple[str, ...]]:
    """Where `needed`, the keys with usual proportions behind them, and a note of those that the config left out."""
    if not needed or keys.text("model_type") in families.SPARING:
        return keys, ()
    hidden = width(keys)
    assumed: dict[str, object] = {
        "num_attention_heads": max(hidden // keys.number("head_dim", default=_USUAL_HEAD), 1),
        "intermediate_size": 4 * hidden,
        "vocab_size": _USUAL_VOCABULARY,
    }
    also = {"num_attention_heads": ("n_head", "num_heads"), "intermediate_size": _WIDTHS}
    missing = [name for name in assumed if not any(keys.has(key) for key in (name, *also.get(name, ())))]
    note = f"the config does not tell {', '.join(missing)}; usual proportions are assumed"
    return keys.behind({name: assumed[name] for name in missing}), (note,) if missing else ()


def computed(told: Told, path: Path) -> Checkpoint:
    """The facts with the bytes that the config comes to."""
    anatomy, storage = told.anatomy, told.storage
    count = _Counter(storage)
    beyond = anatomy.outside
    tower, notes = vision.towers(told.whole, width(told.keys))
    draft = None
    if beyond.draft:
        blocks = tuple(count.block(part) for part in beyond.draft)
        draft = Draft(beyond.draft_method, beyond.draft_tokens, blocks, beyond.draft_caches)
    checkpoint = Checkpoint(
        **_facts(told, path),
        layers=tuple(count.block(part, prefix=f"{anatomy.prefix}{n}.") for n, part in enumerate(anatomy.layers)),
        embedding=count.block(beyond.embedding),
        head=count.block(beyond.head, head=True),
        draft=draft,
        vision=count.block(tower),
        notes=(*told.notes, *notes),
    )
    return replace(checkpoint, tensors=0 if tower else count.tensors)


def width(keys: Keys) -> int:
    """Numbers in the state of one token."""
    return keys.number("hidden_size", "n_embd", "d_model")


def _text_model(whole: Keys) -> Keys:
    """The keys of the text model: the whole, or an object inside it that tells a width."""
    thinker = whole.inner("thinker_config")
    for outer in (whole, thinker):
        for name in _TEXT:
            inner = outer.inner(name) if outer else None
            if inner is not None and (inner.has("hidden_size") or inner.has("model_type")):
                return inner.behind({key: whole.get(key) for key in _INHERITED if whole.has(key)})
    return whole


def _facts(told: Told, path: Path) -> _Facts:
    keys, anatomy = told.keys, told.anatomy
    named = told.whole.texts("architectures") or keys.texts("architectures")
    return _Facts(
        path=str(path),
        name=shown(path.parent.name if path.suffix == ".json" else path.name) or "model",
        architecture=shown(named[0]) if named else "",
        model_type=told.whole.text("model_type", default=told.model_type),
        weights_from="config",
        caches=anatomy.caches,
        hidden_size=width(keys),
        vocabulary=outside.vocabulary(keys),
        attention_heads=anatomy.attention_heads,
        kv_heads=anatomy.kv_heads,
        context_length=_context(keys),
        intermediate_size=anatomy.intermediate_size,
        experts=anatomy.experts,
        experts_per_token=anatomy.experts_per_token,
        dtype=told.storage.dtype,
        quantization=told.storage.method,
        expert_dtype=keys.text("expert_dtype") if told.storage.method else "",
        rope_scaled_from=_scaled_from(keys),
        fp4=told.storage.is_fp4,
        cuts=cuts_of(anatomy, told.storage),
    )


def _context(keys: Keys) -> int:
    """The longest sequence in tokens, as vLLM 0.33.0 derives it (`config/model.py`); 0 where nothing tells it."""
    if keys.has("model_max_length"):
        return keys.number("model_max_length", most=MOST_CONTEXT)
    told = [keys.number(name, most=MOST_CONTEXT) for name in _CONTEXT if keys.has(name)]
    length = min(told, default=0)
    scaling = _scaling(keys)
    if scaling is None or scaling.text("rope_type", "type") not in _STRETCHING or "gemma3" in keys.text("model_type"):
        return length
    factor = scaling.get("factor")
    return int(length * factor) if isinstance(factor, int | float) and 1 <= factor <= _MOST_FACTOR else length


def _scaled_from(keys: Keys) -> int:
    scaling = _scaling(keys)
    for told in (scaling, keys):
        if told is not None and told.has("original_max_position_embeddings"):
            return told.number("original_max_position_embeddings", most=MOST_CONTEXT)
    if scaling is None or scaling.text("rope_type", "type") not in _STRETCHING:
        return 0
    return keys.number("max_position_embeddings", default=0, least=0, most=MOST_CONTEXT)


def _scaling(keys: Keys) -> Keys | None:
    """The scaling of positions; where kinds of layers have one each, that of full attention."""
    for name in ("rope_scaling", "rope_parameters"):
        inner = keys.inner(name)
        if inner is not None:
            return next((inner.inner(kind) for kind in FULL if inner.has(kind)), inner)
    return None


class _Facts(TypedDict):
    """The fields of a Checkpoint that do not depend on bytes."""

    path: str
    name: str
    architecture: str
    model_type: str
    weights_from: Literal["headers", "config", "index"]
    caches: tuple[Cache, ...]
    hidden_size: int
    vocabulary: int
    attention_heads: int
    kv_heads: int
    context_length: int
    intermediate_size: int
    experts: int
    experts_per_token: int
    dtype: str
    quantization: str
    expert_dtype: str
    rope_scaled_from: int
    fp4: bool
    cuts: tuple[Cut, ...]


class _Counter:
    """Counts parts as blocks, and their tensors; equal layers are counted once where names do not matter."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._nameless = not storage.rules or not storage.by_name
        self._known: dict[int, tuple[Block, int]] = {}
        self.tensors = 0

    def block(self, part: Part, *, prefix: str = "", head: bool = False) -> Block:
        """The part as bytes."""
        known = self._known.get(id(part)) if self._nameless else None
        block, tensors = known or self._counted(part, prefix, head=head)
        if self._nameless:
            self._known[id(part)] = (block, tensors)
        self.tensors += tensors
        return block

    def _counted(self, part: Part, prefix: str, *, head: bool) -> tuple[Block, int]:
        stored = [(w, *self._storage.stored(w, prefix + w.name.replace("{}", "0"), head=head)) for w in part]
        return _summed((weight, size) for weight, size, _ in stored), sum(tensors for _, _, tensors in stored)


def _summed(stored: Iterable[tuple[Weight, int]]) -> Block:
    sizes = dict.fromkeys(Share, 0)
    numbers = dict.fromkeys(Share, 0)
    for weight, size in stored:
        sizes[weight.share] += size
        numbers[weight.share] += weight.numbers
    return Block(
        sharded_bytes=sizes[Share.SHARDED],
        replicated_bytes=sizes[Share.REPLICATED],
        expert_bytes=sizes[Share.EXPERT],
        parameters=numbers[Share.SHARDED] + numbers[Share.REPLICATED],
        expert_parameters=numbers[Share.EXPERT],
    )
