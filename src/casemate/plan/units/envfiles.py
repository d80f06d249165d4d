"""The environment files of engine and gateway: `NAME=value` lines that systemd and compose both read. Pure."""

from __future__ import annotations

from casemate.plan.environment import KEY
from casemate.plan.units.deployment import Deployment, File

ENGINE, GATEWAY = "engine.env", "gateway.env"
_SECRET_MODE = 0o600


def engine(deployment: Deployment) -> File:
    """The engine's variables, each with its reason, and its key."""
    lines = ["# Environment of the engine. Mode 0600, owner root: systemd and compose read it, the service need not."]
    for variable in deployment.variables:
        lines += [f"# {variable.why}", f"{variable.name}={variable.value}"]
    lines += _key(deployment, KEY, why="guards /v1 even on loopback: any local user could send requests otherwise")
    if deployment.nodes > 1:
        lines += ["# These two are set on every host before Ray starts there: see the Ray lines."]
        lines += ["# NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME"]
    return File(ENGINE, "\n".join(lines) + "\n", _SECRET_MODE)


def gateway(deployment: Deployment) -> File:
    """The gateway's settings (docs/settings.md): which engine it stands before."""
    lines = [
        "# Environment of the gateway. Mode 0600, owner root.",
        "# where its graph, runs and state lie",
        "CASEMATE_HOME=/var/lib/casemate",
        "# loopback only; nginx stands before it",
        f"CASEMATE_PORT={deployment.gateway_port}",
        "# the engine that it speaks to, and the model's name there",
        f"CASEMATE_ENGINE_URL=http://127.0.0.1:{deployment.port}",
        f"CASEMATE_ENGINE_MODEL={deployment.served_name}",
        "# nothing is fetched from anywhere",
        "CASEMATE_OFFLINE=true",
        *_key(deployment, "CASEMATE_ENGINE_API_KEY", why=f"the same as {KEY} in {ENGINE}"),
    ]
    return File(GATEWAY, "\n".join(lines) + "\n", _SECRET_MODE)


def _key(deployment: Deployment, name: str, *, why: str) -> list[str]:
    if deployment.key:
        return [f"# {why}", f"{name}={deployment.key}"]
    return [
        f"# {why}.",
        f"# Add {name}= and what `openssl rand -hex 32` prints, the same in both files; --output writes a new one.",
    ]
