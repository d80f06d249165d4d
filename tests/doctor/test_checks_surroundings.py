from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from casemate.doctor.checks.model import Model
from casemate.doctor.machine import Machine
from doctor.boxes import BARE, BOX, CARD, GIB, around, check, driven, each, ids

MIB = 1 << 20


@pytest.mark.parametrize(
    ("total", "free", "verdict"),
    [
        (64 * MIB, 64 * MIB, "fail"),
        (16 * GIB, 16 * GIB, "ok"),
        (16 * GIB, 100 * MIB, "fail"),
        (16 * GIB, None, "ok"),
        (None, None, "unknown"),
    ],
)
def test_two_cards_talk_through_shared_memory_and_a_containers_default_is_too_small(
    total: int | None, free: int | None, verdict: str
) -> None:
    assert check("limits.shared-memory", around(shm_total_bytes=total, shm_free_bytes=free)).verdict == verdict


def test_one_card_talks_to_nobody_and_the_remedy_fits_where_we_are() -> None:
    alone = replace(BOX, cards=(CARD,), pairs=())
    small = around(alone, shm_total_bytes=64 * MIB, container="docker")
    assert check("limits.shared-memory", small).verdict == "warn"
    assert "--ipc=host" in check("limits.shared-memory", small).remedy
    assert "remount" in check("limits.shared-memory", around(shm_total_bytes=64 * MIB)).remedy


@pytest.mark.parametrize(("limit", "verdict"), [(None, "ok"), (65536, "warn"), (GIB, "ok")])
def test_locked_memory_may_be_without_a_limit(limit: int | None, verdict: str) -> None:
    assert check("limits.locked-memory", around(memlock_bytes=limit)).verdict == verdict


@pytest.mark.parametrize(("limit", "verdict"), [(1024, "warn"), (65536, "ok"), (None, "unknown")])
def test_few_open_files_end_in_failing_requests(limit: int | None, verdict: str) -> None:
    assert check("limits.open-files", around(BARE, open_files=limit)).verdict == verdict


def test_where_no_limit_at_all_was_told_none_is_called_unlimited() -> None:
    assert check("limits.locked-memory", around(open_files=None)).verdict == "unknown"


def test_a_host_with_too_little_memory_for_the_cpu_engine_is_warned() -> None:
    assert check("limits.memory", replace(BARE, memory_available_bytes=GIB)).verdict == "warn"


@pytest.mark.parametrize(
    ("fact", "id_"), [("memory_available_bytes", "limits.memory"), ("disk_free_bytes", "model.disk")]
)
def test_what_a_recording_does_not_tell_of_the_host_is_unknown_and_not_zero(fact: str, id_: str) -> None:
    assert check(id_, replace(BARE, unknown=((fact, "no text tells it"),))).verdict == "unknown"


NODE = ("/dev/nvidia0", "/dev/nvidiactl")


@pytest.mark.parametrize(
    ("access", "remedy"),
    [
        ("selinux enforcing", "container_use_devices"),
        ("apparmor enforce", "apparmor=unconfined"),
        ("apparmor unconfined", "group"),
        ("selinux permissive", "group"),
        ("", "--gpus all"),
    ],
)
def test_device_nodes_that_may_not_be_opened_fail_with_the_remedy_for_who_forbids_it(access: str, remedy: str) -> None:
    found = check("container.device-nodes", denying("/dev/nvidia0", mandatory_access=access))
    assert found.verdict == "fail"
    assert "/dev/nvidia0" in found.found
    assert remedy in found.remedy


def denying(*nodes: str, machine: Machine = BOX, **facts: Any) -> Machine:
    """The machine with these nodes denied, and CUDA that finds no device."""
    return driven(around(machine, device_nodes_denied=nodes, **facts), cuinit=100)


def test_nodes_that_no_engine_needs_may_be_denied_and_those_of_slices_only_where_there_are_none() -> None:
    assert check("container.device-nodes", denying("/dev/nvidia-modeset", "/dev/nvidia-uvm-tools")).verdict == "ok"
    caps = "/dev/nvidia-caps/nvidia-cap2"
    assert check("container.device-nodes", denying(caps)).verdict == "ok"
    assert check("container.device-nodes", denying(caps, machine=each(mig="1g.12gb"))).verdict == "fail"


def test_a_user_who_was_given_some_cards_of_many_is_only_warned() -> None:
    assert check("container.device-nodes", around(device_nodes_denied=("/dev/nvidia7",))).verdict == "warn"


def test_selinux_that_enforces_and_denies_nothing_is_no_trouble() -> None:
    machine = around(mandatory_access="selinux enforcing")
    assert check("container.mandatory-access", machine).verdict == "ok"
    assert check("container.device-nodes", machine).verdict == "ok"
    denied = around(machine, device_nodes_denied=NODE[:1])
    assert check("container.mandatory-access", denied).verdict == "warn"


def test_a_container_that_was_started_without_its_cards_fails_and_one_on_a_host_without_any_does_not() -> None:
    without = around(BARE, container="docker", pci_cards=(("0000:06:00.0", 0x2335),))
    found = check("container.runtime", without)
    assert found.verdict == "fail"
    assert "--gpus all" in found.remedy
    assert "container.runtime" not in ids(around(BARE, container="docker"))
    assert check("container.runtime", around(container="podman")).verdict == "ok"


def test_whether_models_outlive_a_container_is_not_claimed() -> None:
    assert check("container.model-cache", around(container="docker")).verdict == "unknown"
    assert "container.model-cache" not in ids(BOX)
    assert "container.model-cache" not in ids(around(BARE, container="docker"))


def setting(machine: Machine = BOX, **variables: str) -> Machine:
    """The machine with these variables."""
    return around(machine, variables=tuple(variables.items()))


@pytest.mark.parametrize(
    ("value", "verdict"),
    [
        ("", "fail"),
        ("-1", "fail"),
        ("0,1", "ok"),
        ("GPU-0a,GPU-1", "ok"),
        ("0,GPU-1b", "ok"),
        ("GPU-0a", "warn"),
        ("1", "warn"),
        ("0,7", "warn"),
        ("GPU-ff", "warn"),
    ],
)
def test_cards_that_a_variable_hides_are_told(value: str, verdict: str) -> None:
    assert check("container.visible-devices", setting(CUDA_VISIBLE_DEVICES=value)).verdict == verdict


def test_a_container_that_is_told_to_get_no_card_gets_none() -> None:
    void = setting(around(BARE, container="docker", device_nodes=NODE), NVIDIA_VISIBLE_DEVICES="void")
    assert check("container.visible-devices", void).verdict == "fail"
    assert "container.visible-devices" not in ids(setting(NVIDIA_VISIBLE_DEVICES="void"))


@pytest.mark.parametrize(
    ("written", "said"),
    [("8.0;8.6", True), ("8.6", True), ("8.0;9.0", False), ("9.0a", False), ("8.0+PTX", False), ("", False)],
)
def test_a_list_of_architectures_that_leaves_the_card_out_is_told(*, written: str, said: bool) -> None:
    assert ("container.toolkit-variables" in ids(setting(TORCH_CUDA_ARCH_LIST=written))) == said


@pytest.mark.parametrize(("home", "said"), [(":/usr/local/cuda", True), ("/usr/local/cuda", False), ("", False)])
def test_a_cuda_home_that_is_a_search_path_is_told(*, home: str, said: bool) -> None:
    assert ("container.toolkit-variables" in ids(setting(CUDA_HOME=home))) == said


@pytest.mark.parametrize(
    ("free", "model", "verdict"),
    [
        (10 * GIB, None, "warn"),
        (60 * GIB, None, "warn"),
        (900 * GIB, None, "ok"),
        (60 * GIB, Model("m", 150 * GIB, 46), "ok"),
        (60 * GIB, Model("m", 0, 0, "cut off"), "warn"),
    ],
)
def test_the_disk_has_room_for_what_is_still_to_come(free: int, model: Model | None, verdict: str) -> None:
    assert check("model.disk", replace(BOX, disk_free_bytes=free), model=model).verdict == verdict


def test_a_host_without_cards_needs_no_room_for_a_model_of_cards() -> None:
    assert check("model.disk", BARE).verdict == "ok"


def test_a_model_folder_is_whole_or_says_what_is_wrong_with_it() -> None:
    assert check("model.folder", BARE, model=Model("m", 3 * GIB, 2)).found == "m: 2 files, 3.0 GiB"
    broken = check("model.folder", BARE, model=Model("m", 0, 0, "the weight file b is not there"))
    assert broken.verdict == "fail"
    assert "the weight file b is not there" in broken.found
    assert check("model.folder", replace(BARE, model_folder="/models/m")).verdict == "unknown"
    assert "model.folder" not in ids(each())
