"""Findings and answers as Documents: for the manager who reads the first page, and the developer who needs each place.

Partial is never called clean; the model's words stand apart under its name.
"""

from __future__ import annotations

from casemate.agents.dossier.answers import answer_document
from casemate.agents.dossier.audits import document

__all__ = ["answer_document", "document"]
