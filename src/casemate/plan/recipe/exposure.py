"""Judgements on who can reach the server, and on what a command line shows to others."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from casemate.finding import Severity
from casemate.plan.recipe.problem import VARIABLE, Kind, Problem
from casemate.plan.recipe.situation import Situation

_SECURITY = "https://docs.vllm.ai/en/latest/usage/security.html"
_KEY = "VLLM_API_KEY"
_LOOPBACK = ("--host", "127.0.0.1")


def exposure(situation: Situation) -> Iterator[Problem]:
    """Everything about reach and secrets."""
    yield from _host(situation)
    yield from _api_key(situation)
    yield from _tools(situation)
    yield from _architectures(situation)


def _host(situation: Situation) -> Iterator[Problem]:
    host = situation.value("host")
    if host is None or not _is_everywhere(host) or situation.launch.image:
        return  # inside a container it must; what is published outside is the container's business
    keyed = "api-key" in situation.options or any(name == _KEY for name, _ in situation.launch.environment)
    if keyed:
        says = (
            "It listens on every interface. The key guards /v1 and its like; others, /invocations among them, answer "
            "without it. Listen on loopback, and let the gateway face the network."
        )
        yield from situation.told("host", Problem(Kind.EXPOSED, Severity.MEDIUM, says, _SECURITY, _LOOPBACK))
    else:
        says = (
            "It listens on every interface and asks for no key: whoever reaches the port uses the model. Listen on "
            "loopback, and let the gateway face the network."
        )
        yield from situation.told("host", Problem(Kind.EXPOSED, Severity.HIGH, says, _SECURITY, _LOOPBACK))


def _is_everywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def _api_key(situation: Situation) -> Iterator[Problem]:
    says = f"Whoever may list processes reads it in the command line; the variable {_KEY} does the same unseen."
    yield from situation.told("api-key", Problem(Kind.EXPOSED, Severity.MEDIUM, says, _SECURITY))


def _tools(situation: Situation) -> Iterator[Problem]:
    if situation.on("enable-auto-tool-choice") and "tool-call-parser" not in situation.options:
        says = (
            "It needs --tool-call-parser, which reads the calls out of the model's text; without one the server stops."
        )
        source = "vllm 0.33.0 wheel, vllm/entrypoints/common/cli_args.py"
        yield from situation.told("enable-auto-tool-choice", Problem(Kind.REFUSED, Severity.HIGH, says, source))


def _architectures(situation: Situation) -> Iterator[Problem]:
    """A list of architectures for builds that leaves out the card's own."""
    listed = situation.variable("TORCH_CUDA_ARCH_LIST")
    if not listed:
        return
    targets = re.findall(r"\d+\.\d+", listed)
    source = "https://github.com/vllm-project/vllm/issues/18841"
    told = Problem(Kind.BELIEF, Severity.INFO, "", source, None, "TORCH_CUDA_ARCH_LIST", listed, VARIABLE)
    if situation.capability is None:
        if "9.0" not in targets:
            says = (
                "It matters to what is built here; code for these architectures alone stops with 'no kernel image' "
                "on another card. Hopper (H20, H100, H200) is 9.0a. Released wheels bring their own list."
            )
            yield Problem(told.kind, Severity.LOW, says, source, (), told.flag, listed, VARIABLE)
        return
    major, minor = situation.capability
    fits = any(int(one.split(".")[0]) == major and int(one.split(".")[1]) <= minor for one in targets)
    if targets and not fits and "+PTX" not in listed:
        says = (
            f"What is built with it has no code for these cards ({major}.{minor}) and stops with 'no kernel image'. "
            "Released wheels bring their own list; leave it out."
        )
        yield Problem(Kind.HARMFUL, Severity.HIGH, says, source, (), told.flag, listed, VARIABLE)
