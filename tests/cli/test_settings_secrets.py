"""A setting that is wrong is told without its value where the value may be a secret."""

from pathlib import Path

import pytest

from casemate import settings
from casemate.errors import SettingsError

_SECRET = "sk-0123456789abcdef"


@pytest.mark.parametrize("line", [f'engine_apikey = "{_SECRET}"', 'engine_api_key = ["' + _SECRET + '"]'])
def test_a_mistyped_secret_is_not_printed(home: Path, line: str) -> None:
    (home / ".casemate").mkdir(exist_ok=True)
    (home / ".casemate" / "casemate.toml").write_text(line + "\n")
    with pytest.raises(SettingsError) as refused:
        settings.load()
    assert _SECRET not in str(refused.value)
    assert refused.value.__cause__ is None, "the cause carries the value"
    assert "engine_api" in str(refused.value)


def test_a_value_that_means_nothing_is_told_with_its_name_and_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEMATE_PORT", "eighty")
    with pytest.raises(SettingsError, match=r"'port' is wrong: .* got 'eighty'"):
        settings.load()
