"""Figures of the diagnosis of logs: megabytes a second of CPU time, and the peak of memory, on logs made for it.

python bench/diagnose.py                  repetitive, varied and hostile logs of 100 MB
python bench/diagnose.py --megabytes 500  of another size
python bench/diagnose.py --log FILE       a log of yours
"""

from __future__ import annotations

import argparse
import itertools
import random
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from casemate.doctor.diagnose import diagnose
from casemate.doctor.log.reading import Readable

MEGABYTE = 1_000_000
DEATH = b"(Worker_TP0 pid=9) ERROR 06-01 10:00:09 [core.py:2] torch.OutOfMemoryError: CUDA out of memory.\n"


class Made:
    """A log that is made while it is read: `lines` for ever, cut at `size` bytes, then the line that matters."""

    def __init__(self, lines: Iterator[bytes], size: int) -> None:
        self._lines, self._left, self._ended = lines, size, False

    def read(self, size: int, /) -> bytes:
        """About `size` bytes."""
        if self._left <= 0:
            last = b"" if self._ended else b"\n" + DEATH
            self._ended = True
            return last
        held = bytearray()
        while len(held) < min(size, self._left):
            held += next(self._lines)
        self._left -= len(held)
        return bytes(held)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--log", type=Path)
    wanted = parser.parse_args()
    if wanted.log:
        with wanted.log.open("rb") as stream:
            figures(wanted.log.name, stream, size=wanted.log.stat().st_size)
        return
    size = wanted.megabytes * MEGABYTE
    for name, lines in (
        ("access lines and rates", repetitive()),
        ("prompts, no two alike", varied()),
        ("tracebacks", tracebacks()),
        ("one line without end", itertools.repeat(b"abcdefgh error 12 " * 400)),
        (
            "progress bars",
            itertools.repeat(b"\rLoading safetensors checkpoint shards:  12% | 5/46 [00:02<00:17]"),
        ),
    ):
        figures(name, Made(lines, size), size=size)


def figures(name: str, stream: Readable, *, size: int) -> None:
    """One line: megabytes a second of CPU time, and the process's peak so far."""
    begun = time.process_time()
    told = diagnose(stream)
    used_s = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    root = told.root.id if told.root else "-"
    speed = size / MEGABYTE / used_s
    print(f"{name:<24} {size / MEGABYTE:6.0f} MB {speed:7.1f} MB/s, peak {peak:5.0f} MiB, root {root}")


def repetitive() -> Iterator[bytes]:
    """What a server writes all day."""
    for number in itertools.count():
        yield b'(APIServer pid=784) INFO:     127.0.0.1:%d - "POST /v1/chat/completions HTTP/1.1" 200 OK\n' % (
            number % 65536
        )
        if number % 50 == 0:
            yield (
                b"(APIServer pid=784) INFO 11-30 13:12:49 [loggers.py:310] Engine 000: "
                b"Avg prompt throughput: %d.4 tokens/s, Avg generation throughput: 0.5 tokens/s, "
                b"Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%%, "
                b"Prefix cache hit rate: 0.0%%\n" % number
            )


def varied() -> Iterator[bytes]:
    """Requests logged with their prompts."""
    words = [bytes(random.Random(seed).choices(b"abcdefghijklmnopqrstuvwxyz", k=7)) for seed in range(5000)]
    chance = random.Random(7)
    while True:
        prompt = b" ".join(chance.choices(words, k=60))
        yield b"INFO 11-30 13:12:49 [logger.py:40] Received request chatcmpl-%032x: prompt: '%s'\n" % (
            chance.getrandbits(128),
            prompt,
        )


def tracebacks() -> Iterator[bytes]:
    """A server that fails request after request."""
    frame = (
        b'  File "/site/vllm/entrypoints/openai/serving_chat.py", line 200, in create\n    return await f(request)\n'
    )
    for number in itertools.count():
        yield b"Traceback (most recent call last):\n" + frame * 20 + b"ValueError: request %d is not served\n" % number


if __name__ == "__main__":
    main()
