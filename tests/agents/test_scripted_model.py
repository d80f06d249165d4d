import pytest

from casemate.chat.scripted import ScriptedModel
from casemate.chat.wire import ChatRequest, Delta, Message, Usage
from casemate.errors import ModelError, UsageError

HELLO = ChatRequest(messages=(Message("user", "hello there"),))


async def test_a_text_is_streamed_word_by_word_and_ends_with_its_usage() -> None:
    deltas = [delta async for delta in ScriptedModel(["one two\n three "]).stream(HELLO)]
    assert [delta.content for delta in deltas] == ["one", " two", "\n three", " ", ""]
    assert deltas[-1] == Delta(finish_reason="stop", usage=Usage(2, 4))


async def test_an_error_comes_before_the_first_increment_or_where_the_script_puts_it() -> None:
    model = ScriptedModel([ModelError("refused"), [Delta(content="a"), ModelError("broke off")]])
    with pytest.raises(ModelError, match="refused"):
        _ = [delta async for delta in model.stream(HELLO)]
    broken = model.stream(HELLO)
    assert await anext(broken) == Delta(content="a")
    with pytest.raises(ModelError, match="broke off"):
        await anext(broken)


async def test_a_function_answers_each_request_and_requests_are_kept() -> None:
    model = ScriptedModel(lambda request: request.messages[-1].content.upper())
    deltas = [delta async for delta in model.stream(HELLO)]
    assert "".join(delta.content for delta in deltas) == "HELLO THERE"
    assert model.requests == [HELLO]


async def test_a_script_that_is_too_short_is_our_own_error() -> None:
    with pytest.raises(UsageError, match="0 answers"):
        _ = [delta async for delta in ScriptedModel([]).stream(HELLO)]
