import pytest

from casemate.agents.loop import Complaint, NoAnswer, Reading, Said, converse
from casemate.agents.reply import OTHER, Choice, Items, choice, items
from casemate.chat.scripted import ScriptedModel
from casemate.chat.wire import ChatRequest, Delta, Message

TWO = ({"line": 1}, {"line": 2})


@pytest.mark.parametrize(
    "text",
    [
        '[{"line": 1}, {"line": 2}]',
        '```json\n[{"line": 1}, {"line": 2}]\n```',
        'Here is what I found [see below]:\n{"findings": [{"line": 1}, {"line": 2}]} Hope it helps!',
        '  {"findings":\n[{"line": 1},{"line": 2}]}',
    ],
)
def test_json_is_found_in_fences_and_prose(text: str) -> None:
    assert items(Said(text)) == Items(TWO, complete=True)


@pytest.mark.parametrize(
    "text",
    [
        '[{"line": 1}, {"line": 2}, {"line": 3, "why": "the tok',
        '```json\n{"findings": [{"line": 1}, {"line": 2}, {"li',
        '{"findings": [{"line": 1}, {"line": 2},',
    ],
)
def test_of_a_cut_list_the_whole_objects_are_kept_and_it_is_not_complete(text: str) -> None:
    assert items(Said(text, cut=True)) == Items(TWO, complete=False)


@pytest.mark.parametrize("text", ["No findings.", "{'line': 1}", '[{"li', "[1, 2]", "[" * 50_000, "{" * 50_000])
def test_what_cannot_be_read_is_a_complaint_and_never_an_empty_list(text: str) -> None:
    assert isinstance(items(Said(text)), Complaint)


def test_an_empty_list_that_the_model_did_write_is_an_answer() -> None:
    assert items(Said('{"findings": []}')) == Items((), complete=True)


def test_one_object_alone_is_one_item() -> None:
    assert items(Said('{"line": 1, "tags": ["a"]}')) == Items(({"line": 1, "tags": ["a"]},), complete=True)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("dos", Choice("CWE-400", known=True)),
        (" Denial  of Service ", Choice("CWE-400", known=True)),
        ("Sorcery", Choice(OTHER, known=False)),
        (None, Choice(OTHER, known=False)),
        (["DoS"], Choice(OTHER, known=False)),
    ],
)
def test_a_word_outside_the_list_becomes_other_and_is_told(word: object, expected: Choice) -> None:
    assert choice(word, {"dos": "CWE-400", "denial of service": "CWE-400"}) == expected


async def test_tokens_spent_on_reasoning_alone_are_no_answer_never_no_findings() -> None:
    thinking = [Delta(reasoning='[{"line": 1}]'), Delta(finish_reason="length")]
    reading: Reading[Items] = Reading(parse=items, verify=lambda found: found)
    question = ChatRequest(messages=(Message("user", "?"),))
    assert isinstance(await converse(question, ScriptedModel([thinking] * 2), reading=reading), NoAnswer)
