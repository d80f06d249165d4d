"""Sound recipes, in the forms in which engines' users publish them: none of them may raise an alarm."""

from __future__ import annotations

import pytest

from casemate.finding import Severity
from plan.recipes import ground, judged

_V4 = "deepseek-ai/DeepSeek-V4-Flash"

_GOOD = {
    "the smallest": ("vllm serve Qwen/Qwen3-0.6B", ""),
    "V4 preview, tensor and expert parallel, one drafted token": (
        (
            f"vllm serve {_V4} -tp 2 --enable-expert-parallel --kv-cache-dtype fp8 --block-size 256 "
            "--max-model-len 131072 --max-num-batched-tokens 2048 --max-num-seqs 16 --gpu-memory-utilization 0.95 "
            "--tokenizer-mode deepseek_v4 --reasoning-parser deepseek_v4 --tool-call-parser deepseek_v4 "
            """--enable-auto-tool-choice --speculative-config '{"method":"mtp","num_speculative_tokens":1}' """
            "--no-enable-flashinfer-autotune"
        ),
        " v4 hopper",
    ),
    "V4 with its draft on four cards": (
        (
            f"vllm serve {_V4}-0731 --tensor-parallel-size 4 --enable-expert-parallel --kv-cache-dtype fp8 "
            """--speculative-config '{"method":"dspark","num_speculative_tokens":7}' """
            """--default-chat-template-kwargs '{"thinking": true, "reasoning_effort": "low"}' """
            "--max-cudagraph-capture-size 16"
        ),
        " 0731",
    ),
    "graphs and operators set by JSON": (
        (
            f"vllm serve {_V4} --data-parallel-size 4 --enable-expert-parallel "
            """--compilation-config '{"cudagraph_mode":"FULL_AND_PIECEWISE","custom_ops":["all"]}'"""
        ),
        "",
    ),
    "keys of JSON one by one, and a level": (
        (
            "vllm serve meta-llama/Llama-3.1-8B-Instruct -O3 --compilation-config.cudagraph_mode FULL "
            "--kv-transfer-config.kv_connector NixlConnector --kv-transfer-config.kv_role kv_both"
        ),
        "",
    ),
    "numbers with suffixes, automatic length": (
        "vllm serve google/gemma-3-27b-it --max-model-len auto --max-num-batched-tokens 8k --kv-cache-memory-bytes 20G",
        "",
    ),
    "underscores and a prefix of a name": (
        (
            "vllm serve mistralai/Mistral-Small --max_model_len 32768 --tensor_parallel_size 2 --gpu-memory-util 0.9 "
            "--tokenizer_mode mistral --config_format mistral --load_format mistral"
        ),
        "",
    ),
    "a multimodal model": (
        (
            'vllm serve Qwen/Qwen2.5-VL-7B-Instruct --limit-mm-per-prompt \'{"image": 4, "video": 0}\' '
            "--mm-encoder-tp-mode data --allowed-local-media-path /data/images"
        ),
        "",
    ),
    "an embedding model": ("vllm serve BAAI/bge-m3 --runner pooling --convert embed --max-model-len 8192", ""),
    "adapters": (
        (
            "vllm serve meta-llama/Llama-3.1-8B-Instruct --enable-lora --max-loras 4 --max-lora-rank 32 "
            "--lora-modules one=/adapters/one two=/adapters/two"
        ),
        "",
    ),
    "stages over two hosts by Ray": (
        "vllm serve big/model --tensor-parallel-size 8 --pipeline-parallel-size 2 --distributed-executor-backend ray",
        "",
    ),
    "stages where cards cannot reach each other": ("vllm serve m --pipeline-parallel-size 2", "  unlinked"),
    "quantized while loading": ("vllm serve meta-llama/Llama-3.1-70B --quantization fp8 -tp 4", " dense"),
    "float16 on an old card": ("vllm serve m --dtype half --max-model-len 8192 -tp 2", " dense turing"),
    "a container, listening inside it": (
        (
            "docker run --gpus all --ipc=host -p 127.0.0.1:8000:8000 -v hub:/hub -e HF_TOKEN=$HF_TOKEN "
            "vllm/vllm-openai:v0.26.0 --model openai/gpt-oss-120b --host 0.0.0.0 --async-scheduling "
            "--tool-call-parser openai --enable-auto-tool-choice"
        ),
        "0.26.0",
    ),
    "the module of the server, with variables": (
        (
            "VLLM_ENGINE_READY_TIMEOUT_S=3600 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True "
            "python3 -m vllm.entrypoints.openai.api_server --model m --tensor-parallel-size 2 --served-model-name a b "
            "--host 127.0.0.1 --port 8000"
        ),
        "",
    ),
    "a script whose values are variables": (
        (
            'set -eu\nexport VLLM_API_KEY="$KEY"\nexec vllm serve "$MODEL" --port "${PORT:-8000}" \\\n'
            "  --max-model-len $LENGTH -tp $(nproc)  # all cards\n"
        ),
        "",
    ),
    "an old version with its own flags": (
        (
            "vllm serve m --disable-log-requests --enable-chunked-prefill --max-num-batched-tokens 2048 "
            "--max-model-len 8192 --num-scheduler-steps 8 --swap-space 4"
        ),
        "0.6.3",
    ),
    "Blackwell's own back end": (f"vllm serve {_V4} -tp 2 --moe-backend deep-gemm-mega-moe", " v4 blackwell"),
    "a dense model on two cards": ("vllm serve m -tp 2 --max-model-len 32k --max-num-seqs 64", " dense hopper"),
}


@pytest.mark.parametrize("name", _GOOD)
def test_a_sound_recipe_raises_no_alarm_and_comes_back_whole(name: str) -> None:
    text, by = _GOOD[name]
    version, model, machine = ([*by.split(" "), "", ""])[:3]
    report = judged(text, ground(version or "0.33.0", model, machine))
    loud = [problem for problem in report.problems if problem.severity is not Severity.INFO]
    assert [f"{problem.flag}: {problem.says}" for problem in loud] == []
    assert report.clean
    kept = sorted(word.text for word in report.corrected.arguments if word.text != "--model")
    named = [word.text for word in report.launch.arguments if word.text != "--model"]
    assert kept == sorted(named)


def test_there_are_at_least_fifteen() -> None:
    assert len(_GOOD) >= 15
