from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit

import pytest

from casemate.chat.http import HttpModel
from casemate.chat.model import Endpoint
from casemate.chat.wire import ChatRequest, Message
from casemate.engine import supervisor
from casemate.engine.interface import Ready, Starting
from casemate.engine.simulator import Faults, Script, Simulator
from casemate.errors import EngineDied, EngineError
from engine.family import descendants, living, only_child, port_is_free
from engine.owner import PLAN

QUICK = supervisor.Terms(grace_s=0.5, start_s=30)


def simulator(**faults: object) -> Simulator:
    return Simulator(Script(token_ms=1, faults=Faults(**faults)))  # type: ignore[arg-type] # each test names its own


def engine_pid() -> int:
    return only_child(only_child(os.getpid()))


def port_of(endpoint: Endpoint) -> int:
    return urlsplit(endpoint.url).port or 0


async def ask(engine: Simulator, endpoint: Endpoint) -> str:
    async with HttpModel(endpoint, key=engine.key) as model:
        request = ChatRequest(messages=(Message("user", "Hello"),))
        return "".join([delta.content async for delta in model.stream(request)])


async def test_the_endpoint_answers_inside_the_block_and_is_gone_after_it() -> None:
    engine = simulator()
    async with supervisor.running(engine, PLAN, terms=QUICK) as endpoint:
        assert await ask(engine, endpoint) == engine.script.otherwise
        family = descendants(os.getpid())
        assert len(family) == 2
    assert not living(family)
    assert port_is_free(port_of(endpoint))


async def test_who_watches_sees_the_start_and_then_ready_once() -> None:
    seen: list[Starting | Ready] = []
    async with supervisor.running(simulator(), PLAN, terms=supervisor.Terms(observe=seen.append)):
        pass
    assert seen == [Starting("start"), Starting("warm", 0.95), Ready()]


async def test_an_engine_that_dies_at_its_start_is_reported_with_status_and_last_words() -> None:
    with pytest.raises(EngineDied, match=r"status 3.*no such device") as caught:
        async with supervisor.running(simulator(die_at_start="no such device"), PLAN, terms=QUICK):
            pytest.fail("it was never ready")
    assert caught.value.exit_code == 3
    assert caught.value.tail[-1] == "no such device"
    assert not living(descendants(os.getpid()))


async def test_an_engine_that_never_gets_ready_is_given_up_and_ended() -> None:
    with pytest.raises(EngineError, match="not ready after 2 s"):
        async with supervisor.running(simulator(never_ready=True), PLAN, terms=supervisor.Terms(start_s=2)):
            pytest.fail("it was never ready")
    assert not living(descendants(os.getpid()))


async def test_an_engine_that_answers_without_its_key_is_refused() -> None:
    with pytest.raises(EngineError, match="answers 200 without its key"):
        async with supervisor.running(simulator(open_door=True), PLAN, terms=QUICK):
            pytest.fail("it must not be used")


async def kill_it_and_wait(wait_s: float) -> None:
    async with supervisor.running(simulator(), PLAN, terms=QUICK):
        os.kill(engine_pid(), signal.SIGKILL)
        await asyncio.sleep(wait_s)


async def test_a_death_under_the_block_interrupts_it() -> None:
    with pytest.raises(EngineDied, match="signal SIGKILL"):
        await kill_it_and_wait(60)
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_an_answer_that_breaks_off_because_the_engine_died_is_reported_as_its_death() -> None:
    engine = simulator(die_after_tokens=4)
    with pytest.raises(EngineDied, match="ran out of tokens") as caught:
        async with supervisor.running(engine, PLAN, terms=QUICK) as endpoint:
            await ask(engine, endpoint)
    assert caught.value.exit_code == 4


async def test_an_answer_that_breaks_off_for_another_reason_is_reported_as_it_is() -> None:
    with pytest.raises(LookupError):
        async with supervisor.running(simulator(), PLAN, terms=QUICK):
            raise LookupError("ours")


@pytest.mark.parametrize("wait_s", [0.0, 0.01, 0.03, 0.1])
async def test_a_death_near_the_end_of_the_block_is_told_or_not_noticed_but_never_a_cancellation(wait_s: float) -> None:
    with suppress(EngineDied):
        await kill_it_and_wait(wait_s)
    assert not living(descendants(os.getpid()))


@pytest.mark.parametrize("moment_s", [0.05, 0.4, 3.0], ids=["at the start", "while it loads", "under the block"])
async def test_nothing_lives_after_the_task_was_cancelled(moment_s: float) -> None:
    async def run() -> None:
        async with supervisor.running(simulator(orphan=True, deaf=True), PLAN, terms=QUICK):
            await asyncio.sleep(60)

    task = asyncio.ensure_future(run())
    await asyncio.sleep(moment_s)
    family = descendants(os.getpid())
    task.cancel()
    await asyncio.sleep(0.1)
    task.cancel()  # again, while it is ending
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not living(family | descendants(os.getpid()))


async def test_a_megabyte_on_both_pipes_holds_nobody_up_and_little_of_it_is_kept() -> None:
    engine = simulator(noise_bytes=1_000_000)
    async with supervisor.running(engine, PLAN, terms=QUICK) as endpoint:
        assert await ask(engine, endpoint) == engine.script.otherwise


async def test_a_port_that_somebody_took_in_between_costs_another_attempt_only() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = [taken.getsockname()[1], supervisor.free_port()]
        chosen = list(ports)
        terms = supervisor.Terms(pick_port=lambda: chosen.pop(0))
        async with supervisor.running(simulator(), PLAN, terms=terms) as endpoint:
            assert port_of(endpoint) == ports[1]


async def test_a_port_that_stays_taken_is_given_up_after_three_attempts() -> None:
    asked: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as taken:

        def pick() -> int:
            asked.append(1)
            return int(taken.getsockname()[1])

        with pytest.raises(EngineDied, match="address already in use"):
            async with supervisor.running(simulator(), PLAN, terms=supervisor.Terms(pick_port=pick)):
                pytest.fail("the port is taken")
    assert len(asked) == 3


async def test_the_key_is_in_no_command_line_and_no_repr() -> None:
    engine = simulator()
    async with supervisor.running(engine, PLAN, terms=QUICK):
        for pid in descendants(os.getpid()):
            with open(f"/proc/{pid}/cmdline") as line:  # noqa: ASYNC230, PTH123 - a look into /proc does not wait
                assert engine.key not in line.read()
    assert engine.key not in repr(engine)
    assert engine.key not in repr(engine.launch(PLAN, 1))


async def test_handlers_of_signals_are_as_before_after_the_block() -> None:
    before = signal.getsignal(signal.SIGTERM)
    async with supervisor.running(simulator(), PLAN, terms=QUICK):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_engine_can_be_run_from_a_thread_too() -> None:
    answers: list[str] = []

    async def run() -> None:
        engine = simulator()
        async with supervisor.running(engine, PLAN, terms=QUICK) as endpoint:
            answers.append(await ask(engine, endpoint))

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    thread.join()
    assert answers == [Script().otherwise]


async def test_two_engines_run_side_by_side() -> None:
    first, second = simulator(), simulator()
    async with (
        supervisor.running(first, PLAN, terms=QUICK) as one,
        supervisor.running(second, PLAN, terms=QUICK) as two,
    ):
        assert one.url != two.url
        assert await ask(first, one) == await ask(second, two)
