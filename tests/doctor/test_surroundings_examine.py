"""The whole examination: of a bare tree, of stand-ins for a driver, of a driver that never answers."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from casemate.doctor import bounded, codec, nvidia_smi_run
from casemate.doctor.checks.verdict import judge, overall
from casemate.doctor.machine import Pair
from casemate.doctor.probe import examine, measure
from conftest import Optional
from doctor.boxes import BARE, wheels
from doctor.test_checks_refusals import FAILED
from doctor.test_nvidia_smi_report import xml
from fakes.nvidia import build, compiler
from house.source import ROOT

MIB = 1 << 20
SMI = """\
#!/bin/sh
case "$*" in
    "-q -x") cat {folder}/report.xml ;;
    --query-gpu=*) echo "0, GPU-1, 9.0"; echo "1, GPU-2, 9.0" ;;
    -L) echo "GPU 0: Made-up card (UUID: GPU-1)"; echo "GPU 1: Made-up card (UUID: GPU-2)" ;;
    "topo -m") printf '\\tGPU0\\tGPU1\\nGPU0\\t X \\tNV4\\nGPU1\\tNV4\\t X \\n' ;;
    "topo -p2p r") printf ' \\tGPU0\\tGPU1\\n GPU0\\tX\\tOK\\n GPU1\\tOK\\tX\\n' ;;
esac
"""


def test_a_recorded_tree_without_anything_of_nvidia_has_no_card_and_says_why(tmp_path: Path) -> None:
    machine = examine(tmp_path, root=tmp_path)
    assert (machine.cards, machine.pairs, machine.driver, machine.packages) == ((), (), None, ())
    assert dict(machine.unknown)["cards"] == dict(machine.unknown)["driver"] != ""
    assert "surroundings.shm_total_bytes" in dict(machine.unknown)
    assert (machine.cores, machine.memory_total_bytes) == (
        (bare := measure(tmp_path, root=tmp_path)).cores, bare.memory_total_bytes,
    )  # fmt: skip


def test_a_loaded_module_is_a_driver_even_if_nobody_can_ask_it(tmp_path: Path) -> None:
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    (tmp_path / "sys/module/nvidia/version").write_text("580.159.04\n")
    machine = examine(tmp_path, root=tmp_path, model_folder=Path("/models/x"))
    assert machine.driver is not None
    assert (machine.driver.version, machine.driver.kernel_module) == ("580.159.04", "580.159.04")
    assert (machine.cards, machine.model_folder) == ((), "/models/x")


def test_this_host_can_be_examined_and_written_down(tmp_path: Path) -> None:
    machine = examine(tmp_path, variables={"PATH": "/usr/bin:/bin"})
    assert codec.parse(json.dumps(codec.to_json(machine))) == (machine, ())
    assert machine.cards or dict(machine.unknown)["cards"]
    assert machine.surroundings.shm_total_bytes is None or machine.surroundings.shm_total_bytes > 0


def test_the_environment_that_is_named_is_the_one_whose_packages_count(tmp_path: Path) -> None:
    site = tmp_path / "venv/lib/python3.12/site-packages/vllm-0.33.0.dist-info"
    site.mkdir(parents=True)
    (site / "METADATA").write_text("Name: vllm\nVersion: 0.33.0\n")
    machine = examine(tmp_path, root=tmp_path, environment=tmp_path / "venv")
    assert [(one.name, one.version) for one in machine.packages] == [("vllm", "0.33.0")]
    assert "packages.vllm.capabilities" in dict(machine.unknown)


def test_a_driver_with_both_libraries_is_examined_through_them(tmp_path: Path, optional: Optional) -> None:
    optional("a C compiler to build stand-ins for the driver's libraries", compiler())
    machine = examine(tmp_path, variables=build(tmp_path / "lib"))
    assert [card.uuid[:12] for card in machine.cards] == ["GPU-00000000", "GPU-00000001"]
    assert machine.driver is not None
    assert (machine.driver.cuda, machine.driver.cuinit, machine.driver.nvml) == ((13, 0), 0, 0)
    assert machine.pairs == (Pair(0, 1, "SYS", peer_access=False, why="CNS"),)
    assert not {"cards", "driver", "driver.cuinit", "driver.nvml", "nvidia-smi"} & set(dict(machine.unknown))


def smi(folder: Path, text: str = SMI) -> dict[str, str]:
    """A stand-in for nvidia-smi, and the variables with which it is found."""
    one = xml()
    first, _, rest = one.partition("<gpu id")
    card = "<gpu id" + rest[: rest.index("</gpu>")] + "</gpu>"
    second = card.replace("GPU-1", "GPU-2").replace("C1:00.0", "C2:00.0")
    (folder / "report.xml").write_text(f"{first}{card}{second}</nvidia_smi_log>")
    (folder / "nvidia-smi").write_text(text.format(folder=folder))
    (folder / "nvidia-smi").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_nvidia_smi_is_asked_where_no_library_answers(tmp_path: Path) -> None:
    told = nvidia_smi_run.ask(smi(tmp_path))
    assert [card.compute_capability for card in told.cards] == [(9, 0), (9, 0)]
    assert [card.memory_total_bytes for card in told.cards] == [97871 * MIB] * 2
    assert told.pairs == (Pair(0, 1, "NV4", peer_access=True),)
    assert told.driver is not None
    assert told.driver.version == "580.1"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("#!/bin/sh\necho 'Failed to initialize NVML: Unknown Error'; exit 255\n", "Failed to initialize NVML"),
        ("#!/bin/sh\nsleep 30\n", "no end within 0.3 s"),
        ("#!/bin/sh\necho '<nvidia_smi_log><gpu>'\n", "no report of nvidia-smi"),
        ("no program at all", "cannot start"),
    ],
    ids=["fails", "hangs", "torn", "no program"],
)
def test_an_nvidia_smi_that_fails_or_hangs_is_told_by_its_words(script: str, why: str, tmp_path: Path) -> None:
    told = nvidia_smi_run.ask(smi(tmp_path, script), limit_s=0.3)
    assert told.cards == ()
    assert why in dict(told.unknown)["nvidia-smi"]
    assert told.driver is not None or "no report" in why, "a tool that comes with a driver is there"


@pytest.mark.parametrize(
    "script",
    ["#!/bin/sh\nsleep 30\n", f"#!/bin/sh\necho {shlex.quote(FAILED)}; exit 9\n", "#!/bin/sh\nexit 1\n"],
    ids=["hangs", "fails with words", "fails without"],
)
def test_a_host_whose_nvidia_smi_does_not_answer_is_never_called_well(script: str, tmp_path: Path) -> None:
    told = nvidia_smi_run.ask(smi(tmp_path, script), limit_s=0.3)
    machine = replace(BARE, driver=told.driver, unknown=told.unknown)
    verdicts = judge(machine, wheels())
    assert overall(verdicts) == "fail"
    assert not any("no driver" in check.found for check in verdicts)


def test_a_program_that_leaves_somebody_holding_its_pipes_does_not_hold_us() -> None:
    """The nearest to a process that no signal reaches: it is out of the killed group, and keeps the pipes."""
    began = time.monotonic()
    heard = bounded.hear(
        ["/bin/sh", "-c", "echo told; setsid sleep 1 & exit 0"], limit_s=0.3, environment={"PATH": "/usr/bin:/bin"}
    )
    assert (heard.stdout, heard.broken) == ("told\n", "no end within 0.3 s")
    assert time.monotonic() - began < 0.9


def test_the_doctor_needs_the_standard_library_alone() -> None:
    """A box before any installation: it is examined with a bare Python."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); from casemate.doctor import probe, codec, recorded"
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, str(ROOT / "src")], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
