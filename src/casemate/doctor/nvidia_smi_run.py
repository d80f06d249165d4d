"""Runs nvidia-smi where the management library could not be asked directly, and reads what it prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from casemate.doctor import joining, nvidia_smi, nvidia_smi_report, refusals, topology
from casemate.doctor.bounded import hear
from casemate.doctor.driver import Answers
from casemate.doctor.machine import Driver
from casemate.doctor.toolkit import program
from casemate.errors import UsageError

LIMIT_S: Final = 3.0
"""For each of its runs; it uses the same driver, and waits with it."""
_BESIDE_THE_PATH: Final = ("/usr/bin", "/usr/local/nvidia/bin", "/usr/lib/wsl/lib", "/run/current-system/sw/bin")
_QUERY: Final = ("index", "uuid", "compute_cap")


def ask(variables: Mapping[str, str], *, limit_s: float = LIMIT_S) -> Answers:
    """What nvidia-smi tells of the driver, its cards and their pairs; why not stands in `unknown`."""
    tool = program("nvidia-smi", variables, others=_BESIDE_THE_PATH)
    if not tool:
        return Answers(unknown=(("nvidia-smi", "it is not on the PATH"),))
    report = hear([tool, "-q", "-x"], limit_s=limit_s, environment=variables)
    if refusal := refusals.refused(f"{report.stdout}\n{report.stderr}"):
        return Answers(refusal.driver, unknown=(("cards", refusal.words), ("nvidia-smi", refusal.words)))
    if report.broken:
        said = (report.stdout.strip() or report.stderr.strip()).splitlines()[:1]
        return Answers(Driver(), unknown=(("nvidia-smi", ": ".join([report.broken, *said])),))
    try:
        cards = nvidia_smi_report.cards(report.stdout, where=tool)
    except UsageError as error:
        return Answers(unknown=(("nvidia-smi", str(error)),))
    more = [tool, f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"]
    asked = hear(more, limit_s=limit_s, environment=variables)
    cards = joining.joined(cards, nvidia_smi.query(asked.stdout, _QUERY) if not asked.broken else ())
    listed = hear([tool, "-L"], limit_s=limit_s, environment=variables)
    cards = joining.with_slices(cards, nvidia_smi.listing(listed.stdout))
    whole = [card.index for card in cards if not card.mig]
    links = peers = ""
    if len(whole) > 1:
        links = hear([tool, "topo", "-m"], limit_s=limit_s, environment=variables).stdout
        peers = hear([tool, "topo", "-p2p", "r"], limit_s=limit_s, environment=variables).stdout
    pairs = topology.pairs(whole, links=topology.links(links), peers=topology.peers(peers))
    return Answers(nvidia_smi.driver(report.stdout), cards, pairs)
