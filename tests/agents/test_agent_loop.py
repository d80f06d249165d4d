import pytest

from casemate.agents.loop import Accepted, Complaint, NoAnswer, Reading, Said, converse, listen
from casemate.chat.scripted import ScriptedModel
from casemate.chat.wire import ChatRequest, Delta, Message, Usage
from casemate.errors import ModelError

QUESTION = ChatRequest(messages=(Message("user", "a number?"),))


def _number(said: Said) -> int | Complaint:
    return int(said.text) if said.text.strip().isdigit() else Complaint("it was not a number")


def _small(value: int) -> int | Complaint:
    return value if value < 10 else Complaint("it was above nine")


NUMBER = Reading(parse=_number, verify=_small)


async def test_a_good_answer_is_accepted_at_once() -> None:
    model = ScriptedModel(["7"])
    assert await converse(QUESTION, model, reading=NUMBER) == Accepted(7, Usage(2, 1))
    assert len(model.requests) == 1


@pytest.mark.parametrize(("bad", "complaint"), [("seven", "it was not a number"), ("12", "it was above nine")])
async def test_a_bad_answer_is_asked_for_once_more_with_the_complaint(bad: str, complaint: str) -> None:
    model = ScriptedModel([bad, "7"])
    outcome = await converse(QUESTION, model, reading=NUMBER)
    assert isinstance(outcome, Accepted)
    assert outcome.value == 7
    (repair,) = model.requests[1].messages
    assert repair.role == "user"
    assert repair.content.startswith("a number?")
    assert complaint in repair.content
    assert bad not in repair.content


async def test_after_one_repair_there_is_no_answer_and_its_reason() -> None:
    model = ScriptedModel(["seven", "eight", "9"])
    outcome = await converse(QUESTION, model, reading=NUMBER)
    assert isinstance(outcome, NoAnswer)
    assert outcome.reason == "it was not a number"
    assert len(model.requests) == 2
    assert outcome.usage.completion_tokens == 2


async def test_an_answer_only_in_the_reasoning_is_asked_for_again_and_then_is_no_answer() -> None:
    thinking = [Delta(reasoning="7, I think"), Delta(finish_reason="length", usage=Usage(2, 30))]
    model = ScriptedModel([thinking, thinking])
    outcome = await converse(QUESTION, model, reading=NUMBER)
    assert isinstance(outcome, NoAnswer)
    assert "only in the reasoning" in outcome.reason
    assert outcome.usage == Usage(4, 60)
    assert "only in the reasoning" in model.requests[1].messages[-1].content


async def test_an_empty_answer_is_no_answer() -> None:
    outcome = await converse(QUESTION, ScriptedModel(["", " \n"]), reading=NUMBER)
    assert isinstance(outcome, NoAnswer)
    assert "empty" in outcome.reason


async def test_a_model_that_recites_the_complaint_has_not_answered() -> None:
    anything: Reading[str] = Reading(
        parse=lambda said: said.text, verify=lambda text: text if "!" in text else Complaint("no !")
    )
    recital = ScriptedModel(["yes", "An earlier answer was refused: no !."])
    outcome = await converse(QUESTION, recital, reading=anything)
    assert isinstance(outcome, NoAnswer)
    assert "repeated" in outcome.reason


async def test_whoever_watches_sees_every_increment_of_both_rounds() -> None:
    seen: list[str] = []
    await converse(
        QUESTION, ScriptedModel(["a b", "7"]), reading=NUMBER, watch=lambda delta: seen.append(delta.content)
    )
    assert "".join(seen) == "a b7"


async def test_an_answer_cut_at_the_token_limit_says_so() -> None:
    request = ChatRequest(messages=QUESTION.messages, options={"max_tokens": 2})
    assert await listen(request, ScriptedModel(["one two three"])) == Said("one two", cut=True, usage=Usage(2, 2))


async def test_a_broken_endpoint_is_an_error_and_not_an_answer() -> None:
    broken = ScriptedModel([[Delta(content="7"), ModelError("the connection broke")]])
    with pytest.raises(ModelError, match="broke"):
        await converse(QUESTION, broken, reading=NUMBER)
