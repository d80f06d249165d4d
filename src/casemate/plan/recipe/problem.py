"""What can be wrong with a word of a recipe, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from casemate.finding import Severity
from casemate.plan.recipe.masking import shown_words

PROGRAM = -1
VARIABLE = -2
"""Positions of what is no argument."""


class Kind(StrEnum):
    """Why a word is a problem. The first seven stop the engine before it loads anything."""

    UNKNOWN = "unknown"
    AMBIGUOUS = "ambiguous"
    REMOVED = "removed"
    NOT_YET = "not_yet"
    NEVER = "never_existed"
    INVALID = "value_invalid"
    REFUSED = "refused"
    """The parser takes it and the engine then refuses to start."""
    DEPRECATED = "deprecated"
    CONTRADICTORY = "contradictory"
    HARMFUL = "harmful"
    NEEDLESS = "needless"
    BELIEF = "wrong_belief"
    EXPOSED = "exposed"
    """It gives something to whom it does not concern."""
    UNSEEN = "not_judged"
    """What it holds cannot be known here."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One judgement.

    Attributes:
        severity: high: it will not start, or is open to others; medium: it costs speed, memory or insight;
            low: it does nothing useful; info: advice that depends on what is not known here.
        says: what is so and why, in one or two sentences.
        source: where that can be checked: an address, or a file of the engine's wheel.
        mend: the words that stand for it in the corrected command, none to leave it out; None keeps it as it is.
        flag: the option or variable as it was typed; empty for the program itself.
        value: what stood behind it, secrets left out.
        position: which word of the arguments it is about, PROGRAM or VARIABLE.
    """

    kind: Kind
    severity: Severity
    says: str
    source: str = ""
    mend: tuple[str, ...] | None = ()
    flag: str = ""
    value: str = ""
    position: int = PROGRAM

    @property
    def replacement(self) -> str:
        """What to write instead, for people; without the value where that is a secret."""
        return " ".join(shown_words(self.mend or ()))
