"""`casemate ask` without a model: what its exit code says of the answer."""

import json
from pathlib import Path

import pytest

from casemate.cli import main

CLEAN, FOUND, INCOMPLETE = 0, 1, 2


@pytest.fixture(autouse=True)
def _home_without_a_graph(home: Path) -> None:
    """No graph is built in the home folder of these tests."""


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ("Safe?\n```python\ntotal = sum(prices)\n```", CLEAN),
        ("Safe?\n```python\nimport os\ndef f(x):\n    os.system('ls ' + x)\n```", FOUND),
        ("Safe?\n```\ndef f(:\n```", INCOMPLETE),
        ("Safe?\n```js\neval(location.hash)\n```", INCOMPLETE),
        ("Safe?\n```py\nimport os\ndef f(x):\n    os.system('ls ' + x)\n```\n```js\neval(x)\n```", INCOMPLETE),
        ("What is SQL injection?", INCOMPLETE),
    ],
    ids=["nothing found", "found", "not Python", "another language", "found beside another language", "no graph"],
)
def test_an_answer_that_leaves_something_out_exits_2_and_says_what(
    question: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main.run(["ask", question, "--no-model", "--json"])
    assert stopped.value.code == code
    told = json.loads(capsys.readouterr().out)
    assert bool(told["incomplete"]) is (code == INCOMPLETE)
    assert told["incomplete"] in f"{told['text']}{told['parts']}"
