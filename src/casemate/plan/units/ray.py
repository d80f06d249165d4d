"""The lines that start a plan on several hosts with vLLM on Ray, each with its reason. A shell script; pure."""

from __future__ import annotations

import shlex

from casemate.errors import UsageError
from casemate.plan.argv import command
from casemate.plan.units.deployment import Deployment, File

NAME = "ray.sh"
_PORT = 6379


def script(deployment: Deployment) -> File:
    """What to run on the first host, on the others, and on the first again.

    Raises:
        UsageError: the plan is for one host, which needs no Ray.
    """
    if deployment.nodes < 2:
        raise UsageError("this plan is for one host and needs no Ray", remedy="plan with --nodes 2 or more")
    variables = tuple((variable.name, variable.value) for variable in deployment.variables)
    served = command(deployment.words)
    exports = "\n".join(f"    export {name}={shlex.quote(value)}" for name, value in variables)
    text = _SCRIPT
    for name, value in {
        "NODES": str(deployment.nodes),
        "CARDS": str(deployment.cards),
        "ALL": str(deployment.nodes * deployment.cards),
        "PORT": str(_PORT),
        "VISIBLE": _visible(deployment),
        "EXPORTS": exports,
        "SERVE": "\n".join(f"    {line}" for line in served.split("\n")),
    }.items():
        text = text.replace(f"@{name}@", value)
    return File(NAME, text, 0o755)


def _visible(deployment: Deployment) -> str:
    """Numbers, not UUIDs: those are other ones on every host."""
    if not deployment.card_ids:
        return ""
    listed = ",".join(str(place) for place in range(deployment.cards))
    return (
        "# Only so many of each host's cards; put other numbers here if these are taken.\n"
        f"export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={listed}\n"
    )


_SCRIPT = """\
#!/bin/sh
# One model on @NODES@ hosts of @CARDS@ cards each. On the first host:  HEAD_IP=… OWN_IP=… INTERFACE=… sh ray.sh head
# On every other:  HEAD_IP=… OWN_IP=… INTERFACE=… sh ray.sh worker         Then on the first:  … sh ray.sh serve
# The same engine (pip install 'ray[cgraph]' beside it), model folder and driver are needed on all of them.
# Ray runs whatever reaches its ports (CVE-2023-48022): keep these addresses on a network of their own.
set -eu
: "${HEAD_IP:?address of the first host on the network between the hosts}"
: "${OWN_IP:?address of this host on that network}"
: "${INTERFACE:?name of the interface with that address, as ip addr shows it}"

# vLLM and Ray must name a host by the same address, else workers wait for each other for ever.
export VLLM_HOST_IP="$OWN_IP"
# NCCL and Gloo pick the first interface that they find, often one that the other hosts cannot reach.
export NCCL_SOCKET_IFNAME="$INTERFACE" GLOO_SOCKET_IFNAME="$INTERFACE"
# Ray reports its use to its makers otherwise.
export RAY_USAGE_STATS_ENABLED=0
@VISIBLE@
case "${1:-}" in
head)
    # The first host keeps the cluster's state. No dashboard: it would be one more open door.
    ray start --head --node-ip-address="$OWN_IP" --port=@PORT@ --num-gpus=@CARDS@ --include-dashboard=false
    ;;
worker)
    # Joins this host's cards to the first host's.
    ray start --address="$HEAD_IP:@PORT@" --node-ip-address="$OWN_IP" --num-gpus=@CARDS@
    ;;
serve)
    # Must list @NODES@ nodes and @ALL@ GPUs, none of them in use.
    ray status --address="$HEAD_IP:@PORT@"
    export RAY_ADDRESS="$HEAD_IP:@PORT@"
@EXPORTS@
    # Tensor parallelism inside a host, one pipeline stage a host. VLLM_API_KEY is taken from the environment.
@SERVE@
    ;;
*)
    echo "usage: sh ray.sh head | worker | serve" >&2
    exit 2
    ;;
esac
"""
