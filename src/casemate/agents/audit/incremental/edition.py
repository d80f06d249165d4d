"""Which edition of the analysis this is: with another one, nothing that an earlier run left is believed."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[3]
_DECIDING = ("agents/audit/**/*.py", "finding.py", "knowledge/*/*.tsv", "knowledge/curated/tables.py")
"""What decides a finding, in the package: rules and analysis, how findings are named, tables of clauses."""
_GRAMMARS = ("tree-sitter", "tree-sitter-javascript", "tree-sitter-typescript")


@cache
def edition() -> str:
    """64 hexadecimal digits: SHA-256 of the files that decide, and of the interpreter and the grammars that parse."""
    digest = hashlib.sha256(" ".join((sys.version, *(f"{name} {version(name)}" for name in _GRAMMARS))).encode())
    for path in sorted(path for pattern in _DECIDING for path in _PACKAGE.glob(pattern)):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(_PACKAGE).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
