"""Whole logs: which line is at the root, what follows from it, and what is said of a log in which nothing failed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from casemate.doctor.diagnose import Diagnosis, diagnose
from conftest import Optional
from house.source import ROOT

RECORDINGS = ROOT.parent / "shared" / "gpu" / "recordings"
READY = "(APIServer pid=1) INFO:     Application startup complete.\n"
ARGUMENTS = "(APIServer pid=1) INFO 06-01 10:00:00 [utils.py:233] non-default args: {'model': '/m', 'port': 8000}\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
DEAD = (
    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
)


def of(text: str | bytes) -> Diagnosis:
    return diagnose(io.BytesIO(text.encode() if isinstance(text, str) else text))


def error(process: str, text: str, *, where: str = "core.py:1330") -> str:
    return "".join(f"({process}) ERROR 06-01 10:00:01 [{where}] {line}\n" for line in text.split("\n"))


def rates(*, running: int = 2, tokens: float = 50.0, more: str = "") -> str:
    return (
        "(APIServer pid=1) INFO 06-01 10:00:10 [loggers.py:310] Engine 000: Avg prompt throughput: 900.0 tokens/s, "
        f"Avg generation throughput: {tokens} tokens/s, Running: {running} reqs, Waiting: 0 reqs, "
        f"GPU KV cache usage: 4.3%, Prefix cache hit rate: 31.0%{more}\n"
    )


@pytest.mark.parametrize(
    ("name", "id_", "line", "told"),
    [
        ("died-module-missing.log", "cutlass-dsl-mismatch", 152, "No module named 'cutlass.base_dsl.enums'"),
        ("died-dummy-assert.log", "dummy-load-assert", 94, "hc_attn_fn_broadcast is not None"),
    ],
)
def test_a_recorded_death_leads_to_the_line_at_its_root(
    optional: Optional, name: str, id_: str, line: int, told: str
) -> None:
    root = _recorded(optional, name).root
    assert root is not None
    assert (root.id, root.line) == (id_, line)
    assert told in root.quote + root.code
    assert root.process.startswith("Worker_TP0_EP0")


@pytest.mark.parametrize("name", ["tp2-ep.log", "tp2-ep-first-requests.log"])
def test_a_recorded_healthy_start_is_healthy_and_tells_what_makes_it_slower(optional: Optional, name: str) -> None:
    told = _recorded(optional, name)
    assert told.verdict == "healthy"
    assert told.root is None
    assert "jit-during-inference" in [one.id for one in told.findings if one.standing == "degraded"]
    assert not [one for one in told.findings if one.standing in ("cause", "symptom", "unrecognised")]


def test_a_recorded_start_that_the_log_does_not_see_to_its_end_is_not_called_healthy(optional: Optional) -> None:
    told = _recorded(optional, "pp2-eager.log")
    assert told.verdict == "unfinished"
    assert "eager-mode" in [one.id for one in told.findings]


def test_wrappers_alone_say_that_the_cause_is_not_in_the_log() -> None:
    told = of(DEAD)
    assert told.verdict == "failed"
    assert told.root is not None
    assert told.root.id == "cause-not-in-log"


def test_the_worker_of_a_rank_is_found_between_the_lines_of_the_others() -> None:
    first, second = "Worker_TP0 pid=10", "Worker_TP1 pid=11"
    frames = ["Traceback (most recent call last):", '  File "/s/a.py", line 1, in f', "    step()"]
    lines = []
    for one, other in zip([*frames, OOM], [*frames, "RuntimeError: NCCL error: unhandled cuda error"], strict=True):
        lines += [error(second, other), error(first, one)]
    told = of("".join(lines) + error("EngineCore pid=5", "RuntimeError: Worker failed with error ''") + DEAD)
    assert told.root is not None
    assert (told.root.id, told.root.process) == ("cuda-oom", first)
    assert [one.standing for one in told.findings if one.id == "nccl-unhandled-cuda"] == ["symptom"]


def test_ranks_that_say_the_same_are_one_finding_with_their_number() -> None:
    told = of("".join(error(f"Worker_TP{rank} pid={rank}", OOM) for rank in range(4)))
    assert [(one.id, one.count, one.processes) for one in told.findings] == [("cuda-oom", 4, 4)]


def test_the_first_of_a_chain_by_direct_cause_is_the_root_of_an_unknown_failure() -> None:
    chain = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nzlib.error: bad block\n\n'
        "The above exception was the direct cause of the following exception:\n\n"
        'Traceback (most recent call last):\n  File "b.py", line 1, in h\n    f()\nfoo.LoadError: cannot start\n'
    )
    root = of(chain).root
    assert root is not None
    assert (root.id, root.quote, root.line, root.code) == ("unrecognised", "zlib.error: bad block", 4, "g()")
    assert "foo.LoadError: cannot start" in root.detail


def test_a_lookup_that_failed_is_not_the_root_of_what_was_raised_while_it_was_handled() -> None:
    chain = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    d[x]\nKeyError: 5\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "b.py", line 1, in h\n    f()\nfoo.Unknown: no such thing as 5\n'
    )
    root = of(chain).root
    assert root is not None
    assert root.quote == "foo.Unknown: no such thing as 5"


def test_a_source_line_that_names_an_error_in_a_traceback_is_no_finding() -> None:
    told = of(
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n'
        '    raise ValueError("No available memory for the cache blocks.")\nzlib.error: bad block\n'
    )
    assert [one.id for one in told.findings] == ["unrecognised"]


def test_what_a_prompt_quotes_in_a_line_of_level_info_is_no_finding() -> None:
    prompt = "INFO 06-01 10:00:00 [logger.py:40] Received request cmpl-1: prompt: 'why does it say CUDA out of memory?'"
    assert not of(ARGUMENTS + READY + prompt).findings


def test_the_out_of_memory_killer_explains_the_signal_and_the_dead_worker() -> None:
    told = of(
        error("EngineCore pid=5", "Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.")
        + "[88123.5] Out of memory: Killed process 4211 (VLLM::Worker_TP) total-vm:1kB\n"
        + "[88123.500000] Out of memory: Killed process 4211 (VLLM::Worker_TP) total-vm:1kB\n"
    )
    standings = {one.id: one.standing for one in told.findings}
    assert told.findings[0].id == "oom-killer"
    assert standings["exit-by-signal"] == "consequence"


def test_a_warning_that_explains_the_death_is_its_cause() -> None:
    told = of(
        "WARNING 06-01 10:00:00 [cuda.py:19] Failed to import from vllm._C with "
        "ImportError('libcudart.so.13: cannot open shared object file: No such file or directory')\n"
        "RuntimeError: Failed to infer device type\n"
    )
    assert next((one.id, one.standing) for one in told.findings) == ("cuda-library-missing", "cause")


def test_a_failure_after_which_tokens_flow_was_survived() -> None:
    told = of(ARGUMENTS + READY + error("APIServer pid=1", OOM) + rates() + rates())
    assert told.verdict == "healthy"
    assert [(one.id, one.standing) for one in told.findings] == [("runtime-oom", "survived")]


def test_an_error_of_one_request_does_not_make_the_server_failed() -> None:
    told = of(
        ARGUMENTS
        + READY
        + 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nfoo.BadRequest: no\n'
    )
    assert told.verdict == "healthy"
    assert [one.standing for one in told.findings] == ["survived"]


def test_the_last_launch_is_judged_and_the_ones_before_are_told() -> None:
    told = of(ARGUMENTS + error("EngineCore pid=5", OOM) + DEAD + ARGUMENTS + READY + rates())
    assert (told.verdict, told.launches) == ("healthy", 2)
    assert [(one.id, one.cause_line) for one in told.earlier] == [("cuda-oom", 2)]


def test_a_launch_that_only_began_leaves_the_judgement_to_the_one_before() -> None:
    told = of(ARGUMENTS + error("EngineCore pid=5", OOM) + DEAD + ARGUMENTS)
    assert told.verdict == "failed"
    assert told.root is not None
    assert told.root.id == "cuda-oom"
    assert "not finished" in told.note


def test_what_came_long_before_the_death_ranks_below_what_was_near_it() -> None:
    filler = "DEBUG 06-01 10:00:00 [a.py:1] step\n" * 4000
    late = "RuntimeError: CUDA error: an illegal memory access was encountered"
    told = of(error("EngineCore pid=5", OOM) + filler + error("EngineCore pid=5", late) + DEAD)
    assert [one.id for one in told.findings][:2] == ["illegal-memory-access", "cuda-oom"]


def test_a_log_of_nothing_that_is_known_says_so() -> None:
    assert of("").verdict == "unknown"
    assert of("hello\nworld\n").verdict == "unknown"


def test_a_secret_in_a_quoted_line_is_masked() -> None:
    root = of("vllm: error: unrecognized arguments: --api-key sk-1234567890abcdef1234 --frobnicate\n").root
    assert root is not None
    assert "1234567890" not in root.quote
    assert "--frobnicate" in root.quote


@pytest.mark.parametrize(
    ("samples", "id_"),
    [
        (rates(running=4, tokens=0.0).replace("900.0", "0.0") * 3, "stalled"),
        (rates(more=", Preemptions: 7").replace("GPU KV", "Preemptions: 7, GPU KV"), "preemptions"),
        (rates().replace("31.0%", "0.0%") * 5, "prefix-cache-zero"),
        (rates().replace("Waiting: 0", "Waiting: 9").replace("4.3%", "99.1%") * 5, "cache-full"),
    ],
)
def test_what_no_single_line_shows_is_found_in_the_figures(samples: str, id_: str) -> None:
    told = of(ARGUMENTS + READY + samples)
    assert told.verdict == "healthy"
    assert id_ in [one.id for one in told.findings]
    assert id_ not in [one.id for one in of(ARGUMENTS + READY + rates() * 5).findings]


def _recorded(optional: Optional, name: str) -> Diagnosis:
    optional("the recordings of real runs are not beside this checkout", (RECORDINGS / name).is_file())
    with Path(RECORDINGS / name).open("rb") as stream:
        return diagnose(stream)
