from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from casemate.doctor.machine import Machine
from casemate.plan.choice import Candidate, choose, without_source
from casemate.plan.decision import GIB, Intent

INTENT = Intent()
LARGE = Candidate("large", fetch_bytes=2 * GIB, weights_bytes=2 * GIB, kv_bytes_per_token=28672)
MIDDLE = Candidate("middle", fetch_bytes=GIB // 2, weights_bytes=GIB // 2, kv_bytes_per_token=12288)
SMALL = Candidate("small", fetch_bytes=GIB // 10, weights_bytes=GIB // 10, kv_bytes_per_token=23040)
ALL = (LARGE, MIDDLE, SMALL)
MACHINE = Machine(
    cores=2,
    memory_total_bytes=16 * GIB,
    memory_available_bytes=12 * GIB,
    disk_free_bytes=50 * GIB,
    system="Linux",
    architecture="x86_64",
)


def test_the_best_that_fits_is_taken_without_a_word() -> None:
    choice = choose(MACHINE, ALL, intent=INTENT)
    assert (choice.candidate, choice.notes) == (LARGE, ())


def test_too_little_memory_steps_down_and_says_so() -> None:
    choice = choose(replace(MACHINE, memory_available_bytes=3 * GIB), ALL, intent=INTENT)
    assert choice.candidate == MIDDLE
    assert choice.notes == ("large → middle: memory: needs 3.67 GiB, 2.50 GiB are free",)


def test_too_little_disk_steps_down_and_says_so() -> None:
    choice = choose(replace(MACHINE, disk_free_bytes=GIB // 4), ALL, intent=INTENT)
    assert choice.candidate == SMALL
    assert choice.notes == (
        "large → middle: disk: needs 2.00 GiB, 0.25 GiB are free",
        "middle → small: disk: needs 0.50 GiB, 0.25 GiB are free",
    )


def test_what_is_on_the_disk_already_needs_none() -> None:
    machine = replace(MACHINE, disk_free_bytes=0)
    assert choose(machine, (replace(LARGE, fetch_bytes=0), MIDDLE), intent=INTENT).candidate is not None


def test_a_source_that_cannot_be_reached_steps_down_and_says_so() -> None:
    left = without_source(ALL, "large", why="no package index could be reached")
    choice = choose(MACHINE, left, intent=INTENT)
    assert choice.candidate == MIDDLE
    assert choice.notes == ("large → middle: source: no package index could be reached",)


def test_every_reason_against_a_model_is_in_its_note() -> None:
    machine = replace(MACHINE, memory_available_bytes=0, disk_free_bytes=0)
    (note,) = choose(machine, (replace(LARGE, unreachable="silent"),), intent=INTENT).notes
    assert [word in note for word in ("memory: ", "disk: ", "source: silent")] == [True] * 3


def test_when_nothing_fits_rules_alone_are_left_and_each_step_has_its_note() -> None:
    choice = choose(replace(MACHINE, memory_available_bytes=0), ALL, intent=INTENT)
    assert choice.candidate is None
    steps = [note.split(":")[0] for note in choice.notes]
    assert steps == ["large → middle", "middle → small", "small → rules only"]


def test_a_longer_context_needs_more_memory() -> None:
    machine = replace(MACHINE, memory_available_bytes=5 * GIB)
    assert choose(machine, ALL, intent=INTENT).candidate == LARGE
    assert choose(machine, ALL, intent=Intent(context=32768)).candidate == MIDDLE


@given(
    memory=st.integers(0, 16 * GIB),
    disk=st.integers(0, 8 * GIB),
    silent=st.sets(st.sampled_from([candidate.name for candidate in ALL])),
)
def test_the_loop_of_the_roof_ends_with_one_note_for_each_step(memory: int, disk: int, silent: set[str]) -> None:
    machine = replace(MACHINE, memory_available_bytes=memory, disk_free_bytes=disk)
    candidates: tuple[Candidate, ...] = ALL
    choice = choose(machine, candidates, intent=INTENT)
    for _ in ALL:
        if choice.candidate is None or choice.candidate.name not in silent:
            break
        candidates = without_source(candidates, choice.candidate.name, why="did not answer")
        choice = choose(machine, candidates, intent=INTENT)
    assert choice.candidate is None or choice.candidate.name not in silent
    steps = len(ALL) if choice.candidate is None else [each.name for each in ALL].index(choice.candidate.name)
    assert len(choice.notes) == steps
