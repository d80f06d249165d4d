"""Whole stories with the real small model, told by the installed command and by a client that users have."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from openai import OpenAI

from homes import furnish
from house.source import ROOT

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(600)]

_CASEMATE = Path(sys.executable).with_name("casemate")
_MODEL = "qwen2.5-coder-0.5b"
_IS_IT_INJECTION = """这段 Python 代码有没有 SQL 注入风险？如何修复？
import sqlite3
def get_user(user_id):
    conn = sqlite3.connect("app.db")
    cursor = conn.cursor()
    cursor.execute("SELECT * FROM users WHERE id = " + user_id)
    return cursor.fetchone()"""
_HELLO: list[Any] = [{"role": "user", "content": "Say hello in one short sentence."}]


@dataclass(frozen=True, slots=True)
class Traveller:
    """A user with a home of their own."""

    home: Path

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"HOME": str(self.home), "CASEMATE_OFFLINE": "true"}

    def casemate(self, *arguments: str, expect: tuple[int, ...] = (0,)) -> str:
        """What the command prints; its exit code must be one of those expected."""
        command = [str(_CASEMATE), *arguments]
        ran = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=500, check=False
        )
        assert ran.returncode in expect, f"{arguments}: {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout

    def json(self, *arguments: str, expect: tuple[int, ...] = (0,)) -> Any:
        """The command's JSON."""
        document = json.loads(self.casemate(*arguments, "--format", "json", expect=expect))
        assert document["schema_version"] == 1
        return document

    @contextmanager
    def up(self) -> Iterator[subprocess.Popen[bytes]]:
        """The platform with the small model on a free port, ready; told to stop at the end if it still runs."""
        said = self.home / "up.log"
        with said.open("wb") as log:
            command = [str(_CASEMATE), "up", "--port", "0", "--model", _MODEL]
            platform = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)
        try:
            self._wait_until_ready(platform)
            yield platform
        except AssertionError:
            print(said.read_text())
            raise
        finally:
            platform.terminate()
            platform.wait(30)

    def _wait_until_ready(self, platform: subprocess.Popen[bytes]) -> None:
        for _ in range(60):
            assert platform.poll() is None, f"the platform ended with {platform.returncode} before it was ready"
            if self.json("status", "--wait", "3", expect=(0, 2)).get("ready"):
                return
        pytest.fail("the platform was not ready in three minutes")


@pytest.fixture(scope="module")
def traveller(tmp_path_factory: pytest.TempPathFactory, artifacts: Path, model_file: Path) -> Traveller:
    home = tmp_path_factory.mktemp("traveller")
    for pattern in (model_file.name, "*[!f]"):  # one model; the graph's sources, which do not end in gguf
        furnish(home / ".casemate", artifacts, home / "spare", pattern=pattern)
    traveller = Traveller(home)
    traveller.casemate("kb", "build")
    return traveller


@pytest.fixture(scope="module")
def arrived(traveller: Traveller) -> Iterator[Traveller]:
    with traveller.up():
        yield traveller


@pytest.fixture
def client(arrived: Traveller) -> Iterator[OpenAI]:
    address = arrived.json("status")["url"]
    with OpenAI(base_url=f"{address}/v1", api_key="unused", max_retries=0) as client:
        yield client


def test_the_status_tells_the_address_and_which_model_speaks(arrived: Traveller) -> None:
    status = arrived.json("status")
    assert urlsplit(status["url"]).hostname == "127.0.0.1"
    assert _MODEL in status["model"]
    assert arrived.json("status").keys() == json.loads(arrived.casemate("status", "--json")).keys()


def test_the_question_of_every_guide_gets_its_four_parts_in_chinese(arrived: Traveller) -> None:
    answer = arrived.json("ask", _IS_IT_INJECTION, expect=(1,))
    assert "CWE-89" in _values(answer, "cwe")
    assert set(_values(answer, "severity")) & {"high", "critical"}
    corrected = "\n".join(_values(answer, "fix"))
    assert "?" in corrected
    assert '" + user_id' not in corrected
    compile(corrected, "<corrected>", "exec")
    assert [clauses for clauses in _values(answer, "clauses") if clauses]
    assert _MODEL in json.dumps(answer["model"])
    shown = arrived.casemate("ask", _IS_IT_INJECTION, expect=(1,))
    assert "CWE-89" in shown
    assert any("\u4e00" <= letter <= "\u9fff" for letter in shown)


def test_a_question_in_english_gets_an_answer_whose_citations_are_checked(arrived: Traveller) -> None:
    answer = arrived.json("ask", "How does server-side request forgery work, and how do I defend against it?")
    assert len("".join(_values(answer, "text")).split()) > 20
    citations = [citation for found in _values(answer, "citations") for citation in found]
    assert "CWE-918" in {citation["id"] for citation in citations}
    assert all(citation["grade"] == "H0" for citation in citations if citation["cited"])


def test_an_audit_finds_without_the_model_and_explains_with_it(arrived: Traveller) -> None:
    plain = arrived.json("audit", "examples/shop", "--no-model", expect=(1,))
    told = arrived.json("audit", "examples/shop", "--explain", "3", expect=(1,))  # each costs some seconds
    prints = [{finding["fingerprint"] for finding in audit["findings"]} for audit in (plain, told)]
    assert prints[0] == prints[1], "the model changed what was found"
    assert not any(finding["explanation"] for finding in plain["findings"])
    explained = [bool(finding["explanation"]) for finding in told["findings"]]
    assert any(explained[:3]), "not one of three explanations passed the gates"
    assert not any(explained[3:]), "more was explained than asked for"
    assert _MODEL in told["model"]["name"]


def test_a_client_of_the_openai_api_is_answered_at_once_and_in_a_stream(client: OpenAI) -> None:
    name = next(iter(client.models.list())).id
    whole = client.chat.completions.create(model=name, messages=_HELLO, max_tokens=24)
    assert whole.choices[0].message.content
    assert whole.choices[0].finish_reason in ("stop", "length")
    assert whole.usage is not None
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens > 0
    chunks = list(client.chat.completions.create(model=name, messages=_HELLO, max_tokens=24, stream=True))
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert len([piece for piece in pieces if piece]) > 1, "a stream comes in pieces"
    assert "".join(pieces)
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] in ("stop", "length")


def test_a_client_that_asks_for_grounding_gets_checked_citations(client: OpenAI) -> None:
    name = next(iter(client.models.list())).id
    answer = client.chat.completions.create(
        model=name,
        messages=[{"role": "user", "content": "Explain CWE-918 in two sentences."}],
        max_tokens=80,
        extra_body={"casemate": {"ground": True}},
    )
    citations = [citation for found in _values(answer.model_dump(), "citations") for citation in found]
    assert "CWE-918" in {citation["id"] for citation in citations}


def test_after_down_no_process_lives_the_port_is_free_and_the_status_says_so(traveller: Traveller) -> None:
    elsewhere = Traveller(traveller.home / "second")
    furnish(elsewhere.home / ".casemate", traveller.home / ".casemate" / "artifacts", traveller.home / "spare")
    with elsewhere.up() as platform:
        url = urlsplit(elsewhere.json("status")["url"])
        elsewhere.casemate("down")
        assert platform.wait(20) == 0, "being told to end is how a platform ends"
        with socket.socket() as probe:
            assert probe.connect_ex((url.hostname, url.port)) != 0
        elsewhere.casemate("status", expect=(1, 3))
        left = {path.name for path in (elsewhere.home / ".casemate").iterdir()} - {"artifacts", "runs", "graph.sqlite"}
        assert not left


def _values(document: Any, key: str) -> list[Any]:
    """Every value of a key, at any depth."""
    if isinstance(document, list):
        return [value for item in document for value in _values(item, key)]
    if not isinstance(document, dict):
        return []
    own = [document[key]] if key in document else []
    return own + [value for item in document.values() for value in _values(item, key)]
