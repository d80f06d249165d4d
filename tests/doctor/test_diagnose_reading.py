"""Logs as they really come: encodings, colours, redrawn lines, lines without end, prefixes of other programs."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from collections.abc import Iterator

import pytest

from casemate.doctor.diagnose import diagnose
from casemate.doctor.log.lines import Line, parse
from casemate.doctor.log.reading import pieces
from casemate.doctor.log.secrets import masked
from casemate.errors import UsageError

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


class Drips:
    """Bytes that come a few at a time, as from a pipe."""

    def __init__(self, data: bytes, size: int) -> None:
        self._chunks = (data[begin : begin + size] for begin in range(0, len(data), size))

    def read(self, size: int, /) -> bytes:
        return next(self._chunks, b"")


@pytest.mark.parametrize(
    "data",
    [
        f"first\n{OOM}\nlast\n".encode("utf-8-sig"),
        f"first\n{OOM}\nlast\n".encode("utf-16"),
        b"\xfe\xff" + f"first\n{OOM}\nlast\n".encode("utf-16-be"),
        f"first\n{OOM}\nlast\n".encode("utf-16-le"),
        f"caf\xe9\n{OOM}\nlast\n".encode("latin-1"),
        f"first\r\n{OOM}\r\nlast\r\n".encode(),
        f"first\n\x1b[36m(Worker pid=3)\x1b[0;0m \x1b[31m{OOM}\x1b[0m\nlast\n".encode(),
        f"first\n  5%|#   | 1/20\r 10%|##  | 2/20\r{OOM}\nlast".encode(),
        f"first\n 73%|###| 8/11 [00:03<00:01,  2.30it/s](Worker pid=3) ERROR 06-01 10:00:00 [a.py:1] {OOM}\n".encode(),
        b"first\n" + b"x" * 3_000_000 + f" {OOM} ".encode() + b"y" * 3_000_000 + b"\nlast\n",
        f"first\r{OOM}\rlast\r".encode(),
        b"fi\0rst\n" + OOM.replace(" ", " \0").encode() + b"\n\0\0",
    ],
)
@pytest.mark.parametrize("drip", [1 << 20, 4093, 7])
def test_a_log_is_read_in_every_encoding_and_the_line_is_numbered(data: bytes, drip: int) -> None:
    if drip == 7 and len(data) > 100_000:
        return  # a million reads show no more than a thousand
    root = diagnose(Drips(data, drip)).root
    assert root is not None
    assert (root.id, root.line) == ("cuda-oom", 2)


@pytest.mark.parametrize(
    ("data", "tool"),
    [
        (gzip.compress(b"x"), "zcat"),
        (b"\x28\xb5\x2f\xfd0000", "zstdcat"),
        (b"BZh91AY", "bzcat"),
        (b"PK\x03\x04", "unzip"),
    ],
)
def test_a_compressed_log_is_refused_with_the_tool_that_unpacks_it(data: bytes, tool: str) -> None:
    with pytest.raises(UsageError, match="compressed") as refused:
        diagnose(io.BytesIO(data), "engine.log.gz")
    assert tool in refused.value.remedy


def test_line_numbers_count_line_feeds_and_nothing_else() -> None:
    data = b"one\rtwo\nthree\x0bfour\x0c\xc2\x85\ntail"
    assert list(pieces(io.BytesIO(data))) == [(1, b"one"), (1, b"two"), (2, b"three\x0bfour\x0c\xc2\x85"), (3, b"tail")]


def test_memory_does_not_grow_with_the_log() -> None:
    peaks = []
    for lines in (20_000, 80_000):
        tracemalloc.start()
        diagnose(_Made(lines))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0] + 1_000_000


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("INFO 04-08 10:00:00 model_runner.py:1014] Start", Line(1, "", "info", "model_runner.py:1014", "Start")),
        (
            "(EngineCore_0 pid=5) ERROR 06-01 10:00:00 [core.py:7]   x",
            Line(1, "EngineCore_0 pid=5", "error", "core.py:7", "  x"),
        ),
        (
            "(VllmWorker rank=1 pid=5) INFO 06-01 10:00:00 [a.py:7] x",
            Line(1, "VllmWorker rank=1 pid=5", "info", "a.py:7", "x"),
        ),
        ("(RayWorkerWrapper pid=5, ip=10.0.0.2) x", Line(1, "RayWorkerWrapper pid=5", "", "", "x")),
        ("[rank1]:[E601 10:00:00.000000001 P.cpp:607] x", Line(1, "rank1", "error", "P.cpp:607", "x")),
        ("[rank0]: ValueError: x", Line(1, "rank0", "", "", "ValueError: x")),
        ("vllm-1  | (APIServer pid=1) INFO:     Started", Line(1, "APIServer pid=1", "info", "", "Started")),
        ("2026-06-01T10:00:00.123456789Z stderr F ValueError: x", Line(1, "", "", "", "ValueError: x")),
        ("Jun  1 10:00:00 gpu01 vllm[784]: ERROR 06-01 10:00:00 [a.py:1] x", Line(1, "", "error", "a.py:1", "x")),
        ("Jun 01 10:00:00 gpu01 kernel: [  12.345678] NVRM: Xid", Line(1, "", "", "", "NVRM: Xid")),
        ("2026-06-01 10:00:00,123\tERROR worker.py:409 -- x", Line(1, "", "error", "", "x")),
        ("2026-06-01 10:00:00,123 - vllm.x - WARNING - y", Line(1, "", "warning", "", "y")),
        ("1.16.671.807 E llama_model_load: x", Line(1, "", "error", "", "llama_model_load: x")),
        ("(not a prefix) x", Line(1, "", "", "", "(not a prefix) x")),
    ],
)
def test_a_line_is_taken_apart_whoever_wrapped_it(text: str, line: Line) -> None:
    assert parse(1, text) == line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("'api_key': ['abcdefgh123']", "'api_key': ['ab…(masked)']"),
        ("--api-key abcdefgh123 --port 8000", "--api-key ab…(masked) --port 8000"),
        ("Authorization: Bearer abcdefgh123", "Authorization: Bearer ab…(masked)"),
        ("https://user:password1@host/x", "https://user:pa…(masked)@host/x"),
        ("HF_TOKEN=hf_notarealtoken1234", "HF_TOKEN=hf…(masked)"),
        ("'api_key': None, 'max_tokens': 123456", "'api_key': None, 'max_tokens': 123456"),
    ],
)
def test_secrets_are_masked_and_what_is_none_stays(text: str, shown: str) -> None:
    assert masked(text) == shown


class _Made:
    def __init__(self, lines: int) -> None:
        self._chunks = self._make(lines)

    def read(self, size: int, /) -> bytes:
        return next(self._chunks, b"")

    @staticmethod
    def _make(lines: int) -> Iterator[bytes]:
        for begin in range(0, lines, 1000):
            yield b"".join(
                b"(Worker_%d pid=%d) ERROR 06-01 10:00:00 [a%d.py:1] FooError: unlike any other %x\n" % (n, n, n, n * n)
                for n in range(begin, begin + 1000)
            )
