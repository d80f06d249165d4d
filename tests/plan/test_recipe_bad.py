"""Bad commands: each judgement with one command that earns it, and a corrected one that earns nothing."""

from __future__ import annotations

import pytest

from casemate.finding import Severity
from casemate.plan.recipe.judging import Ground
from casemate.plan.recipe.mending import command as told
from plan.recipes import ground, judged

_V4 = "vllm serve m --tensor-parallel-size 2 "
_MTP = """--speculative-config '{"method": "mtp", "num_speculative_tokens": 2}'"""
_DSPARK = """--speculative-config '{"method": "dspark", "num_speculative_tokens": 7}'"""

# command | flag or variable | kind | engine version, model, host where they matter
_BAD = [
    # what the parser refuses
    ("vllm serve m --max-model-length 4096", "--max-model-length", "never_existed", ""),
    ("vllm serve m --max-num-prompt-tokens 32768", "--max-num-prompt-tokens", "never_existed", ""),
    ("vllm serve m --tp-size 2", "--tp-size", "never_existed", ""),
    ("vllm serve m --mem-fraction-static 0.8", "--mem-fraction-static", "never_existed", ""),
    ("vllm serve m --swap-space 16", "--swap-space", "removed", ""),
    ("vllm serve m --num-scheduler-steps 8", "--num-scheduler-steps", "removed", ""),
    ("vllm serve m --disable-log-requests", "--disable-log-requests", "removed", "0.32.0"),
    ("vllm serve m --device cuda", "--device", "removed", "0.26.0"),
    ("vllm serve m --guided-decoding-backend xgrammar", "--guided-decoding-backend", "removed", ""),
    ("vllm serve m --enable-reasoning --reasoning-parser deepseek_r1", "--enable-reasoning", "removed", ""),
    ("vllm serve m --task embed", "--task", "removed", ""),
    ("vllm serve m --rope-theta 1000000", "--rope-theta", "removed", ""),
    ("vllm serve m --calculate-kv-scales", "--calculate-kv-scales", "removed", ""),
    ("vllm serve m --moe-backend marlin", "--moe-backend", "not_yet", "0.13.0"),
    ("vllm serve m --no-enable-prefix-caching", "--no-enable-prefix-caching", "not_yet", "0.6.3"),
    ("vllm serve m --max 5", "--max", "ambiguous", ""),
    ("vllm serve m --kv-cache-dtype fp7", "--kv-cache-dtype", "value_invalid", "0.26.0"),
    ("vllm serve m --block-size 256", "--block-size", "value_invalid", "0.6.3"),
    ("vllm serve m --max-num-seqs many", "--max-num-seqs", "value_invalid", ""),
    ("vllm serve m --max-num-batched-tokens 1.5K", "--max-num-batched-tokens", "value_invalid", ""),
    ("vllm serve m --compilation-config {mode:3}", "--compilation-config", "value_invalid", ""),
    ("vllm serve m --enforce-eager=true", "--enforce-eager", "value_invalid", ""),
    ("vllm serve m --tensor-parallel-size --port 1", "--tensor-parallel-size", "value_invalid", ""),
    ("vllm serve m --port.number 8000", "--port.number", "value_invalid", ""),
    ("vllm serve m --enable-auto-tool-choice --tool-call-parser hermes2", "--tool-call-parser", "value_invalid", ""),
    ("vllm serve m --quantization awq4", "--quantization", "value_invalid", ""),
    ("vllm serve m --enable-prefix-caching true", "--enable-prefix-caching", "value_invalid", ""),
    # what goes, or stands in each other's way
    ("vllm serve --model m", "--model", "deprecated", ""),
    ("vllm serve m --disable-cascade-attn", "--disable-cascade-attn", "deprecated", ""),
    ("vllm serve m --port 1 --port 2", "--port", "contradictory", ""),
    ("vllm serve m --enable-prefix-caching --no-enable-prefix-caching", "--enable-prefix-caching", "contradictory", ""),
    ("vllm serve m --uds x.sock --port 8000", "--port", "contradictory", ""),
    ("vllm serve m --headless --api-server-count 2", "--api-server-count", "contradictory", ""),
    ("vllm serve m --kv-cache-memory-bytes 8G --gpu-memory-utilization 0.9", "--gpu-memory-utilization",
     "contradictory", ""),
    ("vllm serve m --max-num-seqs 512 --max-num-batched-tokens 256", "--max-num-seqs", "contradictory", ""),
    (
        "vllm serve m --no-enable-chunked-prefill --max-num-batched-tokens 2048 --max-model-len 8192",
        "--no-enable-chunked-prefill", "contradictory", "",
    ),
    # what does harm, or nothing
    ("vllm serve m --enforce-eager", "--enforce-eager", "harmful", ""),
    ("vllm serve m --disable-log-stats", "--disable-log-stats", "harmful", ""),
    ("vllm serve m --cpu-offload-gb 35", "--cpu-offload-gb", "harmful", ""),
    ("vllm serve m --cpu-offload-gb 4", "--cpu-offload-gb", "harmful", " dense hopper"),
    ("vllm serve m --num-gpu-blocks-override 9000", "--num-gpu-blocks-override", "harmful", ""),
    ("vllm serve m --gpu-memory-utilization 0.995", "--gpu-memory-utilization", "harmful", ""),
    ("vllm serve m --gpu-memory-utilization 90", "--gpu-memory-utilization", "value_invalid", ""),
    ("vllm serve m --max-num-seqs 4096", "--max-num-seqs", "harmful", ""),
    ("vllm serve m --swap-space 16", "--swap-space", "needless", "0.13.0"),
    ("vllm serve m --disable-log-requests", "--disable-log-requests", "needless", ""),
    ("vllm serve m --enable-expert-parallel", "--enable-expert-parallel", "needless", " dense"),
    (
        "vllm serve m --max-num-batched-tokens 4096 --max-model-len 32768",
        "--max-num-batched-tokens", "refused", "0.6.3",
    ),
    ("vllm serve m --max-model-len 200000", "--max-model-len", "refused", " dense"),
    ("vllm serve m --max-model-len 100000", "--max-model-len", "refused", " dense small"),
    ("vllm serve m --enable-auto-tool-choice", "--enable-auto-tool-choice", "refused", ""),
    # formats
    (_V4 + "--quantization fp8", "--quantization", "wrong_belief", " v4"),
    (_V4 + "--dtype half", "--dtype", "refused", " v4"),
    ("vllm serve m --dtype float16", "--dtype", "harmful", " dense hopper"),
    (_V4 + "--kv-cache-dtype bfloat16", "--kv-cache-dtype", "refused", " v4"),
    (_V4 + "--block-size 32", "--block-size", "refused", " v4"),
    # cards
    ("vllm serve m --pipeline-parallel-size 2", "--pipeline-parallel-size", "wrong_belief", ""),
    ("vllm serve m -pp 2 " + _DSPARK, "-pp", "refused", " 0731 unlinked"),
    ("vllm serve m -tp 6", "-tp", "refused", " dense"),
    ("vllm serve m -tp 8", "-tp", "refused", "  hopper"),
    ("CUDA_VISIBLE_DEVICES=0 vllm serve m -tp 2", "CUDA_VISIBLE_DEVICES", "contradictory", ""),
    ("NCCL_P2P_DISABLE=1 vllm serve m -tp 2", "NCCL_P2P_DISABLE", "needless", "  hopper"),
    (_V4 + "--moe-backend deep_gemm_mega_moe", "--moe-backend", "refused", " v4 hopper"),
    (_V4 + "--attention-config.use_fp4_indexer_cache true --attention-config '{\"use_fp4_indexer_cache\": true}'",
     "--attention-config", "refused", " v4 hopper"),
    # drafts
    (_V4 + _MTP, "--speculative-config", "refused", " 0731"),
    (_V4 + _MTP, "--speculative-config", "refused", " v4 hopper"),
    (_V4 + _DSPARK, "--speculative-config", "refused", " v4"),
    ("vllm serve m " + _MTP, "--speculative-config", "refused", " dense"),
    # who can reach it
    ("vllm serve m --host 0.0.0.0", "--host", "exposed", ""),
    ("vllm serve m --host ::", "--host", "exposed", ""),
    ("vllm serve m --api-key sk-example", "--api-key", "exposed", ""),
    ("vllm serve m --hf-token hf_example", "--hf-token", "exposed", ""),
    ("vllm serve m --trust-remote-code", "--trust-remote-code", "exposed", ""),
    ("vllm serve m --tool-server demo", "--tool-server", "exposed", ""),
    ("vllm serve m --trust-request-chat-template", "--trust-request-chat-template", "exposed", ""),
    # surroundings
    ("python -m vllm.entrypoints.api_server --model m", "", "removed", ""),
    ("python -m vllm.entrypoints.api_server --model m", "", "harmful", "0.11.2"),
    ("CUDA_LAUNCH_BLOCKING=1 vllm serve m", "CUDA_LAUNCH_BLOCKING", "harmful", ""),
    ("VLLM_USE_V1=0 vllm serve m", "VLLM_USE_V1", "removed", ""),
    ("VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve m", "VLLM_ATTENTION_BACKEND", "removed", ""),
    ("VLLM_TURBO=1 vllm serve m", "VLLM_TURBO", "never_existed", ""),
    ("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128 vllm serve m", "PYTORCH_CUDA_ALLOC_CONF", "wrong_belief", ""),
    ("TORCH_CUDA_ARCH_LIST=8.6 vllm serve m", "TORCH_CUDA_ARCH_LIST", "harmful", "  hopper"),
    ("VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 vllm serve m", "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "harmful", ""),
]  # fmt: skip


@pytest.mark.parametrize(("command", "flag", "kind", "by"), _BAD)
def test_a_bad_word_is_named_with_its_kind_and_a_reason_and_source(command: str, flag: str, kind: str, by: str) -> None:
    report = judged(command, _ground(by))
    found = [problem for problem in report.problems if (problem.flag, problem.kind) == (flag, kind)]
    assert found, [(problem.flag, problem.kind.value, problem.says) for problem in report.problems]
    assert len(found[0].says) > 20
    assert found[0].source
    assert not report.clean


@pytest.mark.parametrize(("command", "flag", "kind", "by"), _BAD)
def test_the_corrected_command_has_no_problem_any_more_and_starts_with_vllm_serve(
    command: str, flag: str, kind: str, by: str
) -> None:
    ground_ = _ground(by)
    corrected = judged(command, ground_).corrected
    assert [word.text for word in corrected.program] == ["vllm", "serve"]
    assert _left(told(corrected), ground_) == [], told(corrected)


@pytest.mark.parametrize(
    ("command", "corrected"),
    [
        ("vllm serve m --tp-size 2 --port 8000", "vllm serve m --port 8000 --tensor-parallel-size 2"),
        ("vllm serve m --max-model-ln 4096", "vllm serve m --max-model-len 4096"),
        ("vllm serve --model m --seed 7", "vllm serve m --seed 7"),
        ("vllm serve m -pp 2 -tp 1", "vllm serve m --tensor-parallel-size 2"),
        ("vllm serve m --gpu-memory-utilization 90", "vllm serve m --gpu-memory-utilization 0.9"),
        ("vllm serve m --api-key sk-example", "VLLM_API_KEY=${VLLM_API_KEY:?} vllm serve m"),
        ("vllm serve m --port $PORT --enforce-eager", "vllm serve m --port $PORT"),
        (
            "vllm serve m --guided-decoding-backend xgrammar",
            "vllm serve m --structured-outputs-config.backend xgrammar",
        ),
        ("python -m vllm.entrypoints.openai.api_server --model m --enforce-eager", "vllm serve m"),
        ("--disable-log-stats --seed 1", "vllm serve MODEL --seed 1"),
        ("VLLM_USE_V1=0 HF_HOME='/a b' vllm serve m", "HF_HOME='/a b' vllm serve m"),
    ],
)
def test_the_correction_keeps_what_was_sound_and_replaces_the_rest(command: str, corrected: str) -> None:
    assert told(judged(command).corrected) == corrected


def test_a_model_that_fits_no_card_here_is_told_as_open_and_the_command_is_not_called_right() -> None:
    report = judged("vllm serve m --max-model-len 100000", ground(model="dense", machine="tiny"))
    assert not report.clean
    assert [problem.kind for problem in report.open] == ["refused"]
    assert "GiB are missing" in report.open[0].says


def test_there_is_a_command_for_each_of_at_least_forty_judgements() -> None:
    assert len({(flag, kind) for _, flag, kind, _ in _BAD}) >= 40


def _ground(by: str) -> Ground:
    version, model, machine = ([*by.split(" "), "", ""])[:3]
    return ground(version or "0.33.0", model, machine)


def _left(text: str, by: Ground) -> list[str]:
    report = judged(text, by)
    left = (problem for problem in report.problems if problem.severity is not Severity.INFO)
    return [f"{problem.flag}: {problem.says}" for problem in left if problem.mend is not None]
