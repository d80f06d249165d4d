"""No secret of a log is shown: not in a quote, not in the code above it, not among the arguments, whatever its form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from casemate.cli import reading_logs
from casemate.doctor.log.secrets import masked, masked_value

_MADE = "QxRt7zWm9KpLs2Vb"  # no issuer's key: made for the test
FORMS = [
    ("Authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
    ("{'Authorization': 'Basic dXNlcjpwYXNz'}", "dXNlcjpwYXNz"),
    ("AUTHORIZATION: ApiKey QQQQQQ", "QQQQQQ"),
    ('headers={"authorization": "ApiKey qzqz"}', "qzqz"),
    ("proxy-authorization: token zzz999", "zzz999"),
    ('Authorization: Digest username="x", response="yyyy"', "yyyy"),
    ("Authorization=Bearer%20qzvw rest", "qzvw"),
    ('"Authorization": "Bearer abc.def-ghi", "x": 2', "abc.def"),
    ("bearer lowercasetoken123456", "lowercase"),
    ("sent Basic dXNlcjpwYXNz to it", "dXNlcjpwYXNz"),
    ("'api_key': ['firstone','secondone'], 'x': 1", "condone"),
    ("api_keys=(qz1, qz2)", "qz2"),
    ("serve /m --api-key firstone secondone --port 8000", "condone"),
    ("['serve', '--api-key', 'k1qz', 'k2qz', '--port', '1']", "k2qz"),
    ("unrecognized arguments: --api-key qz1 qz2 --bogus", "qz2"),
    ('--api-key="quoted secret with spaces" --port 1', "with spaces"),
    ("--hf-token=qzv --port 1", "qzv"),
    ("AWS_SECRET_ACCESS_KEY=wJalr/qz+K", "qz+K"),
    ("'aws_secret_access_key': 'wJalr'", "wJalr"),
    ("aws_access_key_id = qzv", "qzv"),
    ("WANDB_KEY=qzv", "qzv"),
    ("AKIA" + "QZVWXYABCDEFGHIJ", "QZVW"),
    ("nvapi-" + _MADE, "QxRt7"),
    ("glpat-" + _MADE, "QxRt7"),
    ("ghp_" + _MADE, "QxRt7"),
    ("github_pat_" + _MADE, "QxRt7"),
    ("key is sk-proj-" + _MADE, "QxRt7"),
    ("eyJhbGciOiJIUzI1NiJ9." + _MADE + ".sig", "QxRt7"),
    ("Cookie: session=abcdef; other=qzv", "qzv"),
    ("{'cookie': 'a=b; c=qzv', 'x': 1}", "qzv"),
    ("Set-Cookie: sid=qzv; Path=/", "qzv"),
    ("https://user:passw0rd@host/path", "ssw0rd"),
    ("postgres://u:p@ss@db/x", "p@ss"),
    (f"https://{_MADE}@host/x", "Rt7zWm"),
    ("GET /v1?api_key=qzv&x=1", "qzv"),
    ("GET /f?a=1&sig=qzv HTTP/1.1", "qzv"),
    ("password=qz", "qz"),
    ("'password': 1234, 'x': 2", "1234"),
    ('{\\"api_key\\": \\"k1qz\\", \\"b\\": 2}', "k1qz"),
    ('"password":"a\'b qz","x":1', "qz"),
    ("os.environ['OPENAI_API_KEY'] = 'qzv'", "qzv"),
]


@pytest.mark.parametrize(("text", "secret"), FORMS)
def test_a_secret_is_hidden_in_every_form_and_hiding_twice_changes_nothing(text: str, secret: str) -> None:
    shown = masked(text)
    assert secret not in shown
    assert "…(masked)" in shown
    assert masked(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Basic authentication is required",
        "This is a basic Example of Bearer token auth",
        "The --api-key option is required",
        "max_tokens: 123, token: 12, eos_token='<|im_end|>', 'api_key': None",
        "time per output token: 12.5ms, num_computed_tokens=[1, 2]",
        "KeyError: 'layers.0.weight_scale'",
        "tokenizer='/m', tokenizer_mode=auto, token_ids=[1, 2]",
        "http://127.0.0.1:8000/a@b PWD=/srv",
        "export TOKEN=$HF_TOKEN",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


def test_a_value_under_a_secrets_name_is_hidden_at_any_depth_and_the_rest_keeps_its_type() -> None:
    given = {
        "api_key": ["k1", "k2"],
        "extra": {"aws_secret_access_key": "qz"},
        "port": 1,
        "max_tokens": 5,
        "token": None,
    }
    assert masked_value(given) == {
        "api_key": ["…(masked)", "…(masked)"],
        "extra": {"aws_secret_access_key": "…(masked)"},
        "port": 1,
        "max_tokens": 5,
        "token": None,
    }


@pytest.mark.parametrize("broken", ["", ", 'middleware': ['unclosed"])
@pytest.mark.parametrize("as_json", [False, True])
def test_no_secret_is_printed_from_arguments_code_or_quote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, broken: str, as_json: bool
) -> None:
    (tmp_path / "a.log").write_text(
        "INFO 06-01 10:00:00 [u.py:1] non-default args: {'model': '/m', 'api_key': ['leak1', 'leak2'], "
        f"'hf_token': 'leak3', 'extra': {{'aws_secret_access_key': 'leak4'}}{broken}}}\n"
        "Traceback (most recent call last):\n"
        '  File "x.py", line 1, in f\n'
        "    call(headers={'Authorization': 'Basic leak5'})\n"
        "RuntimeError: sent {'Authorization': 'ApiKey leak6'} to https://u:leak7@host\n"
        "serve: error: unrecognized arguments: --api-key leak8 leak9 --bogus\n"
    )
    reading_logs.diagnose(str(tmp_path / "a.log"), json=as_json)
    out = capsys.readouterr().out
    assert "leak" not in out
    assert not as_json or json.loads(out)["facts"]["arguments"]["model"] == "/m"
