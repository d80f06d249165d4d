"""Memory that depends on the kernels which a release picks for a card: workspaces, paddings, samplers, towers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from casemate.checkpoint.facts import Checkpoint
from casemate.plan.accounting import Accounting, accounting
from casemate.plan.decision import GIB
from casemate.plan.launch import Launch, Layout
from casemate.plan.overhead import activation_terms
from casemate.plan.weights import stage_bytes
from plan import shapes

HOPPER, BLACKWELL, AMPERE = (9, 0), (10, 0), (8, 0)
LAUNCH = Launch(Layout(tensor=8), 8192, 8192, 1024, 0.9)
DEEPSEEK = shapes.read(shapes.V3)
OSS = shapes.read(shapes.GPT_OSS_120B)


def release(version: str, capability: tuple[int, int] | None = HOPPER) -> Accounting:
    return replace(accounting(version), capability=capability)


def kept(checkpoint: Checkpoint, engine: Accounting, launch: Launch = LAUNCH) -> float:
    """GiB that stay allocated while the sampler runs."""
    logit = 38 if engine.sorts_logits else 16
    return (activation_terms(checkpoint, launch, engine=engine)[1] - 1024 * checkpoint.vocabulary * logit) / GIB


_ALONE = Layout()


def loaded(checkpoint: Checkpoint, engine: Accounting | None, layout: Layout = _ALONE) -> float:
    (held,) = stage_bytes(checkpoint, replace(LAUNCH, layout=layout), engine=engine)
    return held / GIB


@pytest.mark.parametrize(("version", "bytes_"), [("0.11.2", 38), ("0.16.0", 38), ("0.17.0", 16), ("0.29.0", 16)])
def test_the_sampler_sorts_all_logits_until_its_triton_kernel_came(version: str, bytes_: int) -> None:
    llama = shapes.read(shapes.LLAMA_8B)
    sampling = activation_terms(llama, LAUNCH, engine=release(version))[1]
    assert sampling == 1024 * llama.vocabulary * bytes_


def test_what_experts_compute_in_stays_allocated_beside_the_sampler() -> None:
    # 8192 tokens × 8 experts × two rows as wide as the hidden state, in bf16.
    assert kept(DEEPSEEK, release("0.18.0")) == pytest.approx(1.75, abs=0.01)
    assert kept(DEEPSEEK, release("0.18.0", None)) == pytest.approx(1.75, abs=0.01)


@pytest.mark.parametrize(
    ("engine", "layout"),
    [
        (release("0.13.0"), Layout(tensor=8)),
        (release("0.18.0", BLACKWELL), Layout(tensor=8)),
        (release("0.18.0"), Layout(tensor=8, expert=True)),
    ],
    ids=["an older release", "FlashInfer on sm_100", "FlashInfer for dealt FP8 experts on sm_90"],
)
def test_nothing_stays_where_other_kernels_compute_the_experts(engine: Accounting, layout: Layout) -> None:
    assert kept(DEEPSEEK, engine, replace(LAUNCH, layout=layout)) == 0


def test_a_dense_model_and_mxfp4_experts_keep_nothing() -> None:
    assert kept(shapes.read(shapes.LLAMA_8B), release("0.26.0")) == 0
    assert kept(OSS, release("0.26.0")) == 0


def test_mxfp4_experts_are_padded_by_the_kernels_of_the_card() -> None:
    padded = loaded(OSS, release("0.26.0", AMPERE))
    assert loaded(OSS, release("0.26.0", HOPPER)) < 0.95 * padded
    assert loaded(OSS, release("0.26.0", BLACKWELL)) > padded


def test_where_card_or_release_are_not_known_the_padded_layout_is_planned() -> None:
    padded = loaded(OSS, None)
    assert loaded(OSS, release("0.26.0", None)) == padded
    assert loaded(OSS, release("0.11.2", HOPPER)) == padded
    assert loaded(OSS, release("0.14.1", HOPPER)) == padded


def test_ranks_share_a_tower_but_each_has_all_of_pixtrals() -> None:
    tower = replace(DEEPSEEK.layers[0], sharded_bytes=0, replicated_bytes=8 * GIB, expert_bytes=0)
    bare = loaded(DEEPSEEK, release("0.26.0"), Layout(tensor=8))
    seeing = replace(DEEPSEEK, vision=tower)
    assert loaded(seeing, release("0.26.0"), Layout(tensor=8)) - bare == pytest.approx(1)
    pixtral = replace(seeing, model_type="mistral3")
    assert loaded(pixtral, release("0.26.0"), Layout(tensor=8)) - bare == pytest.approx(8)
