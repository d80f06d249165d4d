"""Home folders for tests that run the product."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def furnish(casemate_home: Path, artifacts: Path, spare: Path, *, pattern: str = "*") -> None:
    """Give a home the artefacts that match, as hard links.

    Where the two lie on different file systems, `spare` (on the home's) takes one copy for the whole run.
    """
    target = casemate_home / "artifacts"
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file in artifacts.glob(pattern):
        if not file.is_file():
            continue
        try:
            os.link(file, target / file.name)
        except OSError:
            spare.mkdir(exist_ok=True)
            if not (spare / file.name).exists():
                shutil.copyfile(file, spare / file.name)
            os.link(spare / file.name, target / file.name)
