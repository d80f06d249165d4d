from __future__ import annotations

from dataclasses import replace

import pytest

from casemate.doctor.checks.architecture import Reach, reach
from casemate.doctor.machine import Package
from doctor.boxes import BARE, BOX, ENGINE, FLASHINFER, TORCH, around, check, driven, each, holding, ids


def test_cards_without_an_engine_stay_idle_and_the_advice_is_named() -> None:
    found = check("packages.engine", holding())
    assert found.verdict == "warn"
    assert "--advise" in found.remedy
    assert not {"packages.pins", "packages.cuda", "packages.architectures"} & ids(holding())
    assert "packages.pins" not in ids(holding(TORCH))


def test_packages_that_could_not_be_looked_at_are_unknown() -> None:
    unseen = replace(holding(), unknown=(("packages", "no permission"),))
    assert check("packages.engine", unseen).verdict == "unknown"


def test_a_host_without_cards_is_not_asked_for_packages() -> None:
    assert not [item for item in ids(replace(BARE, packages=BOX.packages)) if item.startswith("packages.")]


def test_a_torch_that_the_engine_was_not_built_with_fails() -> None:
    found = check("packages.pins", holding(ENGINE, replace(TORCH, version="2.13.0+cu130"), FLASHINFER))
    assert found.verdict == "fail"
    assert "vllm 0.33.0 wants torch 2.14.0, 2.13.0+cu130 is installed" in found.found


def test_a_local_version_satisfies_its_public_one() -> None:
    assert check("packages.pins", BOX).verdict == "ok"


@pytest.mark.parametrize(
    "requirement", ["torch==2.13.0", "Torch == 2.13.0", "torch[opt]==2.13.0; python_version > '3'"]
)
def test_a_pin_is_read_in_every_spelling(requirement: str) -> None:
    assert check("packages.pins", holding(replace(ENGINE, requires=(requirement,)), TORCH)).verdict == "fail"


@pytest.mark.parametrize("requirement", ["torch>=2.13.0", "torch==2.*", "torchaudio==2.11.0"])
def test_what_is_no_exact_pin_of_an_installed_package_contradicts_nothing(requirement: str) -> None:
    assert check("packages.pins", holding(replace(ENGINE, requires=(requirement,)), TORCH)).verdict in ("ok", "unknown")


def test_another_flashinfer_or_kernels_of_another_release_are_a_warning() -> None:
    other = holding(ENGINE, TORCH, replace(FLASHINFER, version="0.6.14"))
    assert check("packages.pins", other).verdict == "warn"
    kernels = holding(ENGINE, TORCH, FLASHINFER, Package("flashinfer-cubin", "0.6.14"))
    found = check("packages.pins", kernels)
    assert found.verdict == "warn"
    assert "flashinfer-cubin 0.6.14" in found.found


def test_packages_of_two_environments_do_not_contradict_each_other() -> None:
    elsewhere = replace(TORCH, version="2.11.0", location="/other")
    machine = holding(replace(ENGINE, location="/one"), replace(TORCH, location="/one"), elsewhere)
    assert check("packages.pins", machine).verdict == "ok"


def test_an_engine_whose_pins_are_not_told_is_unknown() -> None:
    assert check("packages.pins", holding(replace(ENGINE, requires=()), TORCH)).verdict == "unknown"


def test_a_build_for_a_later_cuda_major_than_the_drivers_does_not_start() -> None:
    found = check("packages.cuda", driven(cuda=(12, 8)))
    assert found.verdict == "fail"
    assert "the driver offers 12.8" in found.found
    assert check("packages.cuda", driven(cuda=(13, 2))).verdict == "ok"


def test_a_build_for_twelve_nine_starts_on_a_driver_of_twelve_two() -> None:
    older = driven(holding(replace(ENGINE, cuda_major=12), replace(TORCH, cuda=(12, 9))), cuda=(12, 2))
    assert check("packages.cuda", older).verdict == "ok"


def test_torch_and_engine_for_two_cuda_majors_do_not_load_together() -> None:
    found = check("packages.cuda", holding(ENGINE, replace(TORCH, cuda=(12, 6))))
    assert found.verdict == "fail"
    assert "libcudart" in found.why


def test_a_torch_for_processors_only_never_sees_a_card() -> None:
    found = check("packages.cuda", holding(ENGINE, replace(TORCH, version="2.14.0+cpu", cuda=None)))
    assert found.verdict == "fail"
    assert "processors only" in found.why


def test_a_build_of_which_the_cuda_is_not_told_is_unknown() -> None:
    assert check("packages.cuda", holding(replace(ENGINE, cuda_major=None), TORCH)).verdict == "unknown"
    assert check("packages.cuda", driven(cuda=None)).verdict == "unknown"


@pytest.mark.parametrize(
    ("inside", "card", "how"),
    [
        (("9.0",), (9, 0), "native"),
        (("8.0",), (8, 6), "native"),
        (("8.6",), (8, 0), "none"),
        (("8.0",), (9, 0), "none"),
        (("9.0a",), (9, 0), "native"),
        (("10.0a",), (10, 3), "none"),
        (("10.0f",), (10, 3), "native"),
        (("10.0f",), (12, 0), "none"),
        (("12.0",), (12, 1), "native"),
        (("8.0+PTX",), (9, 0), "compiled by the driver"),
        (("9.0+PTX",), (8, 0), "none"),
        (("9.0a+PTX",), (10, 0), "none"),
        (("8.0", "9.0"), (9, 0), "native"),
        ((), (9, 0), "unknown"),
        (("nonsense",), (9, 0), "unknown"),
    ],
)
def test_what_is_inside_a_binary_reaches_a_card_by_cudas_rules(
    inside: tuple[str, ...], card: tuple[int, int], how: Reach
) -> None:
    assert reach(inside, card, built=(13, 0), driver=(13, 0)) == how


def test_a_driver_compiles_only_what_a_toolkit_of_its_own_age_or_older_wrote() -> None:
    assert reach(("8.0+PTX",), (9, 0), built=(12, 9), driver=(12, 2)) == "too new"
    assert reach(("8.0+PTX",), (9, 0), built=None, driver=(12, 2)) == "unknown"


def test_a_build_without_code_for_the_card_is_the_missing_kernel_image() -> None:
    found = check("packages.architectures", holding(replace(ENGINE, capabilities=("8.0", "8.6")), TORCH))
    assert found.verdict == "fail"
    assert "no kernel image" in found.why
    assert "TORCH_CUDA_ARCH_LIST" in found.remedy


def test_code_that_the_driver_must_compile_is_a_slow_first_start() -> None:
    assert check("packages.architectures", holding(ENGINE, replace(TORCH, capabilities=("8.0+PTX",)))).verdict == "warn"


def test_a_binary_that_nobody_could_look_into_is_unknown() -> None:
    blind = replace(
        holding(ENGINE, replace(TORCH, capabilities=())), unknown=(("packages.torch.capabilities", "no permission"),)
    )
    found = check("packages.architectures", blind)
    assert found.verdict == "unknown"
    assert "no permission" in found.found


@pytest.mark.parametrize(
    ("nvcc", "capability", "verdict"),
    [
        ("13.0.88", (9, 0), "ok"),
        ("12.3.103", (9, 0), "ok"),
        ("12.1.105", (9, 0), "fail"),
        ("12.6.85", (10, 0), "fail"),
        ("12.9.86", (10, 0), "ok"),
        ("", (9, 0), "warn"),
        ("", (8, 0), "ok"),
        ("11.8.89", (8, 0), "ok"),
    ],
)
def test_a_toolkit_is_wanted_only_where_kernels_are_compiled_and_an_old_one_is_worse_than_none(
    nvcc: str, capability: tuple[int, int], verdict: str
) -> None:
    assert check("packages.nvcc", around(each(compute_capability=capability), nvcc=nvcc)).verdict == verdict


@pytest.mark.parametrize(
    ("compilers", "verdict"),
    [((), "warn"), (("ninja",), "warn"), (("gcc", "ninja"), "ok"), (("clang-19", "ninja"), "ok")],
)
def test_the_first_kernel_wants_a_c_compiler(compilers: tuple[str, ...], verdict: str) -> None:
    assert check("packages.compiler", around(compilers=compilers)).verdict == verdict


def test_ninja_is_wanted_where_kernels_are_not_ready_made() -> None:
    assert check("packages.compiler", around(compilers=("cc",))).verdict == "warn"
    ready = holding(ENGINE, TORCH, FLASHINFER, Package("flashinfer-cubin", FLASHINFER.version))
    assert check("packages.compiler", around(ready, compilers=("cc",))).verdict == "ok"
