"""Which model the roof takes, on this machine and with these sources."""

from pathlib import Path

import pytest

from casemate import settings
from casemate.cli.choosing import RULES_ONLY, choose_model


@pytest.fixture(autouse=True)
def _offline_home_of_its_own(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEMATE_OFFLINE", "true")
    (home / ".casemate").mkdir(exist_ok=True)


def test_without_any_source_nothing_runs_and_every_step_down_is_told() -> None:
    chosen = choose_model(settings.load())
    assert chosen.plan is None
    assert chosen.note.name == ""
    assert chosen.note.note.startswith(RULES_ONLY)
    for step in (
        "qwen2.5-coder-1.5b → qwen2.5-coder-0.5b",
        "qwen2.5-coder-0.5b → smollm2-135m",
        "smollm2-135m → rules only",
    ):
        assert step in chosen.note.note


@pytest.mark.model
def test_the_largest_model_that_is_here_is_taken_and_the_step_is_told() -> None:
    chosen = choose_model(settings.load(model="qwen2.5-coder-1.5b", offline=True, context=1024))
    assert chosen.plan is not None
    assert Path(chosen.plan.path).is_file()
    assert (chosen.note.name == "qwen2.5-coder-1.5b") == (not chosen.note.note), "a step down is told, none is not"


@pytest.mark.model
def test_a_model_file_that_is_none_is_stepped_over(home: Path) -> None:
    config = settings.load(model="qwen2.5-coder-0.5b", offline=True)
    damaged = config.artifacts / "qwen2.5-coder-0.5b.gguf"
    damaged.unlink()
    damaged.write_bytes(b"not a model")
    chosen = choose_model(config)
    assert chosen.note.name != "qwen2.5-coder-0.5b"
    assert "qwen2.5-coder-0.5b →" in chosen.note.note
