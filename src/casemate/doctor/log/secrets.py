"""Secrets in a log's lines, masked wherever a line is shown: keys given as arguments, tokens, passwords in URLs."""

from __future__ import annotations

import re

_MASK = "…(masked)"
_SECRET = re.compile(
    r"""(?P<before>
            (?:['"]?(?:[\w-]{0,40}(?:api[_-]?key|token|secret|password|passwd))['"]?\s{0,3}[:=]\s{0,3}\[?(?:[bu]?['"])?
              | --[\w-]{0,40}(?:api-key|token|password)[\s=]{1,3}
              | [Bb]earer\s{1,3}
              | ://[^\s:/@]{1,80}: ) )
        (?P<value>[^\s'",\]})@]{6,})
      | \b(?P<token>hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,})""",
    re.VERBOSE | re.IGNORECASE,
)
_NO_SECRET = re.compile(r"(?:None|null|True|False|<[\w ]+>|\d{1,9}(?:\.\d+)?|\*+)$")


def masked(text: str) -> str:
    """The text without the values of keys, tokens and passwords; their names and first two characters stay."""
    return _SECRET.sub(_hide, text)


def _hide(found: re.Match[str]) -> str:
    if found["token"]:
        return found["token"][:3] + _MASK
    value = found["value"]
    if _NO_SECRET.match(value):
        return found[0]
    return f"{found['before']}{value[:2]}{_MASK}"
