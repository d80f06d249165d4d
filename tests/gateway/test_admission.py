from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from casemate.errors import ModelError
from casemate.gateway.admission import Admission


class Guests:
    """Tasks that hold a slot each until told to go, in a record of who came in when."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.inside: list[int] = []
        self.leave = [asyncio.Event() for _ in range(10)]

    async def stay(self, number: int) -> None:
        async with self.admission.slot():
            self.inside.append(number)
            await self.leave[number].wait()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_no_more_than_the_slots_run_and_the_rest_come_in_in_order() -> None:
    guests = Guests(Admission(slots=2, queue=8))
    tasks = [asyncio.create_task(guests.stay(number)) for number in range(5)]
    await settle()
    assert guests.inside == [0, 1]
    for number in range(5):
        guests.leave[number].set()
        await settle()
        assert guests.inside == list(range(min(5, number + 3)))
    await asyncio.gather(*tasks)
    assert (guests.admission.running, guests.admission.waiting) == (0, 0)


async def test_a_full_queue_refuses_with_503_and_says_when_to_come_back() -> None:
    admission = Admission(slots=1, queue=0)
    async with admission.slot():
        with pytest.raises(ModelError, match=r"queue is full: try again in \d+ s") as caught:
            await AsyncExitStack().enter_async_context(admission.slot())
    assert caught.value.status == 503
    async with admission.slot():
        assert admission.running == 1


async def test_whoever_leaves_the_queue_is_skipped() -> None:
    guests = Guests(Admission(slots=1, queue=8))
    tasks = [asyncio.create_task(guests.stay(number)) for number in range(3)]
    await settle()
    tasks[1].cancel()
    await settle()
    assert guests.admission.waiting == 1
    guests.leave[0].set()
    await settle()
    assert guests.inside == [0, 2]
    guests.leave[2].set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (guests.admission.running, guests.admission.waiting) == (0, 0)


async def test_a_slot_that_comes_together_with_the_cancellation_is_not_lost() -> None:
    guests = Guests(Admission(slots=1, queue=8))
    async with AsyncExitStack() as first:
        await first.enter_async_context(guests.admission.slot())
        second, third = (asyncio.create_task(guests.stay(number)) for number in range(2))
        await settle()
    # The slot has been handed to the second, which has not woken yet.
    second.cancel()
    await settle()
    assert guests.inside == [1]
    guests.leave[1].set()
    await asyncio.gather(second, third, return_exceptions=True)
    assert guests.admission.running == 0


async def test_an_error_inside_frees_the_slot() -> None:
    admission = Admission(slots=1, queue=0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            async with admission.slot():
                raise ZeroDivisionError
    assert admission.running == 0


async def test_the_advice_when_to_come_back_grows_with_the_queue_and_shrinks_with_the_pace() -> None:
    admission = Admission(slots=1, queue=8)
    at_first = admission.retry_after_s
    guests = Guests(admission)
    tasks = [asyncio.create_task(guests.stay(number)) for number in range(4)]
    await settle()
    assert admission.retry_after_s > at_first
    for gate in guests.leave:
        gate.set()
    await asyncio.gather(*tasks)
    for _ in range(50):
        async with admission.slot():
            pass
    assert admission.retry_after_s == 1
