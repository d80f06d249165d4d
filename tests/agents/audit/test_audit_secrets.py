"""Secrets are told from placeholders and names, and shown nowhere whole."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.material import findings_of
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
        'requests.get(url, auth=("bob", "q9X!vT7zLm2W"))',
        'auth = HTTPBasicAuth("bob", "q9X!vT7zLm2W")',
        'server.login("bob", "q9X!vT7zLm2W")',
        'def connect(*, password="Winter2024!"): ...',
        'user, password = "bob", "Winter2024!"',
        'if (password := "Winter2024!"): ...',
        'setattr(settings, "password", "Winter2024!")',
        'match given:\n  case {"password": "Winter2024!"}: ...',
        'password = b"Winter2024!".decode()',
        'class Settings:\n  password: str = Field("Winter2024!")',
        'if "Winter2024!" == password: ...',
        'hmac.compare_digest(password.encode(), b"Winter2024!")',
        'url = f"postgresql://app:Zx81Spectrum@{host}/x"',
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
        'requests.get(url, auth=("bob", password))',
        'requests.get(url, auth=("user", "password"))',
        'hmac.compare_digest(token, request.headers.get("X-Token", ""))',
        'if "password" == field: ...',
        'WS_KEY = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"',
        'if token == "#bygroup": ...',
        'if token == "end-of-line": ...',
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


_SECRET = "q9X!vT7zLm2Wd8K4"
_SHOWING = (
    'import requests\nrequests.get("https://a.example.org", auth=("bob", "{s}"), verify=False)',
    'from Crypto.Cipher import AES\nAES.new(b"{s}", AES.MODE_ECB)',
    'from cryptography.fernet import Fernet\nFernet(b"{s}")',
    'from cryptography.fernet import Fernet\nkey = b"{s}"; f = Fernet(key)',
    'import jwt\njwt.encode({{"a": 1}}, "{s}", algorithm="HS256")',
    'import hmac\nhmac.new(b"{s}", body, "md5")',
    'password = "q9X!vT7z" "Lm2Wd8K4"',
    'password = "\\x719X!vT7zLm2Wd8K4"',
    'import smtplib\nsmtplib.SMTP("mail.example.org").login("bob", "{s}")',
    'import requests\nrequests.get("http://a.example.org", auth=requests.auth.HTTPBasicAuth("bob", "{s}"))',
    'import os\nos.system("mysql -p{s} " + input())',
    (
        "import paramiko\nc = paramiko.SSHClient()\n"
        'c.set_missing_host_key_policy(paramiko.AutoAddPolicy()); c.connect("h", 22, "r", "{s}")'
    ),
    'import hashlib\nhashlib.pbkdf2_hmac("sha256", b"{s}", b"salt", 10)',
    'from itsdangerous import URLSafeSerializer\nURLSafeSerializer("{s}")',
    'import pymysql\nc = pymysql.connect(host="h", password="{s}"); c.cursor().execute("select " + input())',
    'import pymysql\nc = pymysql.connect(host="h", password="""{s}"""); c.cursor().execute("select " + input())',
)


@pytest.mark.parametrize("program", _SHOWING)
def test_a_finding_beside_a_secret_shows_it_nowhere(program: str) -> None:
    findings = findings_of(program.format(s=_SECRET))
    assert findings
    assert "9X!vT7z" not in repr(findings)
    assert "Lm2Wd8K4" not in repr(findings)
