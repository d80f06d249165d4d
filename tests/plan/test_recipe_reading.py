"""Finding the starts of vLLM in what people write them into."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import UsageError
from casemate.plan.recipe.launch import Launch
from casemate.plan.recipe.reading import MOST_BYTES, launches, of_words

_ARGUMENTS = ["--model", "m", "--port", "8000"]

_UNIT = """\
[Unit]
Description=engine
# ExecStart=/bin/false
[Service]
Type=notify
Environment="VLLM_LOGGING_LEVEL=INFO" 'HF_HOME=/data/hub'
Environment=NCCL_DEBUG=WARN
ExecStart=/opt/venv/bin/vllm serve m \\
    --port 8000 \\
    --served-model-name %i
Restart=on-failure
"""
_COMPOSE = """\
services:
  web:
    image: nginx:1.29
    command: ["nginx", "-g", "daemon off;"]
  engine:
    image: vllm/vllm-openai:v0.20.0
    environment:
      VLLM_USE_V1: 1
      HF_TOKEN: ${HF_TOKEN}
    command:
      - --model
      - m
      - --port
      - 8000
      - --enforce-eager
"""
_FOLDED = """\
services:
  engine:
    image: registry.example/vllm:latest
    environment: [VLLM_LOGGING_LEVEL=DEBUG]
    command: >
      --model m
      --speculative-config '{"method": "mtp"}'
      --port ${PORT}
"""
_POD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: engine}
spec:
  template:
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.28.0
          command: ["/bin/sh", "-c"]
          args: ["export A=1; exec vllm serve m --port 8000"]
          env:
            - {name: VLLM_LOGGING_LEVEL, value: INFO}
            - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hub, key: token}}}
---
kind: Service
"""


def _one(text: str) -> Launch:
    (launch,) = launches(text)
    return launch


def _arguments(launch: Launch) -> list[str]:
    return [word.text for word in launch.arguments]


def _environment(launch: Launch) -> dict[str, str]:
    return {name: word.text for name, word in launch.environment}


@pytest.mark.parametrize(
    "text",
    [
        "python -m vllm.entrypoints.openai.api_server --model m --port 8000",
        "/opt/v/bin/python3.12 -u -m vllm.entrypoints.openai.api_server --model m --port 8000 >> log 2>&1 &",
        "nohup numactl -N 0 python -m vllm.entrypoints.openai.api_server --model m --port 8000",
        "uv run --with vllm python -m vllm.entrypoints.openai.api_server --model m --port 8000",
    ],
)
def test_a_module_is_found_behind_whatever_starts_it(text: str) -> None:
    launch = _one(text)
    assert (launch.kind, launch.module) == ("module", "vllm.entrypoints.openai.api_server")
    assert _arguments(launch) == _ARGUMENTS


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve --model m --port 8000",
        "ssh box 'vllm serve --model m --port 8000'",
        'bash -lc "source v/bin/activate && vllm serve --model m --port 8000"',
        "tmux new -d -s e 'A=1 vllm serve --model m --port 8000'",
        "if true; then vllm serve --model m --port 8000; fi",
        json.dumps(["vllm", "serve", *_ARGUMENTS]),
    ],
)
def test_vllm_serve_is_found_inside_other_commands(text: str) -> None:
    launch = _one(text)
    assert launch.kind == "serve"
    assert _arguments(launch) == _ARGUMENTS


@pytest.mark.parametrize(
    "text",
    [
        "docker run vllm/vllm-openai --model m --port 8000",
        "sudo docker run -d --rm --gpus all -p 8000:8000 -v a:/b vllm/vllm-openai:latest --model m --port 8000",
        "podman run -it --device nvidia.com/gpu=all --shm-size 16g ghcr.io/x/vllm:1 --model m --port 8000",
    ],
)
def test_an_image_s_own_entry_takes_what_stands_behind_it(text: str) -> None:
    launch = _one(text)
    assert launch.kind == "image"
    assert _arguments(launch) == _ARGUMENTS


def test_an_image_s_tag_tells_the_version_and_its_options_the_variables() -> None:
    launch = _one("docker run -e A=1 --env=B=2 --env-file x vllm/vllm-openai:v0.26.0-cu129 --model m")
    assert launch.version == "0.26.0"
    assert _environment(launch) == {"A": "1", "B": "2"}


def test_another_entry_in_a_container_is_looked_into() -> None:
    launch = _one("docker run --entrypoint bash vllm/vllm-openai:v0.30.0 -c 'vllm serve m --port 8000'")
    assert (launch.kind, launch.version, _arguments(launch)) == ("serve", "0.30.0", ["m", "--port", "8000"])


def test_variables_before_the_command_exported_or_beside_it_belong_to_it() -> None:
    launch = _one("A=1\nexport B=2\nC='3 4' env D=$E vllm serve m")
    assert _environment(launch) == {"A": "1", "B": "2", "C": "3 4", "D": "$E"}
    assert not dict(launch.environment)["D"].known


def test_flags_alone_are_taken_for_the_server_s() -> None:
    launch = _one("--disable-log-requests --device cuda")
    assert (launch.kind, _arguments(launch)) == ("flags", ["--disable-log-requests", "--device", "cuda"])


def test_a_unit_is_read_with_its_continued_line_and_variables_on_either_side() -> None:
    launch = _one(_UNIT)
    assert _arguments(launch) == ["m", "--port", "8000", "--served-model-name", "%i"]
    assert not launch.arguments[-1].known
    assert _environment(launch) == {"VLLM_LOGGING_LEVEL": "INFO", "HF_HOME": "/data/hub", "NCCL_DEBUG": "WARN"}
    assert launch.where == "line 8"


def test_a_compose_file_is_read_by_service_with_a_list_or_a_folded_line() -> None:
    launch = _one(_COMPOSE)
    assert (launch.kind, launch.version, launch.where) == ("image", "0.20.0", "services.engine")
    assert _arguments(launch) == [*_ARGUMENTS, "--enforce-eager"]
    assert _environment(launch) == {"VLLM_USE_V1": "1", "HF_TOKEN": "${HF_TOKEN}"}
    folded = _one(_FOLDED)
    assert _arguments(folded) == ["--model", "m", "--speculative-config", '{"method": "mtp"}', "--port", "${PORT}"]
    assert [word.known for word in folded.arguments][-2:] == [True, False]


def test_a_manifest_is_read_through_its_shell() -> None:
    launch = _one(_POD)
    assert _arguments(launch) == ["m", "--port", "8000"]
    assert launch.version == "0.28.0"
    assert _environment(launch)["VLLM_LOGGING_LEVEL"] == "INFO"


def test_the_engine_s_own_settings_file_is_read_as_flags() -> None:
    launch = _one("model: m\nport: 8000\nenforce-eager: true\nenable-lora: false\ncompilation-config:\n  mode: 3\n")
    assert _arguments(launch) == [*_ARGUMENTS, "--enforce-eager", "--compilation-config", '{"mode": 3}']


def test_a_here_document_is_text_of_its_own_whatever_stands_in_it() -> None:
    script = "cat > note <<'END'\nit doesn't matter\nEND\ncat > run.sh << EOF\nvllm serve inside\nEOF\nvllm serve m\n"
    assert [_arguments(launch) for launch in launches(script)] == [["m"], ["inside"]]


def test_a_page_of_markdown_is_read_by_its_fenced_blocks() -> None:
    page = "# It's a page\n\n```sh\nvllm serve a\n```\n\nDon't.\n\n```\nls 'x\n```\n\n```yaml\nmodel: b\nport: 1\n```\n"
    assert [_arguments(launch) for launch in launches(page)] == [["a"], ["--model", "b", "--port", "1"]]


def test_an_image_that_is_given_nothing_is_no_start_and_a_command_elsewhere_in_the_file_is() -> None:
    file = 'base:\n  image: vllm/vllm-openai:v0.22.0\nserver:\n  start: sh -c "vllm serve m --port 1"\n'
    assert _arguments(_one(file)) == ["m", "--port", "1"]


def test_several_starts_of_a_script_are_all_found() -> None:
    assert [launch.where for launch in launches("vllm serve a\n# vllm serve b\nvllm bench serve\nvllm serve c\n")] == [
        "line 1",
        "line 4",
    ]


def test_words_that_a_shell_has_split_are_taken_as_they_are() -> None:
    (launch,) = of_words(["vllm", "serve", "a b", "--x={'$y'}"])
    assert _arguments(launch) == ["a b", "--x={'$y'}"]
    assert all(word.known for word in launch.arguments)


_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(20)
)


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "hello", "# vllm serve m", "vllm bench serve --model m", "pip install vllm",
        "\x00\x01\x02", "\x7fELF\x02\x01",
        "x" * (MOST_BYTES + 1), "[" * 50_000, "services:\n" + "  a:\n" * 10, _BOMB + "services: {}",
        _BOMB + "model: m2\nservices: *t\n",
        "a: *nothing\nservices: {}", "services: {engine: {image: nginx}}", "vllm serve 'm", "services: 2001-99-99\n",
        "vllm serve m " + "--port 1 " * 2_000, "vllm serve m\n" * 200, '["vllm", 3, null]',
        "!!python/object/apply:os.system [x]\nservices: 1",
    ],
)  # fmt: skip
def test_what_starts_no_vllm_or_cannot_be_a_recipe_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        launches(text)


def test_a_settings_file_with_a_bomb_in_it_is_not_blown_up() -> None:
    launch = _one("model: m\n" + _BOMB.replace("a: &a", "aa: &a"))
    assert sum(len(word.text) for word in launch.arguments) < 1_000_000


@given(st.text(max_size=200))
def test_no_text_makes_it_fail_otherwise_than_by_its_own_error(text: str) -> None:
    for whole in (
        text,
        f"vllm serve {text}",
        f"services:\n  e:\n    image: vllm\n    command: {text}",
        f"[Service]\nExecStart={text}",
    ):
        try:
            found = launches(whole)
        except UsageError:
            continue
        assert found
