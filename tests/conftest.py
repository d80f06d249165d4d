"""What every test gets: a clean environment, an empty home, and a look at what it left behind.

artifacts    the user's real folder of pinned bytes (read-only by agreement)
model_file   the 0.5B model in it; tests that ask for it carry `@pytest.mark.model`
home         this test's HOME; under `model` its `.casemate/artifacts` holds the artefacts as hard links
optional     `optional("the reason", present)`: skips where optional material is absent, and counts it aloud
"""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pytest

from casemate import settings
from homes import furnish
from leftovers import MARK, Trace, left_since, traces

MODEL = "qwen2.5-coder-0.5b.gguf"

_FOREIGN = ("CASEMATE_", "PIP_", "OPENAI_", "XDG_", "HF_")
_FOREIGN_NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "force_color", "no_color")
_SAME_EVERYWHERE = {"COLUMNS": "100", "LINES": "40", "TERM": "dumb", "LC_ALL": "C.UTF-8", "TZ": "UTC"}

_ARTIFACTS = pytest.StashKey[Path]()
_NOT_RUN = pytest.StashKey[Counter[str]]()
_BEFORE = pytest.StashKey[frozenset[Trace]]()


class Optional(Protocol):
    """What the fixture `optional` hands out."""

    def __call__(self, reason: str, present: object) -> None:
        """Go on if `present` is true; otherwise count `reason` and skip."""


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_ARTIFACTS] = settings.load().artifacts
    config.stash[_NOT_RUN] = Counter()
    os.environ.__setitem__(*MARK)


def pytest_unconfigure() -> None:
    os.environ.pop(MARK[0], None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    not_run = config.stash[_NOT_RUN]
    terminalreporter.section("optional checks")
    for reason, count in sorted(not_run.items()):
        terminalreporter.line(f"{count} optional check{'s' * (count > 1)} did not run: {reason}")
    if not not_run:
        terminalreporter.line("every optional check that was asked for did run")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """After a test and its fixtures: what is there that was not there before is a failure, and is ended."""
    yield
    before = item.stash.get(_BEFORE, None)
    left = left_since(before) if before is not None else frozenset()
    for trace in left:
        if trace.pid:
            with suppress(ProcessLookupError):
                os.kill(trace.pid, signal.SIGKILL)
    if left:
        pytest.fail("left behind: " + "; ".join(sorted(map(str, left))), pytrace=False)


@pytest.fixture(scope="session")
def artifacts(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.stash[_ARTIFACTS]


@pytest.fixture(scope="session")
def model_file(artifacts: Path) -> Path:
    path = artifacts / MODEL
    if not path.is_file():
        pytest.fail(f"{path} is absent: run make test, which fetches it", pytrace=False)
    return path


@pytest.fixture
def optional(pytestconfig: pytest.Config) -> Optional:
    def go_on(reason: str, present: object) -> None:
        if not present:
            pytestconfig.stash[_NOT_RUN][reason] += 1
            pytest.skip(reason)

    return go_on


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Path]:
    base = tmp_path_factory.getbasetemp()
    home = base / "home"
    home.mkdir(mode=0o700)
    if request.node.get_closest_marker("model"):
        furnish(home / ".casemate", request.config.stash[_ARTIFACTS], base / "artifacts")
    yield home
    shutil.rmtree(home)


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_the_user() -> Iterator[None]:
    """No setting, key or proxy of the user reaches a test or a fixture; the terminal is the same everywhere."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(_FOREIGN) or name.lower() in _FOREIGN_NAMES:
            del os.environ[name]
    os.environ.update(_SAME_EVERYWHERE)
    yield
    _restore(before)


@pytest.fixture(autouse=True)
def _own_environment(home: Path) -> Iterator[None]:
    """Whatever a test does to the environment ends with it."""
    before = dict(os.environ)
    os.environ["HOME"] = str(home)
    yield
    _restore(before)


@pytest.fixture(autouse=True)
def _look_before(request: pytest.FixtureRequest) -> None:
    """Set up after the servers of wider scope, which may outlive the test."""
    request.node.stash[_BEFORE] = traces()


def _restore(environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
