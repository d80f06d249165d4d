"""The ledger of an audit: every file of the material in exactly one class. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from casemate.agents.audit.facts.summary import Module
from casemate.agents.audit.reading.material import Material
from casemate.finding import Ledger, Remark, Unread


def ledger(material: Material, modules: Sequence[Module], *, failed: Iterable[Unread], cut: Iterable[Unread]) -> Ledger:
    """What was looked at.

    Args:
        material: what there was.
        modules: the summaries that were made.
        failed: files without one.
        cut: files of `modules` in which the search for flows was given up.
    """
    broken = {module.path: Unread(module.path, module.unread) for module in modules if module.unread}
    for unread in cut:
        reasons = (broken[unread.path].reason, unread.reason) if unread.path in broken else (unread.reason,)
        broken[unread.path] = Unread(unread.path, "; ".join(reasons))
    skipped = tuple(Unread(module.path, module.skipped) for module in modules if module.skipped)
    whole = [module for module in modules if not module.skipped and module.path not in broken]
    return Ledger(
        analysed=len(whole),
        skipped=(*material.skipped, *skipped),
        failed=(*material.failed, *failed, *broken.values()),
        searched=sum(module.searched for module in whole),
        remarks=tuple(Remark(module.path, remark) for module in modules for remark in module.remarks),
    )
