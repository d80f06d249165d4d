from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.engine.child import Child, Lines
from casemate.engine.interface import Launch
from casemate.errors import CasemateError
from engine.family import descendants, living, only_child


def python(script: str, *, on_line: Callable[[str], None] = lambda _: None) -> Child:
    return Child(Launch((sys.executable, "-c", script), (("GIVEN", "yes"),)), on_line=on_line, grace_s=0.5)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_its_lines_come_from_both_pipes_and_its_status_is_told() -> None:
    lines: list[str] = []
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.stdout.write('no newline'); sys.exit(7)"
    async with python(script, on_line=lines.append) as child:
        assert await child.ended() == 7
    assert sorted(lines) == ["err", "no newline", "out"]


async def test_a_signal_that_ended_it_is_told_as_a_negative_status() -> None:
    async with python("import os; os.abort()") as child:
        assert await child.ended() == -signal.SIGABRT


async def test_a_program_that_is_not_there_ends_with_127_and_says_so() -> None:
    async with Child(Launch(("no-such-program",)), on_line=lambda _: None) as child:
        assert await child.ended() == 127
    assert child.tail == ("cannot start 'no-such-program': No such file or directory",)


async def test_a_start_that_fails_leaves_no_socket_open() -> None:
    child = Child(Launch(("x" * 5_000_000,)), on_line=lambda _: None)
    before = open_descriptors()
    with pytest.raises(CasemateError, match=r"cannot start .*: Argument list too long"):
        await child.__aenter__()
    assert open_descriptors() == before


async def test_only_the_last_200_lines_are_kept() -> None:
    async with python("for number in range(10_000): print(number)") as child:
        await child.ended()
    assert child.tail == tuple(map(str, range(9_800, 10_000)))


async def test_a_line_of_ten_megabytes_is_cut() -> None:
    async with python("print('x' * 10_000_000); print('after')") as child:
        await child.ended()
    assert child.tail == ("x" * 8192, "after")


async def test_secrets_of_the_launch_reach_it_and_secrets_of_ours_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEMATE_ENGINE_API_KEY", "ours")
    async with python("import os; print(os.environ['GIVEN'], 'CASEMATE_ENGINE_API_KEY' in os.environ)") as child:
        await child.ended()
    assert child.tail == ("yes False",)


async def test_descendants_that_outlive_it_are_ended_with_it() -> None:
    sleeper = "import os, signal, time; os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    script = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {sleeper!r}]); print('started')"
    async with python(script) as child:
        assert await child.ended() == 0
        family = descendants(os.getpid())
        assert len(family) > 1
    assert not living(family)


async def test_the_death_of_the_keeper_is_noticed_and_ends_the_child_with_its_group() -> None:
    up = asyncio.Event()
    sleeper = "print('up', flush=True); import time; time.sleep(60)"
    script = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {sleeper!r}]); time.sleep(60)"
    async with python(script, on_line=lambda _: up.set()) as child:
        await up.wait()
        family = descendants(os.getpid())
        assert len(family) == 3
        os.kill(only_child(os.getpid()), signal.SIGKILL)
        assert await child.ended() == -signal.SIGKILL
    assert not living(family)


async def test_sigterm_to_the_keeper_ends_the_family_too() -> None:
    up = asyncio.Event()
    async with python("import time; print('up', flush=True); time.sleep(60)", on_line=lambda _: up.set()) as child:
        await up.wait()
        os.kill(only_child(os.getpid()), signal.SIGTERM)
        assert await child.ended() == -signal.SIGTERM


async def test_an_observer_that_fails_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    async with python("print('one'); print('two')", on_line=lambda line: [][len(line)]) as child:
        assert await child.ended() == 0
    assert child.tail == ("one", "two")
    assert caplog.text.count("IndexError") >= 2


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(0, 200)))
def test_lines_are_the_same_however_the_bytes_were_cut(lines: list[bytes], cuts: list[int]) -> None:
    text = b"".join(line.replace(b"\n", b"") + b"\n" for line in lines)
    whole, parts = Lines(), Lines()
    places = sorted({0, *(cut for cut in cuts if cut < len(text)), len(text)})
    pieces = [text[start:end] for start, end in pairwise(places)]
    assert [line for piece in pieces for line in parts.feed(piece)] == whole.feed(text)
    assert parts.feed(b"") == []
