from __future__ import annotations

import numpy as np
import pytest

from casemate.knowledge.postings import Postings, unpacked


def strengths(*documents: list[tuple[float, list[str]]]) -> dict[str, dict[int, float]]:
    postings = Postings()
    for fields in documents:
        postings.add(fields)
    found = {}
    for term, *packed in postings.packed():
        places, strong = unpacked(*packed)
        found[term] = dict(zip(map(int, places), map(float, strong), strict=True))
    return found


def test_the_strength_is_bm25() -> None:
    found = strengths([(1.0, ["a", "b", "b"])], [(1.0, ["a"])], [(1.0, ["c", "c"])])
    mean, often, length, holding = 2.0, 2, 3, 1
    rarity = np.log(1 + (3 - holding + 0.5) / (holding + 0.5))
    expected = rarity * often * 2.2 / (often + 1.2 * (1 - 0.75 + 0.75 * length / mean))
    assert found["b"] == pytest.approx({0: expected})
    assert sorted(found["a"]) == [0, 1]


def test_a_rare_term_is_stronger_than_a_common_one_and_a_name_than_a_text() -> None:
    found = strengths([(6.0, ["name"]), (1.0, ["text", "all"])], [(1.0, ["all", "x"])], [(1.0, ["all", "y"])])
    assert found["name"][0] > found["text"][0] > found["all"][0] > 0


def test_no_document_gives_no_term_and_an_empty_one_does_no_harm() -> None:
    assert strengths() == {}
    assert strengths([(1.0, [])], [(1.0, ["a"])])["a"][1] > 0
