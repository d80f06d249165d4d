"""What a file is, by its name and its first bytes, and so how it is read. Facts and one look-up; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Kind(StrEnum):
    """How a file is read."""

    PYTHON = "python"
    NOTEBOOK = "notebook"
    SCRIPT = "script"
    """JavaScript or TypeScript."""
    SETTINGS = "settings"
    """Text that gives names to values: searched for secrets by form and by name, and for planted instructions."""
    TEXT = "text"
    """Any other text: searched for secrets by form, and for planted instructions."""


_SHEBANG = re.compile(rb"^#!.*\bpython[0-9.]*\b")
_SUFFIXES: Mapping[str, Kind] = MappingProxyType(
    dict.fromkeys((".py", ".pyw"), Kind.PYTHON)
    | {".ipynb": Kind.NOTEBOOK}
    | dict.fromkeys((".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"), Kind.SCRIPT)
    | dict.fromkeys(
        (
            *(".json", ".jsonc", ".json5", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".config", ".env"),
            *(".properties", ".xml", ".plist", ".tf", ".tfvars", ".sh", ".bash", ".zsh", ".ksh"),
        ),
        Kind.SETTINGS,
    )
    | dict.fromkeys(
        (
            *(".md", ".markdown", ".rst", ".txt", ".adoc", ".html", ".htm", ".xhtml", ".jinja", ".jinja2", ".j2"),
            *(".mako", ".tpl", ".tmpl", ".pem", ".key", ".ppk"),
        ),
        Kind.TEXT,
    )
)
_NAMES: Mapping[str, Kind] = MappingProxyType(
    dict.fromkeys(
        (
            *(
                "dockerfile",
                "containerfile",
                "procfile",
                "makefile",
                ".npmrc",
                ".pypirc",
                ".netrc",
                ".pgpass",
                ".envrc",
            ),
            *(".env", ".gitconfig", ".bashrc", ".profile", ".htpasswd", ".s3cfg"),
        ),
        Kind.SETTINGS,
    )
    | dict.fromkeys(("readme", "license", "notice", "changelog", "id_rsa", "id_ecdsa", "id_ed25519"), Kind.TEXT)
)
_PREFIXES = ((".env.", Kind.SETTINGS), ("dockerfile.", Kind.SETTINGS))


def kind(path: str, head: bytes) -> Kind | None:
    """How to read a file; None where there are no rules for what it holds.

    Args:
        path: its path, of which the last part counts.
        head: its first bytes, for scripts without an ending.
    """
    name = path.rpartition("/")[2].lower()
    if name in _NAMES:
        return _NAMES[name]
    for prefix, found in _PREFIXES:
        if name.startswith(prefix):
            return found
    dot = name.rfind(".")
    suffix = name[dot:] if dot > 0 else ""
    if not suffix and _SHEBANG.match(head):
        return Kind.PYTHON
    return _SUFFIXES.get(suffix)
