from __future__ import annotations

import pytest

from casemate.knowledge.spelling import Speller

SPELLER = Speller({"injection": 40, "inject": 9, "injecton": 1, "spring": 7, "spraying": 3, "path": 5, "once": 1})


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("injecton", ("injection",)),
        ("injectoin", ("injection",)),
        ("ijnection", ("injection",)),
        ("injection", ()),
        ("injects", ("inject",)),
        ("spraing", ("spring", "spraying")),
        ("pth", ()),
        ("paht", ("path",)),
        ("onec", ()),
        ("inj3ction", ()),
        ("注入", ()),
        ("", ()),
        ("zzzzzzzz", ()),
    ],
)
def test_a_mistyped_word_is_taken_for_the_nearest_ones_commonest_first(word: str, meant: tuple[str, ...]) -> None:
    assert SPELLER.meant(word) == meant
