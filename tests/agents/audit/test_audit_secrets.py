"""Secrets are told from placeholders and names, and shown nowhere whole."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.agents.audit.checks.secrets import find
from casemate.agents.audit.facts.masking import masked


def _found(code: str) -> list[str]:
    return [secret.text for secret in find(ast.parse(code))]


@pytest.mark.parametrize(
    "code",
    [
        'password = "hunter2"',
        'db.connect(user="x", passwd="S3cr3t-pw")',
        'config = {"api_key": "9f8d7c6b5a4e3d2c1b0a"}',
        'settings.SECRET_KEY = "kq8#v0p!x2m@q7_w4^z1"',
        'def connect(password="Winter2024!"): ...',
        'if password == "letmein99": ...',
        'url = "postgresql://app:Zx81Spectrum@db/x"',
        'x = "ghp_" "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"',
        'headers = {"Authorization": "Bearer eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0NTY3.dozjgNryP4J3jVmNHl0w5N"}',
    ],
)
def test_a_secret_is_found_by_its_form_or_by_its_name(code: str) -> None:
    assert len(_found(code)) == 1


@pytest.mark.parametrize(
    "code",
    [
        'password = ""',
        'password = "change-me"',
        'password = os.environ["PASSWORD"]',
        'api_key = "<your key>"',
        'TOKEN = "${TOKEN}"',
        'PASSWORD_FIELD = "password"',
        'token_url = "https://login.example.com/token"',
        'password_label = "Your password:"',
        'SECRET_KEY = "xxxxxxxxxxxxxxxx"',
        'secret_name = "prod/db-1"',
        'token_type = "bearer"',
        'PASSWORD_HASHER = "argon2id$v1"',
        'url = "https://user:password@example.com"',
        '"""An example: AKIA0123456789ABCDEF."""',
        'api_key = "api_key"',
        "password = None",
    ],
)
def test_a_placeholder_a_name_or_a_lookup_is_no_secret(code: str) -> None:
    assert _found(code) == []


@given(st.text(alphabet="abcXYZ0189_-+/", min_size=4, max_size=60), st.text(max_size=20), st.text(max_size=20))
def test_a_masked_text_never_shows_more_than_four_characters_of_the_secret(
    secret: str, before: str, after: str
) -> None:
    shown = masked(before + secret + after, [secret])
    assert secret not in shown
    assert secret[:5] not in shown or secret[:5] in before + after


def test_every_line_of_a_private_key_is_masked() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA7\n" * 8 + "-----END RSA PRIVATE KEY-----"
    (secret,) = _found(f"KEY = {key!r}")
    assert "MIIEpAIBAAKCAQEA7" not in masked(key, [secret])
