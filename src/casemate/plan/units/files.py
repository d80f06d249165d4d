"""Which files each form of deployment takes. Pure."""

from __future__ import annotations

from enum import StrEnum

from casemate.plan.argv import command
from casemate.plan.units import compose, envfiles, nginx, ray, systemd
from casemate.plan.units.deployment import Deployment, File


class Emit(StrEnum):
    """What can be written from a plan."""

    ARGV = "argv"
    SYSTEMD = "systemd"
    NGINX = "nginx"
    COMPOSE = "compose"
    ENV = "env"
    RAY = "ray"
    ALL = "all"


LAUNCH = "launch.sh"


def files(deployment: Deployment, wanted: Emit) -> tuple[File, ...]:
    """The files of one form; `all` gives every form that fits the plan.

    Raises:
        UsageError: the form is for one host and the plan for several, or the other way round.
    """
    if wanted is Emit.ALL:
        fitting = Emit.RAY if deployment.nodes > 1 else Emit.COMPOSE
        forms = (Emit.ARGV, Emit.ENV, Emit.SYSTEMD, Emit.NGINX, fitting)
        return tuple(file for form in forms for file in files(deployment, form))
    return tuple(make(deployment) for make in _MAKERS[wanted])


def launch(deployment: Deployment) -> File:
    """The command for a shell, its variables before it; the key is taken from the environment."""
    variables = tuple((variable.name, variable.value) for variable in deployment.variables)
    return File(LAUNCH, f"{command(deployment.words, variables)}\n")


_MAKERS = {
    Emit.ARGV: (launch,),
    Emit.SYSTEMD: (systemd.engine, systemd.gateway),
    Emit.NGINX: (nginx.site,),
    Emit.COMPOSE: (compose.compose,),
    Emit.ENV: (envfiles.engine, envfiles.gateway),
    Emit.RAY: (ray.script,),
}
