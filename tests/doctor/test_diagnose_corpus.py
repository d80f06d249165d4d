"""A corpus of whole logs that were written without looking at the expressions: is the line at the root found?

The logs and what is expected of them lie in `logs`; `expected.tsv` tells its columns. A fatal log asks for the line of
the true cause first, or for the same error told by another line of its traceback under an id that means it; a degraded
one for its kind among the first two findings; a healthy one for no blame at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from casemate.doctor.diagnose import Diagnosis, diagnose
from casemate.doctor.log.ranking import LogFinding
from casemate.doctor.log.signatures import signatures, trends

FOLDER = Path(__file__).parent / "logs"
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_LOGGED = re.compile(r"\b(?:INFO|DEBUG)\b")
_BLAME = ("cause", "unrecognised", "symptom", "degraded")
_IDS = {"unrecognised", "cause-not-in-log"}

MEANT: dict[str, tuple[str, ...]] = {
    "apparmor-denial": ("apparmor-denied",),
    "chat-template-missing": ("chat-template-missing",),
    "context-too-long": ("context-too-long",),
    "cpu-only-llama": ("llama-cpu-only",),
    "cpu-only-torch": ("torch-cpu-only",),
    "cuda-error-802": ("cuda-error-802",),
    "cuda-error-803": ("cuda-error-803",),
    "cuda-error-804": ("cuda-error-804",),
    "cuda-oom-graph-capture": ("graph-capture-oom",),
    "cuda-oom-load": ("load-oom",),
    "cuda-oom-profile": ("profile-oom",),
    "cuda-oom-sampler-warmup": ("sampler-warmup-oom",),
    "disk-full": ("disk-full",),
    "driver-too-old": ("cuda-driver-too-old", "driver-below-runtime"),
    "eager-mode": ("eager-mode",),
    "fork-after-cuda": ("fork-cuda",),
    "free-memory-less-than-desired": ("free-memory-below-budget",),
    "gguf-bad-magic": ("llama-magic",),
    "gguf-truncated": ("llama-file-truncated",),
    "gguf-unknown-architecture": ("llama-architecture",),
    "gpu-ecc": ("xid-hardware", "ecc-uncorrectable"),
    "gpu-off-the-bus": ("xid-hardware", "gpu-lost"),
    "hub-gated": ("hub-gated",),
    "hub-offline": ("hub-offline", "hub-unreachable"),
    "invalid-parser-name": ("invalid-tool-parser", "invalid-reasoning-parser", "invalid-choice"),
    "jit-stalls": ("jit-during-inference", "stalled"),
    "kv-too-small": ("kv-too-small",),
    "llama-alloc-failed": ("ggml-oom", "llama-context-failed"),
    "mig-device-not-found": ("container-unknown-device", "container-no-gpu-driver", "visible-devices-uuid"),
    "missing-libcudart": ("cuda-library-missing",),
    "model-type-unknown": ("transformers-unknown-model", "architecture-unsupported"),
    "mtp-on-dspark": ("mtp-without-head", "mtp-next-n", "weights-unknown-name"),
    "nccl-shm-small": ("shm-too-small",),
    "nccl-system-error": ("nccl-connect", "nccl-socket-interface", "nccl-ib", "nccl-warning"),
    "ninja-missing": ("jit-build-failed",),
    "no-cache-blocks": ("no-cache-blocks",),
    "no-gpu-runtime": ("container-without-gpu", "container-no-gpu-driver", "libcuda-missing"),
    "no-kernel-image": ("no-kernel-image",),
    "numpy-abi": ("numpy-abi",),
    "nvcc-missing": ("jit-build-failed",),
    "oom-killer": ("oom-killer",),
    "p2p-fallback": ("custom-allreduce-off", "p2p-disabled"),
    "p2p-hang-timeout": ("nccl-timeout",),
    "permission-denied": ("permission-denied", "permission-model", "permission-cache", "permission-device"),
    "port-in-use": ("port-in-use",),
    "pp-unsupported": ("pipeline-unsupported",),
    "preemptions": ("preemptions", "preempted", "cache-full"),
    "prefix-cache-zero": ("prefix-cache-zero",),
    "quantization-not-on-this-card": ("quantization-unsupported-card", "fp8-old-card", "megamoe-hopper"),
    "ray-node-lost": ("ray-node-lost", "ray-actor-died"),
    "ray-placement-group": ("ray-too-few-cards",),
    "rpc-timeout": ("rpc-timeout",),
    "safetensors-truncated": ("safetensors-damaged",),
    "selinux-denial": ("selinux-denied", "selinux-model-denied"),
    "sigterm-readiness-timeout": ("supervisor-start-timeout",),
    "thermal-throttling": ("gpu-thermal-slowdown",),
    "too-many-open-files": ("too-many-open-files",),
    "torch-abi": ("abi-undefined-symbol",),
    "tp-not-dividing": ("tensor-parallel-divides",),
    "trust-remote-code": ("remote-code-needed",),
    "unknown-bug": ("unrecognised",),
    "unknown-flag": ("unknown-flag",),
    "unsupported-ptx": ("ptx-unsupported-toolchain",),
}
"""For each label the ids of the findings that name that cause."""

MISSED: dict[str, str] = {}
"""Logs that the diagnosis gets wrong, and why. May only shrink: one that comes out right has to leave."""


class Expected(NamedTuple):
    """A row of expected.tsv."""

    file: str
    kind: str
    root: str
    cause: str
    label: str
    encoding: str


@dataclass(frozen=True, slots=True)
class Judged:
    """How one log came out."""

    exact: bool
    meant: bool
    right: bool
    told: str


def _expected() -> list[Expected]:
    rows = (FOLDER / "expected.tsv").read_text("utf-8").splitlines()[1:]
    return [Expected(*row.split("\t")) for row in rows if row and not row.startswith("#")]


EXPECTED = {row.file: row for row in _expected() if row.file.endswith(".log")}


def test_every_log_of_the_corpus_has_its_row_and_every_label_its_ids() -> None:
    assert {path.name for path in FOLDER.glob("*.log")} == EXPECTED.keys()
    assert {row.label for row in EXPECTED.values() if row.label} == MEANT.keys()
    known = {one.id for one in signatures()} | trends().keys() | _IDS
    assert {id_ for ids in MEANT.values() for id_ in ids} <= known
    assert MISSED.keys() <= EXPECTED.keys()


@pytest.mark.parametrize("file", sorted(EXPECTED))
def test_a_log_of_the_corpus_is_judged_right(file: str) -> None:
    judged = _judged(file)
    if file in MISSED:
        assert not judged.right, f"{file} comes out right by now: take it out of MISSED"
        return
    assert judged.right, (EXPECTED[file], judged.told)


def test_the_corpus_counts_are_told(capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest) -> None:
    """Counts over the logs whose tests were asked for, so that a half can be measured alone."""
    specs = [vars(item).get("callspec") for item in request.session.items]
    asked = {spec.params.get("file") for spec in specs if spec is not None}
    files = sorted(asked & EXPECTED.keys())
    faulty = [file for file in files if EXPECTED[file].kind != "healthy"]
    counts = (
        f"{len(files)} logs, {len(faulty)} with a fault: "
        f"top-1 root line exact {sum(_judged(f).exact for f in faulty)}, "
        f"cause right {sum(_judged(f).meant for f in faulty)}, judged right {sum(_judged(f).right for f in files)}"
    )
    with capsys.disabled():
        print(f"\n{counts}")
    assert sum(not _judged(file).right for file in files) == len([file for file in files if file in MISSED])


@cache
def _judged(file: str) -> Judged:
    row = EXPECTED[file]
    raw = (FOLDER / file).read_bytes()
    with (FOLDER / file).open("rb") as stream:
        told = diagnose(stream)
    lines = _ESCAPES.sub("", raw.decode(row.encoding)).replace("\0", "").split("\n")
    first = told.findings[0] if told.findings else None
    exact = first is not None and _quotes(first, row, lines)
    meant = first is not None and first.id in MEANT.get(row.label, ())
    shown = f"{told.verdict}: " + "; ".join(f"{one.standing} {one.id} {one.line}" for one in told.findings[:3])
    told_here = exact or (meant and first is not None and _beside(first, row, lines))
    return Judged(exact, meant, _is_right(row, told, found=told_here), shown)


def _quotes(finding: LogFinding, row: Expected, lines: list[str]) -> bool:
    return finding.line > 0 and row.root in lines[finding.line - 1]


def _beside(finding: LogFinding, row: Expected, lines: list[str]) -> bool:
    """Whether the quote and the expected line belong to one traceback: nothing that was logged lies between them."""
    wanted = next(number for number, line in enumerate(lines, 1) if row.root in line)
    between = lines[min(wanted, finding.line) : max(wanted, finding.line) - 1]
    return finding.line > 0 and not any(_LOGGED.search(line) for line in between)


def _is_right(row: Expected, told: Diagnosis, *, found: bool) -> bool:
    meant = MEANT.get(row.label, ())
    if row.kind == "fatal":
        return told.verdict == "failed" and told.root is not None and found
    if row.kind == "degraded":
        return told.verdict != "failed" and any(one.id in meant for one in told.findings[:2])
    return told.verdict == "healthy" and not [one for one in told.findings if one.standing in _BLAME]
