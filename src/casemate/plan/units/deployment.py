"""What the files of a deployment are made of, and how words are quoted in them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from casemate.plan.environment import Variable

_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Places:
    """Where things lie on the host that runs the plan; the defaults are placeholders that a reader may keep.

    `engine` and `casemate` are programs, `configuration` the folder of the environment files, `tls` of certificate and
    key, `host_name` what browsers call the host, `network` who may come in through nginx.
    """

    engine: str = "/opt/vllm/bin/vllm"
    casemate: str = "/opt/casemate/bin/casemate"
    configuration: str = "/etc/casemate"
    tls: str = "/etc/casemate/tls"
    host_name: str = "casemate.example.org"
    network: str = "127.0.0.0/8"


@dataclass(frozen=True, slots=True)
class Deployment:
    """A planned launch, ready to be written down.

    Attributes:
        words: the command, the program's bare name first (`argv.argv`).
        variables: its environment (`environment.environment`).
        engine_version: of vLLM; the container image's tag.
        folder: the model's, absolute.
        card_ids: UUIDs, or numbers where those are not known; empty: every card of the host.
        cards: how many a host gives.
        nodes: hosts.
        switched: the cards hang on NVSwitches, which a fabric manager sets up.
        places: see there.
        gateway_port: of the gateway, on loopback.
        key: what the gateway shows to the engine; empty: left to the reader. It goes into environment files alone.
    """

    words: tuple[str, ...]
    variables: tuple[Variable, ...]
    engine_version: str
    folder: str
    port: int
    served_name: str
    card_ids: tuple[str, ...] = ()
    cards: int = 1
    nodes: int = 1
    switched: bool = False
    places: Places = Places()
    gateway_port: int = 8642
    key: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """A file to write: its name, what is in it, and who may read it."""

    name: str
    text: str
    mode: int = 0o644


def unit_word(word: str) -> str:
    """A word of ExecStart: specifiers and variables doubled, quotes and backslashes escaped (systemd.service(5))."""
    doubled = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(doubled):
        return doubled
    escaped = doubled.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
