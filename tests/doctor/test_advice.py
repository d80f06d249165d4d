from __future__ import annotations

import re
from dataclasses import replace

import pytest

from casemate.doctor import engines
from casemate.doctor.advice import Install, Instead, advise
from casemate.doctor.engines import Wheel
from casemate.doctor.machine import Machine
from doctor.boxes import BARE, BOX, around, driven, each, second, wheels


def installed(machine: Machine, table: tuple[Wheel, ...] = wheels()) -> Install:
    """The advice, which must be to install."""
    found = advise(machine, table)
    assert isinstance(found, Install), found
    return found


def instead(machine: Machine, table: tuple[Wheel, ...] = wheels()) -> Instead:
    """The advice, which must be something else."""
    found = advise(machine, table)
    assert isinstance(found, Instead), found
    return found


def test_a_driver_of_thirteen_gets_the_newest_engine_with_every_digest() -> None:
    found = installed(BOX)
    assert found.cuda[0] == 13
    assert found.release == max((wheel.release for wheel in wheels()), key=engines.order)
    assert [line.partition("==")[0] for line in found.lock] == [
        "vllm", "torch", "torchvision", "torchaudio", "flashinfer-python",
    ]  # fmt: skip
    assert all(re.fullmatch(r"[a-z-]+==[\w.+]+ --hash=sha256:[0-9a-f]{64}", line) for line in found.lock)
    assert all("resolved by uv" in note for note in found.notes)
    assert "--torch-backend" not in found.command
    assert "-r engine.lock" in found.command


def test_a_driver_of_twelve_gets_an_older_release_and_the_reason_and_what_a_newer_driver_would_allow() -> None:
    found = installed(driven(version="535.129.03", cuda=(12, 2)))
    assert found.cuda[0] == 12
    assert found.lock[0].startswith("vllm @ https://github.com/vllm-project/vllm/releases/download/")
    assert "--hash=sha256:" in found.lock[0]
    assert found.lock[1].startswith("torch==2.13.0+cu129")
    assert "--torch-backend cu129" in found.command
    assert any("535.129.03 offers CUDA 12.2" in reason for reason in found.reasons)
    assert any("R580 or newer" in note for note in found.notes)
    assert any("PTX" in note for note in found.notes)


def test_the_note_on_ptx_is_for_drivers_that_are_older_than_the_build() -> None:
    assert not any("PTX" in note for note in installed(driven(cuda=(12, 9))).notes)


def test_what_has_no_digest_is_pinned_without_one_and_said() -> None:
    found = installed(driven(cuda=(12, 8)))
    bare = [line.partition("==")[0] for line in found.lock if "--hash" not in line]
    assert bare
    assert any(all(name in note for name in bare) and "digest" in note for note in found.notes)


def test_digests_that_were_not_read_where_they_are_published_are_said_to_be_quoted() -> None:
    assert any("vllm, torch" in note and "quote" in note for note in installed(driven(cuda=(12, 8))).notes)


def test_a_release_of_which_only_the_name_is_known_is_told_and_not_taken() -> None:
    found = installed(driven(cuda=(12, 8)))
    later = [wheel for wheel in wheels() if not wheel.sha256 and wheel.package == engines.ENGINE]
    assert later
    assert {wheel.release for wheel in later}.isdisjoint({found.release})
    assert any(later[0].version in note and "digest is not known" in note for note in found.notes)


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
@pytest.mark.parametrize("python", ["3.11.7", "3.12.3", "3.13.1", "3.14.0"])
def test_digests_are_those_of_this_processor_and_this_python(architecture: str, python: str) -> None:
    found = installed(around(replace(BOX, architecture=architecture), python=python))
    assert found.python == engines.version(python)
    rows = {wheel.sha256: wheel for wheel in wheels()}
    used = [rows[line.partition("sha256:")[2]] for line in found.lock]
    assert all(wheel.architecture in ("any", architecture) for wheel in used)
    assert all(wheel.python is None or wheel.python[0] <= found.python <= wheel.python[1] for wheel in used)


@pytest.mark.parametrize("python", ["3.9.2", "3.15.0", "", "nonsense"])
def test_a_python_that_does_not_suit_is_replaced_by_one_that_does(python: str) -> None:
    found = installed(around(python=python))
    assert f"uv venv --python {found.python[0]}.{found.python[1]} " in found.command
    assert any("Python" in note for note in found.notes)
    assert all("--hash" in line for line in found.lock)


@pytest.mark.parametrize(
    ("machine", "what", "why"),
    [
        (BARE, "cpu", "no card"),
        (each(compute_capability=(6, 1)), "cpu", "7.5"),
        (replace(BOX, system="Darwin"), "cpu", "Linux"),
        (replace(BOX, architecture="riscv64"), "cpu", "riscv64"),
        (around(glibc="2.17"), "cpu", "glibc 2.17"),
        (driven(cuda=(11, 8)), "driver", "11.8"),
        (replace(BOX, driver=None), "driver", "no driver"),
        (around(BARE, pci_cards=(("0000:06:00.0", 0x2335),)), "driver", "no driver"),
        (driven(cuda=None), "measure", "not known"),
        (each(compute_capability=None), "measure", "not known"),
        (each(mig_parent=True), "measure", "slice"),
        (replace(BARE, unknown=(("cards", "GPU is lost"),)), "measure", "GPU is lost"),
    ],
)
def test_where_no_engine_for_cards_fits_it_is_said_what_to_do_instead(machine: Machine, what: str, why: str) -> None:
    found = instead(machine)
    assert found.what == what
    assert any(why in reason for reason in found.reasons)
    assert ("casemate up" in found.remedy) == (what == "cpu")


def test_an_old_driver_is_told_which_branch_offers_thirteen() -> None:
    assert "R580" in instead(driven(cuda=(11, 8))).remedy


def test_one_card_that_is_too_old_is_left_out() -> None:
    assert any("cards 1" in reason for reason in installed(second(compute_capability=(6, 1))).reasons)


def test_an_engine_for_a_driver_that_does_not_start_cuda_comes_with_that_word() -> None:
    assert any("802" in note for note in installed(driven(cuinit=802)).notes)


def test_an_empty_table_advises_nothing_to_install() -> None:
    assert instead(BOX, ()).what == "cpu"


def test_the_table_that_ships_is_whole() -> None:
    for wheel in wheels():
        assert wheel.source.startswith("https://"), wheel
        assert re.fullmatch(r"\d{4}-\d\d-\d\d(, as quoted)?", wheel.seen), wheel
        assert re.fullmatch(r"[0-9a-f]{64}|", wheel.sha256), wheel
        assert wheel.address == "" or wheel.address.startswith("https://"), wheel
        assert wheel.architecture in ("any", "x86_64", "aarch64"), wheel
    digests = [wheel.sha256 for wheel in wheels() if wheel.sha256]
    assert len(digests) == len(set(digests))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("535.129.03", (535, 129)),
        ("V13.0.88", (13, 0)),
        ("12.9", (12, 9)),
        ("12", None),
        ("", None),
        ("²².³", None),
        ("9" * 5000 + ".1", None),
    ],
)
def test_a_version_is_its_first_two_numbers_or_nothing(text: str, numbers: tuple[int, int] | None) -> None:
    assert engines.version(text) == numbers
