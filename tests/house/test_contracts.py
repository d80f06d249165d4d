"""The import contracts of pyproject.toml, shown to catch what they are for: the real lint-imports on a faulty copy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from house.source import PACKAGE, ROOT

_FLOORS = "Floors: imports only go down"
_WORK = "The work wing does not know the serving wing"
_SERVING = "The serving wing does not know the work wing, nor the graph"
_CYCLES = "No cycles at any depth"
_PURE = "Pure rooms touch no world"

# what is written where, and the contract that must break by it
_FAULTS = [
    ("utils.py", "", _FLOORS),
    ("helpers/__init__.py", "", _FLOORS),
    ("web/fault.py", "from casemate.cli import fault\n", _FLOORS),
    ("errors.py", "import casemate.finding\n", _FLOORS),
    ("chat/fault.py", "import casemate.knowledge\n", _FLOORS),
    ("doctor/fault.py", "import casemate.checkpoint.facts\n", _FLOORS),
    ("agents/fault.py", "from casemate.engine import interface\n", _WORK),
    ("agents/audit/fault.py", "import casemate.gateway\n", _WORK),
    ("agents/fault.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import casemate.engine\n", _WORK),
    ("gateway/fault.py", "import casemate.knowledge\n", _SERVING),
    ("engine/fault.py", "def late():\n    import casemate.agents.audit\n", _SERVING),
    ("chat/wire.py", "from casemate.chat import model\n", _CYCLES),
    ("plan/fault.py", "import casemate.process\n", _PURE),
    ("plan/fault.py", "import subprocess\n", _PURE),
    ("gateway/fault.py", "import socket\n", _PURE),
    ("report/fault.py", "import casemate.settings\n", _PURE),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package and its contracts, free to be spoilt."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / PACKAGE, tmp_path / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / PACKAGE / "cli" / "fault.py").write_text("")
    return tmp_path


def test_the_tree_as_it_is_keeps_every_contract(copy: Path) -> None:
    assert _broken(copy) == set()


@pytest.mark.parametrize(("path", "text", "contract"), _FAULTS)
def test_a_planted_fault_breaks_its_contract(copy: Path, path: str, text: str, contract: str) -> None:
    target = copy / PACKAGE / path
    target.parent.mkdir(exist_ok=True)
    with target.open("a", encoding="utf-8") as file:
        file.write(text)
    assert contract in _broken(copy)


def _broken(copy: Path) -> set[str]:
    """Names of the contracts that lint-imports calls broken in the copy."""
    ran = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    broken = {line.removesuffix(" BROKEN") for line in ran.stdout.splitlines() if line.endswith(" BROKEN")}
    assert ran.returncode == bool(broken), ran.stdout + ran.stderr
    assert "Contracts: " in ran.stdout, ran.stdout + ran.stderr
    return broken
