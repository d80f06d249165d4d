"""Lines that were judged wrongly once: what another program holds, what a client says, which tool is missing."""

from __future__ import annotations

import io

import pytest

from casemate.doctor.diagnose import Diagnosis, diagnose
from casemate.doctor.log.ranking import FAILED

ARGUMENTS = "(APIServer pid=1) INFO 06-01 10:00:00 [utils.py:233] non-default args: {'model': '/m'}\n"
READY = ARGUMENTS + "(APIServer pid=1) INFO:     Application startup complete.\n"
LLAMA = "build: 6123 (79c1160b) with cc\nmain: loading model\nmain: server is listening on http://127.0.0.1:8080\n"
SCARY = "CUDA error: an illegal memory access was encountered; Segmentation fault; Out of memory: Killed process 1"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 272.00 MiB. GPU 1 has a total capacity of 79.11 GiB "
    "of which 146.94 MiB is free. Process 4242 has 50.10 GiB memory in use. Including non-PyTorch memory, this process "
    "has 28.85 GiB memory in use.\n"
)
MODEL = (
    "Traceback (most recent call last):\n"
    '  File "/s/vllm/model_executor/models/qwen3.py", line 280, in __init__\n'
    "    self.model = Qwen3Model(\n"
)


def of(text: str) -> Diagnosis:
    return diagnose(io.BytesIO(text.encode()))


def refused(need: float, have: float, fits: int, *, length: int = 131072) -> str:
    return (
        f"ValueError: To serve at least one request with the model's max seq len ({length}), ({need} GiB KV cache is "
        f"needed, which is larger than the available KV cache memory ({have} GiB). Based on the available memory, the "
        f"estimated maximum model length is {fits}.\n"
    )


@pytest.mark.parametrize(
    ("text", "id_", "line"),
    [
        (
            (
                "start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080\n"
                "main: exiting due to HTTP server error\n"
            ),
            "llama-bind-failed",
            1,
        ),
        ("error: invalid argument: --foo\n", "unknown-flag", 1),
        ('error while handling argument "-c": stoi\n', "llama-argument-value", 1),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'ninja'\n", "build-tool-missing", 1),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'nvcc'\n", "build-tool-missing", 1),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/usr/bin/c++'\n", "build-tool-missing", 1),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/m/ninja.json'\n", "file-missing", 1),
        (MODEL + OOM, "oom-other-process", 4),
        (MODEL + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n", "load-oom", 4),
        # A container's process names itself like this; it has no second owner.
        (MODEL + "torch.OutOfMemoryError: CUDA out of memory. Process 9 has 78.00 GiB memory in use.\n", "load-oom", 4),
    ],
)
def test_the_cause_is_the_one_that_helps(text: str, id_: str, line: int) -> None:
    root = of(text).root
    assert root is not None
    assert (root.id, root.line) == (id_, line)


def test_memory_that_another_process_holds_is_named_with_its_pid_and_the_stage() -> None:
    root = of(ARGUMENTS + MODEL + OOM).root
    assert root is not None
    assert root.detail == "pid 4242, held 50.10 GiB, own 28.85 GiB; seen as load-oom"
    assert root.fix.startswith("First free the card")


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        (
            (
                "!!!!!!! Segfault encountered !!!!!!!\n"
                '  File "<unknown>", line 0, in ncclTopoGetSystem\n  File "<unknown>", line 0, in ncclCommInitRank\n'
            ),
            'File "<unknown>", line 0, in ncclTopoGetSystem',
            2,
        ),
        (
            (
                "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f0 (most recent call first):\n"
                '  File "/s/triton/compiler.py", line 300 in make_llir\n'
            ),
            'File "/s/triton/compiler.py", line 300 in make_llir',
            4,
        ),
        ("!!!!!!! Segfault encountered !!!!!!!\nnothing\n", "", 0),
    ],
)
def test_a_crash_is_quoted_with_the_first_frame_of_its_native_stack(text: str, code: str, line: int) -> None:
    root = of(ARGUMENTS + text).root
    assert root is not None
    assert (root.id, root.line) == ("segfault", 2)
    assert (root.code, root.code_line) == (code, line + 1 if line else 0)


@pytest.mark.parametrize(
    "text",
    [
        LLAMA + f'srv  log_server_r: request:  {{"messages":[{{"role":"user","content":"{SCARY}"}}]}}\n',
        LLAMA + f'request:  {{"messages":[{{"role":"user","content":"{SCARY}"}}]}}\n',
        LLAMA + f'srv  log_server_r: response: {{"choices":[{{"text":"{SCARY}"}}]}}\n',
        LLAMA + f'srv    operator(): http: streamed chunk: data: {{"choices":[{{"text":"{SCARY}"}}]}}\n',
        LLAMA + f"srv  update_chat_: Parsing chat message: {SCARY}\n",
        READY + f"(APIServer pid=1) INFO 06-01 10:03:00 [l.py:4] Received request c-1: prompt: '{SCARY}', params: x\n",
        READY + f"(APIServer pid=1) INFO 06-01 10:03:00 [l.py:9] Generated response c-1: output: '{SCARY}'\n",
        READY + f"(APIServer pid=1) DEBUG 06-01 10:03:00 [l.py:9] body {{'prompt': '{SCARY}'}}\n",
    ],
)
def test_what_a_client_or_a_model_says_is_no_failure(text: str) -> None:
    told = of(text)
    assert told.verdict == "healthy"
    assert not [one for one in told.findings if one.standing in (*FAILED, "survived")]


@pytest.mark.parametrize("text", [LLAMA + SCARY + "\n", READY + SCARY + "\n"])
def test_the_same_words_said_by_the_engine_are_a_failure(text: str) -> None:
    assert of(text).verdict == "failed"


def test_a_llama_server_that_answers_afterwards_survived() -> None:
    told = of(LLAMA + "CUDA error: out of memory\nsrv  log_server_r: request: POST /v1/completions 127.0.0.1 200\n")
    assert told.verdict == "healthy"
    refused_later = of(LLAMA + "CUDA error: out of memory\nsrv  log_server_r: request: POST /v1/x 127.0.0.1 500\n")
    assert refused_later.verdict == "failed"


def test_a_need_in_proportion_to_the_context_is_met_by_the_length_that_the_log_names() -> None:
    root = of(ARGUMENTS + refused(24.0, 11.37, 62096)).root
    assert root is not None
    assert root.fix.startswith("In this order: --max-model-len 62096")
    order = [root.fix.index(flag) for flag in ("--max-model-len", "--gpu-memory-util", "fp8", "--tensor-parallel")]
    assert order == sorted(order)
    assert "in proportion" in root.detail
    assert "-0.0" not in root.detail


def test_a_need_with_a_large_fixed_part_is_met_by_fewer_batched_tokens_first() -> None:
    told = of(ARGUMENTS + refused(6.66, 5.44, 1000, length=30000))
    assert told.root is not None
    assert "first lower --max-num-batched-tokens" in told.root.fix
    assert "need = 5." in told.root.detail


@pytest.mark.parametrize(("need", "have", "fits"), [(24.0, 11.37, 62110), (16.0, 8.0, 65536), (16.0, 15.99, 131056)])
def test_no_fixed_part_is_below_zero(need: float, have: float, fits: int) -> None:
    told = of(ARGUMENTS + refused(need, have, fits))
    assert (told.facts.shortages[-1].fixed_gib or 0) >= 0
    assert told.root is not None
    assert "-0." not in told.root.detail
