from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from casemate.artifacts import lock
from casemate.artifacts.lock import Artifact, Carrier, Url
from casemate.checkpoint.gguf import read_gguf
from casemate.errors import UsageError

HASH = re.compile(r"[0-9a-f]{64}")
EVERY = pytest.mark.parametrize("artifact", lock.catalogue().values(), ids=lambda artifact: artifact.name)


def carriers(artifact: Artifact) -> list[Carrier]:
    return [source for source in artifact.sources if isinstance(source, Carrier)]


@EVERY
def test_every_artefact_names_its_bytes_its_licence_and_a_source(artifact: Artifact) -> None:
    assert HASH.fullmatch(artifact.sha256)
    assert artifact.size_bytes > 0
    assert artifact.licence
    assert artifact.upstream
    assert artifact.sources


@EVERY
def test_the_parts_of_a_carrier_add_up_to_the_whole(artifact: Artifact) -> None:
    for carrier in carriers(artifact):
        assert sum(part.size_bytes for part in carrier.parts) == artifact.size_bytes
        assert all(HASH.fullmatch(part.sha256) for part in carrier.parts)


@EVERY
def test_official_addresses_come_before_carriers_and_are_encrypted(artifact: Artifact) -> None:
    kinds = [type(source) for source in artifact.sources]
    assert kinds == sorted(kinds, key=[Url, Carrier].index)
    assert all(urlsplit(source.address).scheme == "https" for source in artifact.sources if isinstance(source, Url))


@EVERY
def test_an_official_address_holds_the_pinned_revision(artifact: Artifact) -> None:
    for source in artifact.sources:
        if isinstance(source, Url):
            assert artifact.revision
            assert artifact.revision in source.address


def test_no_two_artefacts_share_a_file() -> None:
    files = [artifact.file for artifact in lock.catalogue().values()]
    assert len(set(files)) == len(files)
    assert all(Path(file).name == file for file in files)


def test_the_step_down_begins_at_the_wanted_model_and_ends_with_the_smallest() -> None:
    names = [artifact.name for artifact in lock.models_from("qwen2.5-coder-0.5b")]
    assert names == ["qwen2.5-coder-0.5b", "smollm2-135m"]
    sizes = [artifact.size_bytes for artifact in lock.models_from("qwen2.5-coder-1.5b")]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("name", ["cwe-4.14", "gpt", ""])
def test_what_is_no_model_is_refused_as_one(name: str) -> None:
    with pytest.raises(UsageError, match=re.escape(repr(name)) + ".*qwen2.5-coder-1.5b"):
        lock.models_from(name)


def test_a_group_selects_its_members_and_each_artefact_comes_once() -> None:
    chosen = [artifact.name for artifact in lock.select(["attack-18.1-mitigations", "attack", "cwe"])]
    assert chosen[0] == "attack-18.1-mitigations"
    assert sorted(chosen) == [
        "attack-18.1-attack-patterns",
        "attack-18.1-mitigations",
        "attack-18.1-relationships",
        "cwe-4.14",
    ]


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"'nonsense'.*smollm2-135m.*cwe-4\.14"):
        lock.select(["cwe", "nonsense"])


def test_the_embedder_is_listed_as_an_ordinary_dependency() -> None:
    requirements = Path(__file__).parents[2].joinpath("pyproject.toml").read_text(encoding="utf-8")
    (embedder,) = (held for held in lock.dependencies() if "multilingual-e5-small" in held.holds)
    assert f'"{embedder.package}=={embedder.version}"' in requirements


@pytest.mark.model
def test_the_pinned_cache_size_is_what_the_models_header_says(model_file: Path) -> None:
    (pinned,) = (artifact for artifact in lock.catalogue().values() if artifact.file == model_file.name)
    assert read_gguf(model_file).kv_bytes_per_token == pinned.kv_bytes_per_token
    assert read_gguf(model_file).weights_bytes == pinned.size_bytes


def test_every_model_has_a_cache_size_and_nothing_else_has_one() -> None:
    artifacts = lock.catalogue().values()
    assert all((artifact.kv_bytes_per_token > 0) == (artifact.group == "model") for artifact in artifacts)


def test_carriers_pin_an_exact_version() -> None:
    parts = chain.from_iterable(carrier.parts for each in lock.catalogue().values() for carrier in carriers(each))
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", part.requirement) for part in parts)
