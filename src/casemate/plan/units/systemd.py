"""systemd units of engine and gateway. Pure; `systemd-analyze verify` and `security` are run on them in the tests.

The gateway is of type notify: it says READY when the engine behind it has made a real token, so whatever is ordered
after it finds it answering. vLLM has no released sd_notify: its unit counts as started (`Type=exec`) once the program
runs, and ExecStartPost holds it in "starting" until it answers /health (weights loaded, graphs captured), or until its
main process is gone.
"""

from __future__ import annotations

from casemate.plan.argv import broken
from casemate.plan.units.deployment import Deployment, File, unit_word
from casemate.plan.units.envfiles import ENGINE as ENGINE_ENV
from casemate.plan.units.envfiles import GATEWAY as GATEWAY_ENV

ENGINE, GATEWAY = "casemate-engine.service", "casemate-gateway.service"
START_TIMEOUT_S = 3600
"""Above the 20 minutes and more of a cold start, and as long as the engine's own limit."""
_HOMES = ("/home/", "/root/", "/run/user/")
_SHARED_HARDENING = """\
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
PrivateTmp=yes
ProtectControlGroups=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectKernelLogs=yes
ProtectClock=yes
ProtectHostname=yes
RestrictSUIDSGID=yes
RestrictRealtime=yes
RestrictNamespaces=yes
LockPersonality=yes
SystemCallArchitectures=native
UMask=0077"""


def engine(deployment: Deployment) -> File:
    """The unit of vLLM."""
    path = deployment.folder
    reads_home = path.startswith(_HOMES)
    manager = "nvidia-fabricmanager.service" if deployment.switched else ""
    return File(ENGINE, _ENGINE.format(
        served_name=deployment.served_name,
        after=" ".join(["network.target", "nvidia-persistenced.service", *([manager] if manager else [])]),
        wants=f"Wants={manager}\n" if manager else "",
        ray=_RAY if deployment.nodes > 1 else "",
        environment=f"{deployment.places.configuration}/{ENGINE_ENV}",
        start=_start(deployment),
        health=_wait(f"curl -fsS -o /dev/null --max-time 5 http://127.0.0.1:{deployment.port}/health"),
        timeout=START_TIMEOUT_S,
        home="read-only" if reads_home else "yes",
        network="AF_UNIX AF_INET AF_INET6 AF_NETLINK" + (" AF_IB" if deployment.nodes > 1 else ""),
        devices="DeviceAllow=char-infiniband* rw\n" if deployment.nodes > 1 else "",
        hardening=_SHARED_HARDENING,
    ))  # fmt: skip


def gateway(deployment: Deployment) -> File:
    """The unit of `casemate up` before that engine."""
    program = unit_word(deployment.places.casemate)
    return File(GATEWAY, _GATEWAY.format(
        engine=ENGINE,
        environment=f"{deployment.places.configuration}/{GATEWAY_ENV}",
        program=program,
        timeout=600,
        hardening=_SHARED_HARDENING,
    ))  # fmt: skip


def _start(deployment: Deployment) -> str:
    _, *rest = deployment.words
    return " \\\n  ".join(broken(unit_word(word) for word in (deployment.places.engine, *rest)))


def _wait(question: str) -> str:
    """Asks until the answer is yes; gives up when the main process is gone, which systemd alone would not notice."""
    loop = f'until {question}; do kill -0 "$$MAINPID" || exit 1; sleep 2; done'
    return f"/bin/sh -c '{loop}'"


_RAY = """\
# Ray must run on every host first (the Ray lines). This unit starts the command on the first host alone.
"""
_ENGINE = """\
# The engine behind Casemate, planned for this machine. It listens on loopback; only the gateway speaks to it.
# Set up once:
#   useradd --system --home-dir /var/lib/casemate-engine --shell /usr/sbin/nologin casemate-engine
#   install -o root -g root -m 0600 engine.env {environment}
#   load nvidia and nvidia_uvm at boot (/etc/modules-load.d): their nodes can be allowed only when they are there
#   let casemate-engine read the model's folder
{ray}[Unit]
Description=vLLM for Casemate ({served_name})
After={after}
{wants}StartLimitIntervalSec=3h
StartLimitBurst=3

[Service]
# Not notify: vLLM does not call sd_notify. ExecStartPost waits instead; see below.
Type=exec
User=casemate-engine
Group=casemate-engine
EnvironmentFile={environment}
Environment=HOME=%S/casemate-engine
StateDirectory=casemate-engine
StateDirectoryMode=0700
WorkingDirectory=%S/casemate-engine
ExecStart={start}
# Started means: weights are loaded, graphs are captured, requests are answered. It ends early if the engine dies.
ExecStartPost={health}
TimeoutStartSec={timeout}
TimeoutStopSec=120
Restart=on-failure
RestartSec=15
# Workers hold the cards' memory until they are gone: none may be left behind.
KillMode=mixed
OOMPolicy=kill
# NCCL pins host memory; each card and client takes descriptors.
LimitMEMLOCK=infinity
LimitNOFILE=1048576
LimitCORE=0
# The cards and nothing else. MemoryDenyWriteExecute stays off: kernels are compiled while it runs.
DevicePolicy=closed
DeviceAllow=char-nvidia* rw
{devices}ProtectHome={home}
RestrictAddressFamilies={network}
{hardening}

[Install]
WantedBy=multi-user.target
"""
_GATEWAY = """\
# The gateway, knowledge and page of Casemate before the engine. It listens on loopback; nginx may stand before it.
# Set up once:
#   useradd --system --home-dir /var/lib/casemate --shell /usr/sbin/nologin casemate
#   install -o root -g root -m 0600 gateway.env {environment}
[Unit]
Description=Casemate gateway
Requires={engine}
After={engine}
StartLimitIntervalSec=10min
StartLimitBurst=5

[Service]
# It says READY when the engine behind it has made a token.
Type=notify
NotifyAccess=main
User=casemate
Group=casemate
EnvironmentFile={environment}
Environment=HOME=%S/casemate
StateDirectory=casemate
StateDirectoryMode=0700
WorkingDirectory=%S/casemate
ExecStart={program} up
TimeoutStartSec={timeout}
TimeoutStopSec=60
Restart=on-failure
RestartSec=5
KillMode=mixed
LimitNOFILE=65536
LimitCORE=0
# It needs no device, and no address but this host's own.
PrivateDevices=yes
DevicePolicy=closed
IPAddressDeny=any
IPAddressAllow=localhost
ProtectHome=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
{hardening}

[Install]
WantedBy=multi-user.target
"""
