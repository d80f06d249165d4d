"""What people read when they ask for help, word for word."""

import pytest
from syrupy.assertion import SnapshotAssertion

from casemate.cli import loader, main


@pytest.mark.parametrize("verb", ["", *loader.VERBS])
def test_the_help_reads_like_this(
    verb: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    with pytest.raises(SystemExit):
        main.run([*filter(None, [verb]), "--help"])
    assert capsys.readouterr().out == snapshot
