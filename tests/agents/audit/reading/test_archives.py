"""Archives are read as data: bounded, nothing outside, nothing followed, nothing left behind."""

from __future__ import annotations

import io
import lzma
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from casemate.agents.audit.reading.archives import Unpacked, unpack
from casemate.agents.audit.reading.gathering import Options, gathered
from casemate.agents.audit.scan import scan
from casemate.finding import Ledger

_WEAK = "import os, sys\nos.system('x ' + sys.argv[1])\n"
_OPENED = Options(archives=True)


def _zip(files: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def _tar(files: dict[str, str], mode: str = "w") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]  # the mode is a parameter
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content.encode())
            archive.addfile(member, io.BytesIO(content.encode()))
    return out.getvalue()


def _unpacked(tmp_path: Path, name: str, data: bytes) -> tuple[Unpacked | str, list[str]]:
    source, target = tmp_path / name, tmp_path / "target"
    source.write_bytes(data)
    outcome = unpack((str(source), str(target), name))
    return outcome, sorted(path.relative_to(target).as_posix() for path in target.rglob("*") if not path.is_dir())


def _reasons(ledger: Ledger) -> dict[str, str]:
    return {unread.path: unread.reason for unread in (*ledger.skipped, *ledger.failed)}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.zip", _zip({"pkg/a.py": _WEAK})),
        ("a.whl", _zip({"pkg/a.py": _WEAK})),
        ("a.tar", _tar({"pkg/a.py": _WEAK})),
        ("a.tar", _tar({"./pkg/a.py": _WEAK})),
        ("a.tar.gz", _tar({"pkg/a.py": _WEAK}, "w:gz")),
        ("a.TGZ", _tar({"pkg/a.py": _WEAK}, "w:gz")),
        ("a.tar.bz2", _tar({"pkg/a.py": _WEAK}, "w:bz2")),
        ("a.tar.xz", _tar({"pkg/a.py": _WEAK}, "w:xz")),
    ],
)
def test_an_archive_is_audited_by_what_it_holds(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    result = scan(tmp_path / name)
    assert [(f.rule, f.location.path) for f in result.findings] == [("command-injection", f"{name}!/pkg/a.py")]
    assert (result.ledger.analysed, result.ledger.skipped, result.ledger.failed) == (1, (), ())


def test_archives_in_a_tree_are_named_and_opened_only_when_asked_also_in_one_another(tmp_path: Path) -> None:
    inner = _zip({"deep.py": _WEAK})
    (tmp_path / "lib" / "x").mkdir(parents=True)
    (tmp_path / "lib" / "a.zip").write_bytes(_zip({"b.zip": inner, "ok.py": "x = 1\n"}))
    (tmp_path / "lib" / "x" / "c.py").write_text("from lib import d\n")
    (tmp_path / "lib" / "d.py").write_text(_WEAK)
    (tmp_path / "out").symlink_to("/")
    closed = scan(tmp_path)
    assert _reasons(closed.ledger)["lib/a.zip"] == "archive, not opened (`--archives` opens it)"
    opened = scan(tmp_path, options=_OPENED)
    assert {f.location.path for f in opened.findings} == {"lib/d.py", "lib/a.zip!/b.zip!/deep.py"}
    assert opened.ledger.analysed == 4
    assert _reasons(opened.ledger).keys() == {"out"}


def test_what_is_unpacked_is_ours_alone(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(_zip({"a.py": _WEAK}))
    with gathered(tmp_path / "a.zip", Options()) as material:
        assert stat.S_IMODE(material.root.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in material.root.rglob("*.py")} == {0o600}
    assert not material.root.exists()


def test_a_run_that_is_broken_off_leaves_nothing_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(_zip({"a.py": _WEAK}))
    with pytest.raises(KeyboardInterrupt), gathered(tmp_path / "a.zip", Options()) as material:
        raise KeyboardInterrupt
    assert not material.root.exists()


@pytest.mark.parametrize("name", ["../out.py", "/etc/out.py", "a/../../out.py", "a//b.py", "./a/./b.py", "x" * 2000])
def test_a_name_that_leads_away_is_left_out_and_said(tmp_path: Path, name: str) -> None:
    outcome, files = _unpacked(tmp_path, "a.zip", _zip({name: _WEAK, "ok.py": "x = 1\n"}))
    assert isinstance(outcome, Unpacked)
    assert files == ["ok.py"]
    assert [unread.path for unread in outcome.skipped] == [f"a.zip!/{name}"]
    assert not list(tmp_path.parent.glob("out.py"))


def test_links_and_devices_of_a_tar_are_left_out_and_nothing_is_written_through_them(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, kind, target in (
            ("away", tarfile.SYMTYPE, str(tmp_path)),
            ("hard", tarfile.LNKTYPE, "/etc/passwd"),
            ("pipe", tarfile.FIFOTYPE, ""),
            ("null", tarfile.CHRTYPE, ""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, target
            archive.addfile(member)
        member = tarfile.TarInfo("away/x.py")
        member.size = len(_WEAK)
        archive.addfile(member, io.BytesIO(_WEAK.encode()))
    outcome, files = _unpacked(tmp_path, "a.tar", out.getvalue())
    assert isinstance(outcome, Unpacked)
    assert files == ["away/x.py"]
    assert [unread.path for unread in outcome.skipped] == ["a.tar!/away", "a.tar!/hard", "a.tar!/pipe", "a.tar!/null"]
    assert not (tmp_path / "x.py").exists()


def test_a_link_in_a_zip_is_left_out(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    outcome, files = _unpacked(tmp_path, "a.zip", out.getvalue())
    assert isinstance(outcome, Unpacked)
    assert (files, outcome.skipped[0].reason) == ([], "link or device in an archive, not unpacked")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_and_a_file_in_the_place_of_a_folder_are_said(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in ("a.py", "a.py", "a.py/b.py"):
            archive.writestr(name, _WEAK)
    outcome, files = _unpacked(tmp_path, "a.zip", out.getvalue())
    assert isinstance(outcome, Unpacked)
    assert files == ["a.py"]
    assert len(outcome.skipped) == 2


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.zip", _zip({"a": b"\0" * (200 << 20)}), "200 times its size"),
        ("a.tar.xz", lzma.compress(_tar({"a.py": " " * (100 << 20)})), "200 times its size"),
        ("a.zip", b"PK\x03\x04" + b"x" * 100, "damaged archive"),
        ("a.zip", b"", "damaged archive"),
        ("a.tar", b"not a tar at all" * 100, "damaged archive"),
        ("a.tar.gz", b"\x1f\x8b\x08\x00", "damaged archive"),
        ("a.tar.gz", _tar({"a.py": _WEAK * 999}, "w:gz")[:-40], "damaged archive"),
    ],
    ids=["zip bomb", "xz bomb", "torn zip", "empty", "no tar", "torn gzip", "cut gzip"],
)
def test_a_bomb_or_a_damaged_archive_fails_with_its_reason_and_the_rest_goes_on(
    tmp_path: Path, name: str, data: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(data)
    (tmp_path / "ok.py").write_text("x = 1\n")
    with gathered(tmp_path, _OPENED) as material:
        assert material.files == ("ok.py",)
        (failed,) = material.failed
    assert failed.path == name
    assert reason in failed.reason


def test_too_many_entries_are_too_many(tmp_path: Path) -> None:
    outcome, _ = _unpacked(tmp_path, "a.zip", _zip(dict.fromkeys((f"{n}/" for n in range(50_001)), "")))
    assert outcome == "archive not opened: it holds more than 50000 entries"


def test_names_of_a_zip_are_read_as_they_were_meant(tmp_path: Path) -> None:
    raw = _zip({"ab.py": _WEAK}).replace(b"ab.py", "名".encode("gbk") + b".py")
    outcome, files = _unpacked(tmp_path, "a.zip", raw)
    assert isinstance(outcome, Unpacked)
    assert files == ["名.py"]


def test_a_gitignore_inside_an_archive_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(_zip({".gitignore": "*.py\n", "a.py": _WEAK}))
    assert [f.location.path for f in scan(tmp_path / "a.zip").findings] == ["a.zip!/a.py"]


def test_links_of_our_own_lead_nowhere_that_the_tree_did_not(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret.py").write_text(_WEAK)
    (tmp_path / "root" / "a.zip").write_bytes(_zip({"ok.py": "x = 1\n"}))
    (tmp_path / "root" / "away.py").symlink_to(tmp_path / "secret.py")
    os.mkfifo(tmp_path / "root" / "pipe.py")
    with gathered(tmp_path / "root", _OPENED) as material:
        assert material.files == ("a.zip!/ok.py",)
        assert {unread.path for unread in material.skipped} == {"away.py", "pipe.py"}
