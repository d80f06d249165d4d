"""Start-ups as vLLM prints them, of engines whose memory is known: the plan's arithmetic with other factors in it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

from casemate.checkpoint.facts import Checkpoint
from casemate.doctor.diagnose import diagnose
from casemate.doctor.log.facts import EngineLog
from casemate.plan.accounting import accounting
from casemate.plan.catalogue import chips
from casemate.plan.correction import NOTHING, Correction
from casemate.plan.decision import GIB
from casemate.plan.launch import Launch
from casemate.plan.memory import Budget, budget

CHIPS = chips(resources.files("casemate.plan").joinpath("cards.tsv").read_text("utf-8"))
H200_GIB = 139.8


@dataclass(frozen=True, slots=True)
class Box:
    """An engine on cards that take other factors than the plan guesses; `multicast` as the plan sees the cards."""

    truth: Correction
    version: str = "0.26.0"
    card_gib: float = H200_GIB
    multicast: bool = False

    def budget(self, checkpoint: Checkpoint, launch: Launch) -> Budget:
        """What that engine would measure."""
        rules = replace(accounting(self.version), correction=self.truth, capability=(9, 0))
        card_bytes = int(self.card_gib * GIB)
        return budget(checkpoint, launch, card_bytes=card_bytes, engine=rules, multicast=self.multicast)


def read(text: str) -> EngineLog:
    """The facts of a log's text."""
    return diagnose(io.BytesIO(text.encode())).facts


def printed(box: Box, checkpoint: Checkpoint, launch: Launch, *, without: Sequence[str] = (), **more: Any) -> str:
    """The log of a start-up, in the form of that release.

    Args:
        box: the engine and its cards.
        checkpoint: the model.
        launch: the values that it was started with.
        without: lines to leave out that hold one of these words.
        more: further arguments, as the engine prints them.
    """
    found = box.budget(checkpoint, launch)
    sizes = {
        name: f"{getattr(found, f'{name}_bytes') / GIB:.2f}" for name in ("weights", "graphs_real", "graphs", "kv")
    }
    layout = launch.layout
    arguments = {
        "model": "/m", "max_model_len": launch.context, "tensor_parallel_size": layout.tensor,
        "pipeline_parallel_size": layout.pipeline, "gpu_memory_utilization": launch.utilization,
        "max_num_batched_tokens": launch.batched_tokens, "max_num_seqs": launch.sequences,
        "kv_cache_dtype": launch.kv_dtype,
        **({"enable_expert_parallel": True} if layout.expert else {}), **more,
    }  # fmt: skip
    config = (
        f"with config: model='/m', dtype=torch.bfloat16, max_seq_len={launch.context}, tensor_parallel_size="
        f"{layout.tensor}, pipeline_parallel_size={layout.pipeline}, data_parallel_size=1, quantization=None,"
        f" enforce_eager={not launch.capture}, kv_cache_dtype={launch.kv_dtype}, device_config=cuda"
    )
    worker = "(Worker_TP0 pid=9) INFO 11-30 12:58:24 "
    lines = [
        f"(APIServer pid=7) INFO 11-30 12:57:06 [api_utils.py:345]   ▄▄ █  version {box.version}",
        f"(APIServer pid=7) INFO 11-30 12:57:06 [api_utils.py:273] non-default args: {arguments}",
        f"(APIServer pid=7) INFO 11-30 12:57:20 [model.py:550] Resolved architecture: {checkpoint.architecture}",
        f"(EngineCore pid=8) INFO 11-30 12:57:50 [core.py:116] Initializing a V1 LLM engine (v{box.version}) {config}",
        f"{worker}[gpu_model_runner.py:5347] Model loading took {sizes['weights']} GiB memory and 4.12 seconds",
        *([f"{worker}[gpu_model_runner.py:6737] Estimated CUDA graph memory: {sizes['graphs']} GiB total"]
          if launch.capture and found.graphs_bytes else []),
        f"{worker}[gpu_worker.py:560] Available KV cache memory: {sizes['kv']} GiB",
        *([f"{worker}[gpu_model_runner.py:6844] Graph capturing finished in 34 secs, took {sizes['graphs_real']} GiB"]
          if launch.capture else []),
        f"{worker}[gpu_worker.py:857] {_usage(box, launch, found)}",
    ]  # fmt: skip
    return "\n".join(line for line in lines if not any(word in line for word in without)) + "\n"


def throughput(rows: Sequence[tuple[float, float, int, int, float]]) -> str:
    """Throughput lines: prompt and generated tokens a second, requests running and waiting, per cent of the cache."""
    return "".join(
        f"(APIServer pid=7) INFO 11-30 13:{at // 60:02}:{at % 60:02} [loggers.py:310] Engine 000: Avg prompt"
        f" throughput: {prompt:.1f} tokens/s, Avg generation throughput: {generation:.1f} tokens/s, Running: {running}"
        f" reqs, Waiting: {waiting} reqs, GPU KV cache usage: {usage:.1f}%, Prefix cache hit rate: 0.0%\n"
        for at, (prompt, generation, running, waiting, usage) in zip(range(0, 3600, 10), rows, strict=False)
    )


def truth(**factors: Any) -> Correction:
    """Factors of a box; what is not named is as the plan guesses."""
    return replace(NOTHING, date="2026-11-30", **factors)


def _usage(box: Box, launch: Launch, found: Budget) -> str:
    """The line that sums up, in the words of the release."""
    requested = f"{box.card_gib * launch.utilization:.2f}"
    peak, weights, other = (size / GIB for size in (found.activation_bytes, found.weights_bytes, found.other_bytes))
    if accounting(box.version).counts_leftovers:
        used = (
            f"{weights + other:.2f} GiB for consumed memory (weights + non-torch),"
            f" {peak + found.graphs_bytes / GIB:.2f} GiB for peak activation"
        )
    else:
        used = f"{weights:.2f} GiB for weight, {peak:.2f} GiB for peak activation, {other:.2f} GiB for non-torch memory"
    return (
        f"Free memory on device ({box.card_gib - 1.94:.2f}/{box.card_gib:g} GiB) on startup. Desired GPU memory"
        f" utilization is ({launch.utilization:g}, {requested} GiB). Actual usage is {used}, and"
        f" {found.graphs_real_bytes / GIB:.2f} GiB for CUDAGraph memory."
    )
