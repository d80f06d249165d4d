"""The files that run a plan: what the programs that read them make of them, and what a reader sees."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from casemate import settings
from casemate.cli import writing
from casemate.errors import UsageError
from casemate.plan.recipe import reading
from casemate.plan.units import compose, envfiles, nginx, ray, systemd
from casemate.plan.units.deployment import Deployment, Places, unit_word
from casemate.plan.units.files import Emit, files
from conftest import Optional
from plan.launches import deployed, named

KEY = "5ec2e7" * 10
HERE = Places(engine="/bin/true", casemate="/bin/true")


@pytest.fixture(scope="module")
def box() -> Deployment:
    return deployed("v4", "2xH20-96GB")


@pytest.fixture(scope="module")
def hosts() -> Deployment:
    return deployed("v3", "8xH100", nodes=2)


@pytest.mark.parametrize("wanted", [Emit.ARGV, Emit.ENV, Emit.SYSTEMD, Emit.NGINX, Emit.COMPOSE])
def test_files_for_one_host(box: Deployment, wanted: Emit, snapshot: SnapshotAssertion) -> None:
    assert {file.name: file.text for file in files(box, wanted)} == snapshot


def test_files_for_several_hosts(hosts: Deployment, snapshot: SnapshotAssertion) -> None:
    assert {file.name: file.text for file in files(hosts, Emit.RAY)} == snapshot


def test_all_writes_every_form_that_fits(box: Deployment, hosts: Deployment) -> None:
    one = [file.name for file in files(box, Emit.ALL)]
    assert one == [
        "launch.sh", "engine.env", "gateway.env", "casemate-engine.service", "casemate-gateway.service",
        "casemate.nginx.conf", "compose.yaml",
    ]  # fmt: skip
    assert [file.name for file in files(hosts, Emit.ALL)] == [*one[:-1], "ray.sh"]
    with pytest.raises(UsageError, match="several"):
        files(hosts, Emit.COMPOSE)
    with pytest.raises(UsageError, match="no Ray"):
        files(box, Emit.RAY)


def test_systemd_accepts_the_units(box: Deployment, tmp_path: Path, optional: Optional) -> None:
    optional("systemd-analyze is not installed", shutil.which("systemd-analyze"))
    for number, deployment in enumerate((box, deployed("v3", "8xH100", nodes=2), _odd(box))):
        folder = tmp_path / str(number)
        folder.mkdir()
        made = [systemd.engine(replace(deployment, places=HERE)), systemd.gateway(replace(deployment, places=HERE))]
        paths = list(writing.write(folder, made))
        ran = subprocess.run(
            ["systemd-analyze", "verify", *map(str, paths)], capture_output=True, text=True, check=False, timeout=60
        )
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr


def test_a_unit_starts_the_very_words(box: Deployment) -> None:
    for deployment in (box, _odd(box)):
        (launch,) = reading.launches(systemd.engine(deployment).text.replace("%%", "%").replace("$$", "$"))
        assert tuple(word.text for word in launch.arguments) == deployment.words[2:]


def test_words_of_a_unit_are_quoted_as_systemd_reads_them() -> None:
    assert unit_word("--max-model-len") == "--max-model-len"
    assert unit_word('{"a": 1}') == '"{\\"a\\": 1}"'
    assert unit_word("50% of $HOME") == '"50%% of $$HOME"'
    assert unit_word("back\\slash") == '"back\\\\slash"'


@pytest.mark.parametrize(
    "directive",
    [
        "Type=exec", "NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateTmp=yes", "LimitMEMLOCK=infinity",
        "DeviceAllow=char-nvidia* rw", "DevicePolicy=closed", "TimeoutStartSec=3600", "RestartSec=15",
        "EnvironmentFile=/etc/casemate/engine.env", "Restart=on-failure",
    ],
)  # fmt: skip
def test_the_engines_unit_is_confined_and_patient(box: Deployment, directive: str) -> None:
    assert directive in systemd.engine(box).text.splitlines()


def test_a_model_below_a_home_stays_readable(box: Deployment) -> None:
    assert "ProtectHome=yes" in systemd.engine(box).text
    assert "ProtectHome=read-only" in systemd.engine(replace(box, folder="/home/team/models/x")).text


def test_a_switched_box_waits_for_its_fabric_manager(box: Deployment) -> None:
    assert "Wants=nvidia-fabricmanager.service" in systemd.engine(replace(box, switched=True)).text
    assert "nvidia-fabricmanager" not in systemd.engine(replace(box, switched=False)).text


def test_nginx_accepts_the_site(box: Deployment, tmp_path: Path, optional: Optional) -> None:
    program = shutil.which("nginx") or os.environ.get("NGINX", "")
    optional("nginx is not installed", program and shutil.which("openssl"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "privkey.pem", "-out",
         "fullchain.pem", "-days", "1", "-subj", "/CN=casemate.example.org"],
        cwd=tmp_path, check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    site = nginx.site(replace(box, places=Places(tls=str(tmp_path))))
    (tmp_path / site.name).write_text(site.text, encoding="utf-8")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in kinds)
    main = tmp_path / "main.conf"
    main.write_text(f"events {{}}\npid {tmp_path}/pid;\nhttp {{ access_log off; {temporary} include {site.name}; }}\n")
    ran = subprocess.run(
        [program, "-t", "-e", "stderr", "-c", str(main)], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert "warn" not in ran.stderr


def test_the_site_reaches_the_gateway_and_never_the_engine(box: Deployment) -> None:
    lines = [line.strip() for line in nginx.site(box).text.splitlines() if not line.strip().startswith("#")]
    assert not [line for line in lines if str(box.port) in line]
    assert "server 127.0.0.1:8642;" in lines
    for wanted in ("proxy_buffering off;", "gzip off;", "proxy_http_version 1.1;", "proxy_read_timeout 3600s;"):
        assert wanted in lines
    assert "deny all;" in lines


def test_the_compose_file_says_what_the_plan_says(box: Deployment) -> None:
    value = yaml.safe_load(compose.compose(box).text)
    engine = value["services"]["engine"]
    assert engine["image"] == "vllm/vllm-openai:v0.33.0"
    assert engine["command"] == [
        "/model", *(word for word in box.words[3:] if word not in ("--host", "127.0.0.1")),
    ]  # fmt: skip
    assert engine["ports"] == ["127.0.0.1:8000:8000"]
    assert engine["volumes"][0] == {"type": "bind", "source": box.folder, "target": "/model", "read_only": True}
    assert engine["env_file"] == ["engine.env"]
    assert engine["environment"] == {"HOME": "/cache"}
    (device,) = engine["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert engine["ulimits"]["memlock"] == -1
    assert "health" in engine["healthcheck"]["test"][-1]


def test_a_snapshot_is_mounted_with_the_files_that_it_links_to(box: Deployment) -> None:
    folder = "/cache/hub/models--org--name/snapshots/0123abc"
    words = ("vllm", "serve", folder, *box.words[3:])
    engine = yaml.safe_load(compose.compose(replace(box, folder=folder, words=words)).text)["services"]["engine"]
    assert engine["volumes"][0]["source"] == "/cache/hub/models--org--name"
    assert engine["command"][0] == "/model/snapshots/0123abc"


def test_a_container_counts_its_cards_anew(box: Deployment) -> None:
    numbered = yaml.safe_load(compose.compose(replace(box, card_ids=("4", "6"))).text)["services"]["engine"]
    assert numbered["environment"] == {"HOME": "/cache", "CUDA_VISIBLE_DEVICES": "0,1"}
    assert numbered["deploy"]["resources"]["reservations"]["devices"][0]["device_ids"] == ["4", "6"]
    by_id = yaml.safe_load(compose.compose(replace(box, card_ids=("GPU-a",))).text)["services"]["engine"]
    assert "CUDA_VISIBLE_DEVICES" not in by_id["environment"]


def test_yaml_holds_whatever_a_folder_is_called(box: Deployment) -> None:
    odd = _odd(box)
    engine = yaml.safe_load(compose.compose(odd).text)["services"]["engine"]
    assert engine["volumes"][0]["source"].replace("$$", "$") == odd.folder


def test_the_key_stands_in_secret_files_alone_and_is_the_same_in_both(box: Deployment) -> None:
    made = files(replace(box, key=KEY), Emit.ALL)
    holding = {file.name: file for file in made if KEY in file.text}
    assert set(holding) == {"engine.env", "gateway.env"}
    assert {file.mode for file in holding.values()} == {0o600}
    assert f"VLLM_API_KEY={KEY}" in holding["engine.env"].text
    assert f"CASEMATE_ENGINE_API_KEY={KEY}" in holding["gateway.env"].text


def test_without_a_key_none_is_made_up(box: Deployment) -> None:
    for file in files(box, Emit.ENV):
        assert "API_KEY" not in [line.partition("=")[0] for line in file.text.splitlines() if not line.startswith("#")]


def test_the_gateways_file_holds_settings_that_there_are(
    box: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = envfiles.gateway(replace(box, key=KEY)).text
    for line in text.splitlines():
        if not line.startswith("#"):
            monkeypatch.setenv(*line.split("=", 1))
    found = settings.load()
    assert found.engine_url == "http://127.0.0.1:8000"
    assert (found.engine_model, found.port, found.offline) == ("v4", 8642, True)


def test_secret_files_are_written_for_their_owner_alone(box: Deployment, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    (tmp_path / "victim").write_text("untouched")
    folder.mkdir(parents=True)
    (folder / "engine.env").symlink_to(tmp_path / "victim")
    before = os.umask(0)
    try:
        paths = list(writing.write(folder, files(replace(box, key=KEY), Emit.ENV)))
    finally:
        os.umask(before)
    assert [oct(path.stat().st_mode & 0o777) for path in paths] == ["0o600", "0o600"]
    assert (tmp_path / "victim").read_text() == "untouched"
    assert sorted(path.name for path in folder.iterdir()) == ["engine.env", "gateway.env"]
    with pytest.raises(UsageError, match="cannot write"):
        list(writing.write(tmp_path / "victim", files(box, Emit.ENV)))


def test_the_ray_lines_are_a_script_that_stops_until_its_hosts_are_named(hosts: Deployment, tmp_path: Path) -> None:
    file = ray.script(hosts)
    path = tmp_path / file.name
    path.write_text(file.text, encoding="utf-8")
    assert subprocess.run(["sh", "-n", str(path)], check=False, timeout=10).returncode == 0
    bare = {"PATH": os.environ["PATH"]}
    ran = subprocess.run(["sh", str(path), "head"], env=bare, capture_output=True, text=True, check=False, timeout=10)
    assert ran.returncode != 0
    assert "HEAD_IP" in ran.stderr


@pytest.mark.parametrize(
    ("role", "expected"),
    [
        ("head", ["ray start --head --node-ip-address=10.1.1.2 --port=6379 --num-gpus=8 --include-dashboard=false"]),
        ("worker", ["ray start --address=10.1.1.1:6379 --node-ip-address=10.1.1.2 --num-gpus=8"]),
        ("serve", ["ray status --address=10.1.1.1:6379", "vllm {words}"]),
    ],
)
def test_each_host_runs_its_own_lines(hosts: Deployment, tmp_path: Path, role: str, expected: list[str]) -> None:
    said = tmp_path / "said"
    for program in ("ray", "vllm"):
        stand_in = tmp_path / program
        stand_in.write_text(f'#!/bin/sh\necho "{program} $*" >> {said}\n')
        stand_in.chmod(0o755)
    path = tmp_path / "ray.sh"
    path.write_text(ray.script(hosts).text, encoding="utf-8")
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}", "HEAD_IP": "10.1.1.1", "OWN_IP": "10.1.1.2", "INTERFACE": "ib0",
    }  # fmt: skip
    subprocess.run(["sh", str(path), role], env=environment, check=True, timeout=10)
    words = " ".join(hosts.words[1:])
    assert said.read_text().splitlines() == [line.format(words=words) for line in expected]


def test_a_subset_of_each_hosts_cards_is_named_by_number(hosts: Deployment) -> None:
    text = ray.script(replace(hosts, card_ids=("GPU-a", "GPU-b"), cards=2)).text
    assert "CUDA_VISIBLE_DEVICES=0,1" in text
    assert "GPU-a" not in text
    assert named("2xH100").cards[0].uuid not in text


def _odd(box: Deployment) -> Deployment:
    """The same with a model in a folder of a hostile name."""
    folder = '/models/it\'s 100% "$HOME" \\n {x} #1; é模型'
    return replace(box, folder=folder, words=("vllm", "serve", folder, *box.words[3:]))
