"""A second run analyses only what changed, and says exactly what a cold run says."""

from __future__ import annotations

import hashlib
import os
import random
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from agents.audit.incremental.projects import EDITS, build
from casemate.agents.audit.incremental import past as past_module
from casemate.agents.audit.incremental.edition import edition
from casemate.agents.audit.incremental.store import Store, name_of
from casemate.agents.audit.scan import LIMITS, scan

_BAD = "import os\nos.system(input())\n"


def _files(store: Path) -> list[Path]:
    return sorted(path for path in store.iterdir() if path.is_file())


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.py").write_text(_BAD)
    (root / "b.py").write_text("import hashlib\nhashlib.md5(b'')\n")
    return root


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "home" / "audits")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_after_any_edits_a_warm_run_is_equal_to_a_cold_one(tmp_path: Path, store: Store, seed: int) -> None:
    chance = random.Random(seed)
    root = tmp_path / "project"
    build(root)
    assert len(scan(root, store=store).findings) > 20
    for _ in range(6):
        for edit in chance.sample(EDITS, k=chance.randint(1, 3)):
            edit(root, chance)
        assert scan(root, store=store) == scan(root)


def test_what_did_not_change_is_not_read_again(project: Path, store: Store) -> None:
    before = scan(project, store=store)
    no_time = replace(LIMITS, time_s=1e-6)  # whatever is read or mended now fails
    assert scan(project, limits=no_time).ledger.failed
    assert scan(project, store=store, limits=no_time) == before
    (project / "c.o").write_bytes(b"\0\1")  # the result is another one, the files are as they were
    assert scan(project, store=store, limits=no_time).findings == before.findings


def test_what_changed_is_read_and_all_else_is_not(project: Path, store: Store) -> None:
    scan(project, store=store)
    (project / "a.py").write_text("x = 1\n")
    assert [finding.location.path for finding in scan(project, store=store).findings] == ["b.py"]
    assert scan(project, store=store) == scan(project)


def test_equal_bytes_under_another_name_are_another_file(project: Path, store: Store) -> None:
    scan(project, store=store)
    (project / "a.py").rename(project / "z.py")
    assert scan(project, store=store) == scan(project)


def test_another_edition_of_the_analysis_believes_nothing_of_before(project: Path, store: Store) -> None:
    scan(project, store=store)
    (kept,) = _files(store.folder)
    before = kept.read_bytes()
    kept.write_bytes(_resealed(before, b"os.system(input())", b"os.system(INPUT())"))
    assert "INPUT" in str(scan(project, store=store).findings)  # it is believed while the edition is the same
    kept.write_bytes(_resealed(kept.read_bytes(), edition().encode(), b"another"))
    assert "INPUT" not in str(scan(project, store=store).findings)


def _resealed(content: bytes, old: bytes, new: bytes) -> bytes:
    lines = [line[32:] for line in content.splitlines()]
    return b"".join(_sealed(line.replace(old, new)) for line in lines)


def _sealed(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=16).hexdigest().encode() + line + b"\n"


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda _: b"foreign\n" * 5,
        lambda content: content[: len(content) // 2],
        lambda content: content.replace(b"system", b"sYstem"),
        lambda content: bytes(byte ^ 1 for byte in content),
        lambda content: b"\n".join(reversed(content.splitlines())) + b"\n",
        lambda content: content[:32] + b"[1e999," * 20000 + content[32:],
        lambda _: _sealed(b"[" * 100_000),
        lambda content: _sealed(b'["x","y"]') + content,
    ],
)
def test_a_damaged_or_foreign_entry_is_as_if_absent_and_made_again(
    project: Path, store: Store, damage: Callable[[bytes], bytes]
) -> None:
    right = scan(project, store=store)
    (kept,) = _files(store.folder)
    sound = kept.read_bytes()
    kept.write_bytes(damage(sound))
    assert scan(project, store=store) == right
    assert kept.read_bytes() == sound


def test_what_is_kept_is_for_its_owner_alone_and_holds_no_secret(project: Path, store: Store) -> None:
    secret = "qX7vK2mR9tB4wZ8pLs3"
    weak = f'params={{"api_key": "{secret}"}}, verify=False'
    code = f'import requests\nKEY = "{secret}"\nrequests.get("https://x", {weak})\n'
    (project / "c.py").write_text(code)
    (project / "d.py").write_text(f'password = "{secret}"\n')
    old = os.umask(0)
    try:
        assert len(scan(project, store=store).findings) > 2
    finally:
        os.umask(old)
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    (kept,) = _files(store.folder)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert secret.encode() not in kept.read_bytes()


@pytest.mark.parametrize("harm", ["a link", "writable by all", "a folder that is a link", "a file in its place"])
def test_a_store_that_somebody_else_may_write_is_not_believed_and_does_no_harm(
    project: Path, store: Store, tmp_path: Path, harm: str
) -> None:
    right = scan(project, store=store)
    (kept,) = _files(store.folder)
    forged = _resealed(kept.read_bytes(), b"os.system", b"OS.SYSTEM")
    kept.write_bytes(forged)
    if harm == "a link":
        kept.rename(tmp_path / "elsewhere")
        kept.symlink_to(tmp_path / "elsewhere")
    elif harm == "writable by all":
        kept.chmod(0o666)
    elif harm == "a folder that is a link":
        store.folder.rename(tmp_path / "elsewhere")
        store.folder.symlink_to(tmp_path / "elsewhere")
    else:
        kept.unlink()
        store.folder.rmdir()
        store.folder.write_text("")
    assert scan(project, store=store) == right


def test_a_store_that_cannot_be_written_costs_nothing_but_time(project: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert scan(project, store=Store(tmp_path / "file" / "below")) == scan(project)


def test_the_store_is_bounded_and_the_projects_that_were_audited_longest_ago_go(tmp_path: Path) -> None:
    store = Store(tmp_path / "audits", max_bytes=900)
    for number in range(2):
        store.keep(f"project{number}", [b"x" * 300])
        os.utime(store.folder / f"project{number}.lines", (number, number))
    list(store.lines("project0"))
    store.keep("project2", [b"x" * 300])
    assert [path.stem for path in _files(store.folder)] == ["project0", "project2"]


def test_a_file_that_is_written_while_it_is_read_is_not_kept(project: Path, store: Store) -> None:
    past = past_module.recall(store, project, paths=("a.py",), beside="")
    (project / "a.py").write_text("x = 1\n")
    past.read("a.py", "not valid")
    past.keep("result", str)
    again = past_module.recall(store, project, paths=("a.py",), beside="")
    assert again.whole(str) is None
    assert again.outcome("a.py") is None


def test_two_places_are_two_projects(project: Path, tmp_path: Path) -> None:
    assert name_of(project) != name_of(tmp_path)
    (tmp_path / "way").symlink_to(project)
    assert name_of(project) == name_of(tmp_path / "way")


def test_two_runs_at_the_same_time_spoil_nothing_for_each_other_or_the_next(project: Path, store: Store) -> None:
    right = scan(project)
    with ThreadPoolExecutor(2) as both:
        assert list(both.map(lambda _: scan(project, store=store), range(4))) == [right] * 4
    assert [path.suffix for path in _files(store.folder)] == [".lines"]
    assert scan(project, store=store) == right
