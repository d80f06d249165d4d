"""Which model runs here: choose, fetch, and step down until one is there, or none."""

from __future__ import annotations

from dataclasses import dataclass

from casemate.artifacts import fetch as store
from casemate.artifacts import lock
from casemate.artifacts.lock import Artifact
from casemate.artifacts.partial import Observer
from casemate.checkpoint.gguf import read_gguf
from casemate.doctor.probe import measure
from casemate.errors import ArtifactError
from casemate.finding import ModelNote
from casemate.plan.choice import Candidate, choose, without_source
from casemate.plan.cpu import plan
from casemate.plan.decision import CpuPlan, Intent
from casemate.settings import Settings

RULES_ONLY = "no model: rules only"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to run (None: nothing, rules only), and what the reader must know about it."""

    plan: CpuPlan | None
    note: ModelNote


def choose_model(settings: Settings, observer: Observer | None = None) -> Chosen:
    """The best model from the one in the settings down that fits this machine and can be had.

    Args:
        settings: names the first choice; `offline` leaves only what is already here.
        observer: told of a download's progress.
    """
    models = {artifact.name: artifact for artifact in lock.models_from(settings.model)}
    candidates = tuple(_candidate(artifact, settings) for artifact in models.values())
    machine = measure(settings.root)
    intent = Intent(context=settings.context, threads=settings.threads)
    while (choice := choose(machine, candidates, intent=intent)).candidate is not None:
        name = choice.candidate.name
        try:
            path = store.fetch(models[name], settings.artifacts, observer=observer, offline=settings.offline)
        except ArtifactError as error:
            candidates = without_source(candidates, name, why=error.what)
            continue
        planned = plan(machine, read_gguf(path), intent=intent)
        if isinstance(planned, CpuPlan):
            return Chosen(planned, ModelNote(name, "; ".join(choice.notes)))
        candidates = without_source(candidates, name, why="; ".join(planned.reasons))
    return Chosen(None, ModelNote("", "; ".join((RULES_ONLY, *choice.notes))))


def _candidate(artifact: Artifact, settings: Settings) -> Candidate:
    here = store.present(artifact, settings.artifacts)
    return Candidate(
        name=artifact.name,
        fetch_bytes=0 if here else store.needed_bytes(artifact, settings.artifacts),
        weights_bytes=artifact.size_bytes,
        kv_bytes_per_token=artifact.kv_bytes_per_token,
    )
