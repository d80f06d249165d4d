"""The `quantization_config` of a model as a `Storage`: one function a method, by the keys that the method writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from casemate.checkpoint.keys import Keys, shown
from casemate.checkpoint.matching import Names
from casemate.checkpoint.storage import BYTES, MXFP4, NVFP4, Packing, Rule, Storage

_SKIPPED = ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "llm_int8_skip_modules")
"""Where the methods list the modules that they pass over."""
_MOST_PATTERNS = 1 << 10


def storage_of(keys: Keys, quantization: Keys | None, *, dtype: str, sized: bool = True) -> Storage:
    """How the weights are stored.

    Args:
        keys: the config of the text model; `expert_dtype` in it overrides the method for routed experts.
        quantization: the config's `quantization_config`, or ModelOpt's own file; None for none.
        dtype: the type of what is not packed.
        sized: whether the method's layout must be known; without it, a method that is not is only named.

    Raises:
        UsageError: the method is one whose layout we do not know, or its keys make no sense.
    """
    if quantization is None or not quantization.names():
        return Storage(dtype)
    unnamed = "modelopt" if quantization.has("quant_algo") or quantization.has("quantization") else ""
    method = quantization.text("quant_method", default=unnamed)
    build = _METHODS.get(method.replace("_", "-"))
    if build is None and not sized:
        return Storage(dtype, method=method)
    if build is None:
        quantization.refuse(
            f"the size of weights quantised by {shown(method or 'an unnamed method')} does not follow from the config"
        )
    if build is _modelopt and not sized and _algorithm(quantization) not in _OF_MODELOPT:
        return Storage(dtype, method=method)
    storage = build(quantization, Storage(dtype, method=method, ignored=_ignored(quantization)))
    storage = _experts_apart(keys, quantization, storage=storage)
    missed = storage.ignored.not_understood
    notes = (f"passed over in the list of unquantised modules: {shown(', '.join(missed))}",) if missed else ()
    return replace(storage, notes=(*storage.notes, *notes))


def _ignored(keys: Keys) -> Names:
    listed = [entry for name in _SKIPPED for entry in keys.texts(name, longest=1 << 16)]
    inner = keys.get("dynamic")
    if isinstance(inner, dict):  # GPTQModel: an expression after a minus is passed over
        listed += ["re:" + key.removeprefix("-:") for key in inner if isinstance(key, str) and key.startswith("-:")]
    names = Names.of(listed)
    if names.patterns > _MOST_PATTERNS:
        keys.refuse(f"the config has {names.patterns} patterns of modules; {_MOST_PATTERNS} would be many")
    return names


def _experts_apart(keys: Keys, quantization: Keys, *, storage: Storage) -> Storage:
    """DeepSeek-V4's experts are FP4 beside FP8 attention, and the scales are then 8-bit exponents."""
    word = keys.text("expert_dtype")
    if word != "fp4" or "fp8" not in storage.method:
        return storage
    packing = NVFP4 if quantization.text("moe_quant_algo").upper() == "NVFP4" else MXFP4
    rest = tuple(replace(rule, packing=replace(rule.packing, scale_bits=8)) for rule in storage.rules)
    return replace(storage, rules=(Rule(packing, experts_only=True), *rest))


def _fp8(keys: Keys, storage: Storage) -> Storage:
    block = keys.numbers("weight_block_size", least=1)
    static = keys.text("activation_scheme") == "static"
    if block and len(block) != 2:
        keys.refuse("quantization_config.weight_block_size is not two numbers")
    if block:
        packing = Packing(bits=8, scale_bits=32, rows=block[0], columns=block[1])
    else:
        packing = Packing(bits=8, scale_bits=32, rows=0, rest_bytes=4 * static, rest_tensors=int(static))
    return replace(storage, rules=(Rule(packing),))


def _fbgemm(_keys: Keys, storage: Storage) -> Storage:
    return replace(storage, rules=(Rule(Packing(bits=8, scale_bits=32)),))


def _gptq(keys: Keys, storage: Storage) -> Storage:
    packing = replace(_grouped(keys), column_bytes=4)
    return replace(storage, rules=(Rule(packing),), heads=keys.flag("lm_head"))


def _awq(keys: Keys, storage: Storage) -> Storage:
    return replace(storage, rules=(Rule(_grouped(keys)),))


def _grouped(keys: Keys) -> Packing:
    bits = keys.number("bits", "w_bit", default=4, most=8)
    group = keys.number("group_size", "q_group_size", default=128, least=-1, most=1 << 16)
    zeros = keys.flag("zero_point", default=True)
    return Packing(bits=bits, scale_bits=16, columns=max(group, 0), zero_bits=bits if zeros else 0)


def _bitsandbytes(keys: Keys, storage: Storage) -> Storage:
    if keys.flag("load_in_8bit") or keys.flag("_load_in_8bit"):
        packing = Packing(bits=8, scale_bits=32, rest_bytes=1, rest_tensors=1)
    elif keys.flag("bnb_4bit_use_double_quant"):
        # Blocks of 64 numbers; their scales are 8-bit, with a float32 for 256 of them, and two small tables.
        packing = Packing(bits=4, scale_bits=8 + 32 / 256, columns=64, rest_bytes=1200, rest_tensors=4)
    else:
        packing = Packing(bits=4, scale_bits=32, columns=64, rest_bytes=150, rest_tensors=2)
    return replace(storage, rules=(Rule(packing),))


def _mxfp4(_keys: Keys, storage: Storage) -> Storage:
    return replace(storage, rules=(Rule(MXFP4, experts_only=True),))


def _modelopt(keys: Keys, storage: Storage) -> Storage:
    inner = keys.inner("quantization") or keys
    algorithm = _algorithm(keys)
    packing = _OF_MODELOPT.get(algorithm)
    if packing is None:
        keys.refuse(f"the size of weights quantised by ModelOpt's {algorithm or 'unnamed method'} is not known")
    ignored = Names.of([*storage.ignored.entries, *_ignored(inner).entries])
    return replace(storage, rules=(Rule(packing),), heads=True, ignored=ignored)


def _algorithm(keys: Keys) -> str:
    return (keys.inner("quantization") or keys).text("quant_algo").upper()


_OF_MODELOPT = {
    "FP8": Packing(bits=8, scale_bits=32, rows=0, rest_bytes=4, rest_tensors=1),
    "FP8_PER_CHANNEL_PER_TOKEN": Packing(bits=8, scale_bits=32),
    "FP8_PB_WO": Packing(bits=8, scale_bits=32, rows=128, columns=128),
    "NVFP4": NVFP4,
    "W4A16_NVFP4": replace(NVFP4, rest_bytes=4, rest_tensors=1),
    "MXFP8": Packing(bits=8, scale_bits=8, columns=32),
}


_OF_FORMAT = {"nvfp4-pack-quantized": NVFP4, "mxfp4-pack-quantized": MXFP4}
"""Formats of compressed-tensors that leave nothing open; the others (widths, groups, scales) need their groups."""
_WHOLLY = (
    "the config names a packed format but no config_groups: all linear layers are taken as packed; read the headers"
)


def _compressed_tensors(keys: Keys, storage: Storage) -> Storage:
    groups = keys.inner("config_groups")
    packing = _OF_FORMAT.get(keys.text("format"))
    exact = Names.of(storage.ignored.entries, inside=False)
    if groups is None and packing is not None:
        return replace(storage, rules=(Rule(packing),), heads=True, ignored=exact, notes=(_WHOLLY,))
    if groups is None:
        keys.refuse("the config does not tell quantization_config.config_groups")
    scale_bits = 8 * BYTES[storage.dtype]
    rules = [rule for _, group in groups.inners() if (rule := _group(keys, group, scale_bits=scale_bits)) is not None]
    rules.sort(key=lambda rule: rule.names is None)  # a target by name goes before one by class
    return replace(storage, rules=tuple(rules), heads=True, ignored=exact)


def _group(keys: Keys, group: Keys, *, scale_bits: int) -> Rule | None:
    weights = group.inner("weights")
    if weights is None:  # activations or the cache alone
        return None
    targets = group.texts("targets")
    names = None if not targets or "Linear" in targets else Names.of(targets, inside=False)
    form = group.text("format") or keys.text("format")
    return Rule(_compressed(weights, form, scale_bits=scale_bits, static=_is_static(group)), names=names)


def _is_static(group: Keys) -> bool:
    inputs = group.inner("input_activations")
    return inputs is not None and inputs.get("dynamic") is False


def _compressed(weights: Keys, form: str, *, scale_bits: int, static: bool) -> Packing:
    bits = weights.number("num_bits", most=16)
    strategy = weights.text("strategy", default="tensor")
    group = weights.number("group_size", default=0, least=-1, most=1 << 16)
    if form.startswith("nvfp4") or strategy == "tensor_group":
        return replace(NVFP4, rest_bytes=8 if static or weights.get("dynamic") is not True else 4)
    if form.startswith("mx") or (group == 32 and bits == 4 and weights.text("type") == "float"):
        return Packing(bits=bits, scale_bits=8, columns=group or 32)
    rows, columns = _extent(weights, strategy, group=group)
    packed = form.startswith("pack")
    return Packing(
        bits=bits,
        scale_bits=scale_bits,
        rows=rows,
        columns=columns,
        zero_bits=0 if weights.flag("symmetric", default=True) else (bits if packed else 8),
        column_bytes=4 if weights.get("actorder") in ("group", True) else 0,
        rest_bytes=16 * packed + static * scale_bits // 8,
        rest_tensors=packed + static,
    )


def _extent(weights: Keys, strategy: str, *, group: int) -> tuple[int, int]:
    """Rows and columns of the block that one scale is for."""
    if strategy == "block":
        block = weights.numbers("block_structure", least=1)
        return (block[0], block[1]) if len(block) == 2 else (128, 128)
    if strategy in ("group", "channel"):
        return 1, max(group, 0)
    return 0, 0


_METHODS: dict[str, Callable[[Keys, Storage], Storage]] = {
    "fp8": _fp8,
    "deepseek-v4-fp8": _fp8,
    "fbgemm-fp8": _fbgemm,
    "gptq": _gptq,
    "gptq-marlin": _gptq,
    "awq": _awq,
    "awq-marlin": _awq,
    "auto-round": _awq,
    "intel/auto-round": _awq,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": _mxfp4,
    "gpt-oss-mxfp4": _mxfp4,
    "modelopt": _modelopt,
    "modelopt-fp4": _modelopt,
    "compressed-tensors": _compressed_tensors,
}
