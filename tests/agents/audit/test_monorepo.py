"""Several projects in one tree: equal names of modules do not collide, each import means the nearest."""

from __future__ import annotations

import pytest

from casemate.agents.audit.facts.summary import Module
from casemate.agents.audit.facts.syntax import parse
from casemate.agents.audit.flow.statements import summarize
from casemate.agents.audit.linking.link import Reached, link

_WEAK = "import os\ndef act(x):\n    os.system('ls ' + x)\n"
_SAFE = "def act(x):\n    return len(x)\n"
_CLASS = "import os\nclass Runner:\n    def go(self, x):\n        os.system('ls ' + x)\n"
_TAME = "class Runner:\n    def go(self, x):\n        return len(x)\n"


def _found(files: dict[str, str]) -> list[str]:
    modules: list[Module] = [summarize(parse(text, path)) for path, text in files.items()]
    return [real.hit.location.path for real in link(modules) if isinstance(real, Reached)]


@pytest.mark.parametrize(
    ("use", "weak", "safe"),
    [
        ("import app\napp.act(input())\n", _WEAK, _SAFE),
        ("from app import act\nact(input())\n", _WEAK, _SAFE),
        ("import app as other\nother.act(input())\n", _WEAK, _SAFE),
        ("from app import Runner\nRunner().go(input())\n", _CLASS, _TAME),
        ("from app import Runner\nclass Mine(Runner):\n    pass\nMine().go(input())\n", _CLASS, _TAME),
    ],
)
@pytest.mark.parametrize(
    ("module", "user"),
    [
        ("services/{}/app.py", "services/{}/main.py"),
        ("{}/src/app.py", "{}/src/main.py"),
        ("{}/src/app.py", "{}/tests/test_it.py"),
        ("{}/app/__init__.py", "{}/scripts/run.py"),
    ],
)
def test_an_import_means_the_module_of_its_own_project(use: str, weak: str, safe: str, module: str, user: str) -> None:
    files = {module.format("a"): weak, user.format("a"): use, module.format("b"): safe, user.format("b"): use}
    assert _found(files) == [module.format("a")]


def test_a_module_beside_the_script_wins_over_one_at_the_top() -> None:
    assert _found({"app.py": _SAFE, "a/app.py": _WEAK, "a/main.py": "import app\napp.act(input())\n"}) == ["a/app.py"]


def test_a_module_of_nobody_nearer_is_left_undecided() -> None:
    assert _found({"a/app.py": _WEAK, "b/app.py": _SAFE, "c/main.py": "import app\napp.act(input())\n"}) == []


def test_a_module_that_no_other_shares_its_name_with_is_found_as_before() -> None:
    assert _found({"deep/src/app.py": _WEAK, "tools/main.py": "import app\napp.act(input())\n"}) == ["deep/src/app.py"]
