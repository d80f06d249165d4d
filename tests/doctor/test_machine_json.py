from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from casemate.doctor import codec
from casemate.doctor.machine import Card, Driver, Machine, Package, Pair, Surroundings
from casemate.errors import UsageError

MACHINE = Machine(
    cores=32,
    memory_total_bytes=1 << 38,
    memory_available_bytes=1 << 37,
    disk_free_bytes=0,
    system="Linux",
    architecture="x86_64",
    cards=(
        Card(0, "NVIDIA H200", "GPU-1", memory_total_bytes=150754820096, compute_capability=(9, 0), power_w=77.15),
        Card(1, "中文 \x1b[31m", temperature_c=-4, throttle=("sw_power_cap",), processes=((41, None), (42, 7))),
        Card(1, "x", mig="3g.20gb", unknown=(("power_w", "[N/A]"),)),
    ),
    pairs=(Pair(0, 1, "NV18", peer_access=False, why="CNS"),),
    driver=Driver("580.159.04", (13, 0), "libcuda", cuinit=803, nvml=0),
    packages=(Package("torch", "2.11.0+cu130", (13, 0), ("9.0a", "8.0+PTX"), ("triton==3.6.0",), "/site", 13),),
    surroundings=Surroundings(shm_total_bytes=64 << 20, variables=(("CUDA_VISIBLE_DEVICES", ""),), wsl=True),
    model_folder="/models/x",
    unknown=(("driver.cuinit", "mismatch"),),
)


def written(**changes: Any) -> dict[str, Any]:
    return codec.to_json(MACHINE) | changes


def test_a_machine_comes_back_from_json_as_it_was() -> None:
    text = json.dumps(codec.to_json(MACHINE))
    assert codec.parse(text) == (MACHINE, ())
    assert codec.from_json(json.loads(text)) == (MACHINE, ())
    bare = replace(MACHINE, cards=(), driver=None)
    assert codec.parse(json.dumps(codec.to_json(bare)))[0] == bare


def test_what_the_verb_prints_is_taken_whole() -> None:
    printed = {"schema_version": 1, "machine": codec.to_json(MACHINE), "checks": [{"id": "x"}]}
    assert codec.from_json(json.loads(json.dumps(printed))) == (MACHINE, ())
    flat = {"schema_version": 1, **codec.to_json(MACHINE)}
    assert codec.from_json(json.loads(json.dumps(flat))) == (MACHINE, ())


def test_an_old_recording_without_later_facts_has_their_defaults() -> None:
    old = {"cores": 2, "memory_total_bytes": 9, "memory_available_bytes": 8, "disk_free_bytes": 7, "system": "Linux"}
    old |= {"architecture": "x86_64", "cards": [{"index": 0, "name": "x"}], "driver": {}}
    machine, notes = codec.from_json(old)
    assert (machine.cards, machine.driver, machine.surroundings) == ((Card(0, "x"),), Driver(), Surroundings())
    assert notes == ()


def test_facts_of_a_later_version_are_left_out_and_noted() -> None:
    later = written(colour="green")
    later["cards"][0] |= {"flavour": [1, {"deep": None}]}
    machine, notes = codec.from_json(json.loads(json.dumps(later)))
    assert machine == MACHINE
    assert sorted(notes) == [
        "cards[0].flavour is no fact that this version knows; it was left out",
        "colour is no fact that this version knows; it was left out",
    ]


def card(**changes: Any) -> dict[str, Any]:
    return written(cards=[{"index": 0, "name": "x"} | changes])


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (None, "the recording"),
        ([], "the recording"),
        ("text", "the recording"),
        ({}, "cores"),
        ({"machine": []}, "machine"),
        ({"schema_version": 2, "machine": {}}, "schema_version"),
        ({"schema_version": True}, "schema_version"),
        ({"schema_version": [1]}, "schema_version"),
        (written(cores="8"), "cores"),
        (written(cores=0), "cores"),
        (written(cores=True), "cores"),
        (written(cores=2.0), "cores"),
        (written(cores=1 << 63), "cores"),
        (written(memory_total_bytes=-1), "memory_total_bytes"),
        (written(memory_total_bytes=None), "memory_total_bytes"),
        (written(system=None), "system"),
        (written(system="x" * 5000), "system"),
        (written(system="\ud800"), "system"),
        (written(cards={}), "cards"),
        (written(cards=[1]), "cards[0]"),
        (written(cards=[{}]), "cards[0].index"),
        (written(cards=[{"index": 0, "name": "x"}] * 5000), "cards"),
        (card(index=-1), "cards[0].index"),
        (card(memory_total_bytes="96 GiB"), "cards[0].memory_total_bytes"),
        (card(compute_capability=[9]), "cards[0].compute_capability"),
        (card(compute_capability=[9, "0"]), "cards[0].compute_capability[1]"),
        (card(compute_capability="9.0"), "cards[0].compute_capability"),
        (card(ecc_enabled=1), "cards[0].ecc_enabled"),
        (card(power_w=float("inf")), "cards[0].power_w"),
        (card(power_w=float("nan")), "cards[0].power_w"),
        (card(power_w=10**400), "cards[0].power_w"),
        (card(index=10**5000), "cards[0].index"),
        (card(throttle="sw_power_cap"), "cards[0].throttle"),
        (card(throttle=[None]), "cards[0].throttle[0]"),
        (card(processes=[[1]]), "cards[0].processes[0]"),
        (card(processes=[[None, 1]]), "cards[0].processes[0][0]"),
        (card(unknown=[["a", "b", "c"]]), "cards[0].unknown[0]"),
        (written(driver=[]), "driver"),
        (written(driver={"cuda_from": "guess"}), "driver.cuda_from"),
        (written(driver={"cuda_from": []}), "driver.cuda_from"),
        (written(pairs=[{"first": 0, "second": 1}]), "pairs[0].link"),
        (written(surroundings=None), "surroundings"),
    ],
)
def test_what_cannot_be_a_machine_is_refused_with_the_fields_name(value: object, field: str) -> None:
    with pytest.raises(UsageError) as caught:
        codec.from_json(value, where="box.json")
    assert f" a wrong {field}: " in caught.value.what
    assert (caught.value.where, bool(caught.value.remedy)) == ("box.json", True)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "nonsense", '{"cores": NaN}', '{"cores": 1e999}', b"\xff\xfe", "[" * 100_000,
        "[" * 100_000 + "]" * 100_000, '{"cores": ' + "9" * 10_000 + "}",
    ],
    ids=["nothing", "torn", "text", "NaN", "infinity", "bytes", "deep", "deep and whole", "long number"],
)  # fmt: skip
def test_hostile_text_is_refused(text: str | bytes) -> None:
    with pytest.raises(UsageError):
        codec.parse(text, where="box.json")


def test_one_value_can_be_read_by_itself() -> None:
    assert codec.facts(Pair, {"first": 0, "second": 1, "link": "SYS"}) == Pair(0, 1, "SYS")
    with pytest.raises(UsageError, match="wrong link"):
        codec.facts(Pair, {"first": 0, "second": 1, "link": 5})
