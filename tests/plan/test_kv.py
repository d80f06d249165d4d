"""The cache by groups and blocks, against the engine's own arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casemate.checkpoint.facts import Block, Cache, Checkpoint, Grouped, Latent, Recurrent
from casemate.errors import UsageError
from casemate.plan.accounting import accounting
from casemate.plan.decision import GIB, Speculation
from casemate.plan.kv import Pool, pools
from casemate.plan.launch import Launch, Layout, capture_sizes, default_capture, stages
from casemate.plan.pages import is_packed, paged
from plan import shapes

MIB = 1 << 20


def pool(
    checkpoint: Checkpoint,
    *,
    tensor: int = 1,
    kv_dtype: str = "auto",
    version: str = "0.26.0",
    block: int | None = None,
) -> Pool:
    """The pool of a single stage."""
    launch = Launch(Layout(tensor=tensor), 4096, 2048, 16, 0.9, kv_dtype, block)
    engine = accounting(version)
    layers = paged(checkpoint, launch, states=2 if engine.caches_state_prefixes else 1)
    return pools(layers, stages(len(checkpoint.layers), 1), engine=engine, packed=is_packed(checkpoint))[0]


def model(*caches: Cache, layers: int, heads: int = 64, dtype: str = "bfloat16") -> Checkpoint:
    """A checkpoint of nothing but caches."""
    return Checkpoint(
        "/m", "m", "AForCausalLM", "a", "config", (Block(),) * layers, Block(), Block(), caches, 4096, 32000, heads, 8,
        1 << 20, 11008, dtype=dtype,
    )  # fmt: skip


def per_token(found: Pool, *, tokens: int = 1 << 16) -> float:
    return found.need_bytes(tokens, 0) / tokens


@pytest.mark.parametrize("tensor", [1, 8])
def test_a_latent_is_whole_on_every_rank_and_stays_bf16_where_only_weights_are_fp8(tensor: int) -> None:
    assert per_token(pool(shapes.read(shapes.V3), tensor=tensor)) == 61 * 576 * 2 == 70272


def test_an_fp8_cache_halves_a_latent() -> None:
    assert per_token(pool(shapes.read(shapes.V3), kv_dtype="fp8")) == 35136


@pytest.mark.parametrize(("tensor", "heads"), [(1, 8), (2, 4), (8, 1), (16, 1)])
def test_key_heads_are_split_and_past_one_a_rank_copied(tensor: int, heads: int) -> None:
    assert per_token(pool(shapes.read(shapes.LLAMA_70B), tensor=tensor)) == 80 * heads * 2 * 128 * 2


def test_quantized_weights_leave_the_cache_at_16_bits() -> None:
    assert per_token(pool(shapes.read(shapes.GPTQ_70B), tensor=2)) == 163840


def test_float32_models_cache_float32() -> None:
    found = pool(model(Grouped((0, 1), 8, 128, 128), layers=2, dtype="float32"))
    assert per_token(found) == 2 * 8 * 256 * 4


def test_only_every_fourth_layer_of_a_hybrid_grows_and_its_states_do_not() -> None:
    attention = tuple(range(3, 64, 4))
    linear = tuple(layer for layer in range(64) if layer not in attention)
    hybrid = model(Grouped(attention, 8, 64, 64), Recurrent(linear, 32, 700_000, 30_000, "float32"), layers=64)
    found = pool(hybrid)
    growth = found.need_bytes(262144, 0) - found.need_bytes(131072, 0)
    assert growth == pytest.approx(131072 * 16 * 1024 * 2, rel=0.01)
    states = found.need_bytes(1, 0)
    assert 64 * 2_800_000 < states < 8 * 64 * 2_800_000
    assert all(item.page.size >= 2_800_000 for group in found.groups for item in group)


def test_a_hybrid_takes_the_attention_block_that_the_engine_prints() -> None:
    """Qwen3-Next on one card: attention pages of 1,024 bytes a token and layer hold a state of 2.1 MiB."""
    found = pool(shapes.read(shapes.QWEN3_NEXT))
    sizes = {item.page.size for group in found.groups for item in group}
    assert len(sizes) == 1
    assert len(found.groups) == 4


def test_windows_keep_what_is_in_flight_of_one_batch_and_since_0_26_of_two() -> None:
    oss = shapes.read(shapes.GPT_OSS_120B)
    engine_block = 18 * 16 * 8 * 128 * 2
    before, after = pool(oss, version="0.25.0"), pool(oss, version="0.26.0")
    full = 131072 // 16
    assert before.need_bytes(131072, 8192) == engine_block * (full + (127 + 8192 + 15) // 16 + 1)
    assert after.need_bytes(131072, 2 * 8192) == engine_block * (full + (127 + 16384 + 15) // 16 + 1)
    assert accounting("0.25.0").batches_in_flight(1) == 1
    assert accounting("0.26.0").batches_in_flight(1) == 2
    assert accounting("0.26.0").batches_in_flight(4) == 4


def test_pages_of_unequal_heads_are_made_equal_by_longer_blocks() -> None:
    """Gemma 4 31B: 13.8 GiB for one request of 16,384 tokens, as vLLM 0.26 printed it on a B300."""
    full = tuple(range(5, 60, 6))
    windows = tuple(layer for layer in range(60) if layer not in full)
    gemma = model(Grouped(windows, 16, 256, 256, 1024), Grouped(full, 4, 512, 512), layers=60, heads=32)
    assert pool(gemma).need_bytes(16384, 16384) / GIB == pytest.approx(13.76, abs=0.02)


def test_nearly_as_many_layers_of_two_kinds_are_padded_to_the_more() -> None:
    uneven = model(Grouped(tuple(range(12)), 8, 64, 64, 128), Grouped(tuple(range(12, 25)), 8, 64, 64), layers=25)
    assert [len(group) for group in pool(uneven).groups] == [12, 13]


def test_deepseek_v4_has_the_five_groups_and_pages_of_the_engine() -> None:
    found = pool(shapes.read(shapes.V4), kv_dtype="fp8")
    assert [len(group) for group in found.groups] == [62, 22, 21, 42, 20]
    assert found.block_bytes == 22 * 37440 + 21 * 8640 + 20 * 1728
    assert found.start_block_bytes == 22 * (37440 + 8640 + 1728)
    between = pool(shapes.read(shapes.V4), kv_dtype="fp8", version="0.28.0")
    assert between.block_bytes == 21 * (37440 + 8640) + 20 * 1728
    assert between.start_block_bytes == found.start_block_bytes
    newer = pool(shapes.read(shapes.V4), kv_dtype="fp8", version="0.33.0")
    assert newer.block_bytes == newer.start_block_bytes == 21 * (37440 + 8640) + 20 * 1728
    assert newer.spare_blocks == 1


def test_deepseek_v4_keeps_all_its_cache_on_every_rank() -> None:
    one, four = (pool(shapes.read(shapes.V4), tensor=tensor, kv_dtype="fp8") for tensor in (1, 4))
    assert one.need_bytes(65536, 8192) == four.need_bytes(65536, 8192)


def test_stages_get_their_own_layers_and_a_draft_goes_to_the_last() -> None:
    checkpoint = shapes.read(shapes.V4_DSPARK)
    launch = Launch(Layout(pipeline=2), 4096, 2048, 16, 0.9, "fp8", 256, speculation=Speculation("dspark", 7))
    first, last = pools(paged(checkpoint, launch), stages(43, 2), engine=accounting("0.26.0"), packed=True)
    layers = [{item.layer for group in found.groups for item in group} for found in (first, last)]
    assert layers == [set(range(22)), set(range(22, 46))]


def test_sparse_latents_cache_an_index_key_beside_the_latent() -> None:
    sparse = model(Latent(tuple(range(61)), 512, 64, 128), layers=61, heads=128)
    assert per_token(pool(sparse)) == 61 * (1152 + 132)
    assert per_token(pool(sparse, kv_dtype="fp8")) == 61 * (656 + 132)


@pytest.mark.parametrize(
    "config", [shapes.V4, shapes.GPT_OSS_120B, shapes.QWEN3_NEXT, shapes.V3], ids=["v4", "oss", "next", "v3"]
)
@given(context=st.integers(1, 200_000), more=st.integers(0, 100_000), flight=st.integers(0, 20_000))
@settings(max_examples=40, deadline=None)
def test_a_longer_request_or_more_in_flight_never_takes_less(
    config: dict[str, object], context: int, more: int, flight: int
) -> None:
    found = pool(shapes.read(config))
    assert found.start_bytes(context + more, flight) >= found.start_bytes(context, flight)
    assert found.need_bytes(context + more, flight) >= found.need_bytes(context, flight)
    assert found.start_bytes(context, flight + more) >= found.start_bytes(context, flight)


@given(available=st.integers(0, 20 * GIB), flight=st.integers(0, 16_384))
@settings(max_examples=30, deadline=None)
def test_the_longest_request_fits_and_one_token_more_does_not(available: int, flight: int) -> None:
    found = pool(shapes.read(shapes.V4), kv_dtype="fp8")
    longest = found.longest(available, flight, limit=1 << 20)
    assert longest == 0 or found.start_bytes(longest, flight) <= available
    assert longest == 1 << 20 or found.start_bytes(longest + 1, flight) > available


def test_a_model_without_caches_takes_none() -> None:
    assert pool(model(layers=4)).need_bytes(4096, 2048) == 0


@pytest.mark.parametrize("version", ["", "latest", "0.6.3", "v"])
def test_an_unknown_or_too_old_version_is_refused_with_a_remedy(version: str) -> None:
    with pytest.raises(UsageError):
        accounting(version)


def test_captured_sizes_are_the_engines() -> None:
    assert capture_sizes(64) == (1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64)
    assert len(capture_sizes(512)) == 51
    assert default_capture(32, 1) == 64
    assert default_capture(1024, 1) == 512
    assert default_capture(1024, 1, blackwell=True) == 1024
