"""Which of several lines that tell of one failure is the one to quote."""

from __future__ import annotations

import io

import pytest

from casemate.doctor.diagnose import Diagnosis, diagnose

FRAMES = 'Traceback (most recent call last):\n  File "/s/a.py", line 1, in f\n    step()\n'
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"
DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"
DEAD = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n"
LOADING = "(EngineCore pid=5) INFO 06-01 10:00:00 [gpu_model_runner.py:46] Starting to load model /m...\n"
WATCHDOG = (
    "[rank1]:[E601 10:00:00.000000000 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600059 milliseconds\n"
)
ABORTED = (
    "[rank1]:[E601 10:00:00.100000000 ProcessGroupNCCL.cpp:681] [Rank 1] Some NCCL operations have failed.\n"
    "terminate called after throwing an instance of 'c10::DistBackendError'\n"
    "frame #3: c10d::ProcessGroupNCCL::ncclCommWatchdog() + 0x10c (0x7176e4fb031c in libtorch_cuda.so)\n"
)
DOCKER = (
    "docker: Error response from daemon: failed to create task for container: OCI runtime create failed: runc "
    "create failed: error running prestart hook #0: exit status 1, stderr: nvidia-container-cli: device error: "
    "MIG-7a1f2c31-0000-1111-2222-333344445555: unknown device: unknown\n"
)
KERNEL = "Jun 01 10:00:00 gpu01 kernel: NVRM: Xid (PCI:0000:3b:00): "


def of(text: str) -> Diagnosis:
    return diagnose(io.BytesIO(text.encode()))


def error(process: str, text: str, where: str = "core.py:1330") -> str:
    return "".join(f"({process}) ERROR 06-01 10:00:01 [{where}] {line}\n" for line in text.rstrip("\n").split("\n"))


def root(text: str) -> tuple[str, int]:
    told = of(text)
    assert told.verdict == "failed"
    assert told.root is not None
    return told.root.id, told.root.line


@pytest.mark.parametrize(
    ("text", "id_", "line"),
    [
        (WATCHDOG + ABORTED + error("EngineCore pid=5", FRAMES + "RuntimeError: cancelled"), "nccl-timeout", 1),
        ("TimeoutError: RPC call to execute_model timed out.\n" + WATCHDOG + ABORTED, "nccl-timeout", 2),
        (
            KERNEL + "63, pid=7, name=python3, Row Remapper: marked\n" + KERNEL + "94, pid=7, Contained: SM (0x1)\n"
            "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\n",
            "xid-hardware",
            2,
        ),
        (
            DOCKER,
            "container-unknown-device",
            1,
        ),
        (
            "2026-06-01 10:00:01,123 WARNING worker.py:2037 -- The node with node id: 5ba1 and address: 10.0.0.6 and "
            "node "
            "name 6 is marked dead because the detector has missed too many heartbeats.\n"
            + error("EngineCore pid=5", FRAMES + "ray.exceptions.ActorDiedError: The actor died unexpectedly")
            + DEAD,
            "ray-node-lost",
            1,
        ),
        (
            FRAMES + "KeyError: 'qwen9'\n" + DURING + FRAMES + "ValueError: The checkpoint you are trying to load has "
            "model type `qwen9` but Transformers does not recognize this architecture.\n",
            "transformers-unknown-model",
            11,
        ),
        (LOADING + error("EngineCore pid=5", "EngineCore failed to start.\n" + FRAMES + "SystemExit") + "(APIServer "
         "pid=1) KeyboardInterrupt: terminated\n", "stopped-before-ready", 7),
    ],
)  # fmt: skip
def test_the_line_that_names_the_cause_is_the_root(text: str, id_: str, line: int) -> None:
    assert root(text) == (id_, line)


def test_an_unknown_failure_before_a_symptom_is_the_root_and_after_it_is_not() -> None:
    unknown = error("Worker_TP0 pid=9", FRAMES + "foo.Broken: gear 5")
    assert root(unknown + WATCHDOG) == ("unrecognised", 4)
    assert root(WATCHDOG + unknown) == ("nccl-timeout", 1)


def test_a_line_that_announces_a_traceback_is_not_its_root() -> None:
    told = of(error("Worker pid=9", "The thing of step 5 went wrong.\n" + FRAMES + "foo.Broken: gear 5"))
    assert [(one.id, one.line) for one in told.findings] == [("unrecognised", 5)]


@pytest.mark.parametrize("stray", ["gpu01:77:77 [0] NCCL INFO Bootstrap : Using eth0", "Killed", "note: core 5", "}"])
def test_another_programs_line_inside_a_traceback_does_not_end_it(stray: str) -> None:
    told = of(FRAMES + stray + '\n  File "/s/b.py", line 2, in g\n    turn()\nfoo.Broken: gear 5\n')
    assert [one.line for one in told.findings if one.quote.startswith("foo.Broken")] == [7]


@pytest.mark.parametrize(
    "line",
    ['  File "/s/a.py", line 1, in f', "frame #3: c10::Error()", "    raise ValueError(x)", "Stack trace: none", "",
     "Dumping scheduler output for model execution: SchedulerOutput(scheduled_new_reqs=[NewRequestData(req_id=1)])"],
)  # fmt: skip
def test_a_line_of_a_stack_or_of_a_structure_is_no_failure(line: str) -> None:
    assert not of(error("EngineCore pid=5", line)).findings


def test_a_warning_gives_its_place_to_the_exception_that_says_the_same() -> None:
    warned = (
        "WARNING 06-01 10:00:02 [ray_utils.py:63] "
        "The number of required GPUs exceeds the total number of available GPUs in the placement group.\n"
    )
    assert root(warned + error("EngineCore pid=5", FRAMES + "ValueError: Cannot provide a placement group")) == (
        "ray-too-few-cards",
        5,
    )


def test_a_chain_of_one_cause_is_told_by_its_last_explanation() -> None:
    first = "huggingface_hub.errors.GatedRepoError: 401 Client Error.\n"
    assert root(FRAMES + first + DIRECT + FRAMES + "OSError: You are trying to access a gated repo.\n") == (
        "hub-gated",
        11,
    )


def test_a_supervisor_that_ends_a_healthy_engine_slowly_leaves_it_healthy() -> None:
    told = of(
        "(APIServer pid=1) INFO:     Application startup complete.\n"
        "Jun 01 10:00:01 gpu01 systemd[1]: vllm.service: State 'stop-sigterm' timed out. Killing.\n"
    )
    assert told.verdict == "healthy"
