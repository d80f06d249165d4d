"""A compose file for the engine's published image. Pure.

The container listens on all of its own interfaces, as it must to be reached; its port is published on the host's
loopback alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath

from casemate.errors import UsageError
from casemate.plan.recipe.flags import numbers
from casemate.plan.units.deployment import Deployment, File
from casemate.plan.units.envfiles import ENGINE as ENGINE_ENV

NAME = "compose.yaml"
_ENTRY_SERVES = (0, 12)
"""From here on the image's own entry surely is `vllm serve`; before, it may be the module with its `--model`."""
_MOUNTED = "/model"


def compose(deployment: Deployment) -> File:
    """The compose file.

    Raises:
        UsageError: the plan is for several hosts; one compose file is for one.
    """
    if deployment.nodes > 1:
        raise UsageError("a compose file is for one host, this plan is for several", remedy="use --emit ray")
    source, inside = _mount(deployment.folder)
    text = _COMPOSE.format(
        image=_quoted(f"vllm/vllm-openai:v{'.'.join(str(part) for part in numbers(deployment.engine_version))}"),
        command="\n".join(f"      - {_quoted(word)}" for word in _command(deployment, inside)),
        entry="" if _entry_serves(deployment) else '    entrypoint: ["vllm", "serve"]\n',
        environment=ENGINE_ENV,
        renumbered=_renumbered(deployment),
        port=deployment.port,
        source=_quoted(source),
        target=_quoted(_MOUNTED),
        cards=_cards(deployment),
        check=_quoted(_CHECK.format(port=deployment.port)),
    )
    return File(NAME, text)


def _entry_serves(deployment: Deployment) -> bool:
    return numbers(deployment.engine_version) >= _ENTRY_SERVES


def _mount(folder: str) -> tuple[str, str]:
    """What to mount, and the model's folder inside; a hub cache's snapshot holds links into the folder above it."""
    path = PurePosixPath(folder)
    if path.parent.name == "snapshots":
        return str(path.parent.parent), f"{_MOUNTED}/snapshots/{path.name}"
    return folder, _MOUNTED


def _command(deployment: Deployment, inside: str) -> Iterator[str]:
    """The arguments of the image's entry: the model as the container sees it, and no address to listen on."""
    _, _, _, *rest = deployment.words
    yield inside
    host = rest.index("--host")
    yield from (*rest[:host], *rest[host + 2 :])


def _cards(deployment: Deployment) -> str:
    if not deployment.card_ids:
        return "              count: all"
    return f"              device_ids: [{', '.join(_quoted(card) for card in deployment.card_ids)}]"


def _renumbered(deployment: Deployment) -> str:
    """The container counts its cards from 0 again; a host's numbers would name others there."""
    if not deployment.card_ids or not all(card.isdigit() for card in deployment.card_ids):
        return ""
    numbered = ",".join(str(place) for place in range(len(deployment.card_ids)))
    return f"      # the container counts its own cards from 0\n      CUDA_VISIBLE_DEVICES: {_quoted(numbered)}\n"


def _quoted(text: str) -> str:
    """A text as YAML's double-quoted form; compose takes a single dollar for a variable of its own."""
    return json.dumps(text, ensure_ascii=False).replace("$", "$$")


_CHECK = "import urllib.request as request; request.urlopen('http://127.0.0.1:{port}/health', timeout=5)"
_COMPOSE = """\
# The engine behind Casemate in its published image. `docker compose up -d`, then `casemate up` with gateway.env.
# It needs the NVIDIA Container Toolkit. On a box without network the image is loaded before (`docker load`).
name: casemate-engine

services:
  engine:
    image: {image}
{entry}    command:
{command}
    # Variables and the key, in a file with mode 0600: nothing secret stands here or in the process list.
    env_file:
      - {environment}
    environment:
      # caches of compiled kernels go below it
      HOME: /cache
{renumbered}    # Published is the host's loopback only. Whoever else is to reach the model comes through the gateway.
    ports:
      - "127.0.0.1:{port}:{port}"
    volumes:
      - type: bind
        source: {source}
        target: {target}
        read_only: true
      # With it the second start is much shorter.
      - type: volume
        source: engine-cache
        target: /cache
    # NCCL and the workers exchange data through /dev/shm; the default of 64 MiB ends in errors about /dev/shm/nccl-*.
    # `ipc: host` would do as well, and shares the host's memory segments with the container.
    shm_size: "16gb"
    ulimits:
      memlock: -1
      stack: 67108864
      nofile:
        soft: 1048576
        hard: 1048576
      core: 0
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
{cards}
              capabilities: [gpu]
    security_opt:
      - no-new-privileges:true
    init: true
    restart: on-failure:3
    stop_grace_period: 2m
    logging:
      driver: json-file
      options:
        max-size: "50m"
        max-file: "5"
    healthcheck:
      test: ["CMD", "python3", "-c", {check}]
      interval: 15s
      timeout: 10s
      retries: 4
      # A cold start takes 20 minutes and more; failures before that do not count.
      start_period: 1h

volumes:
  engine-cache: {{}}
"""
