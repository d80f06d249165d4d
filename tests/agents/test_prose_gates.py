import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.agents.gates import joined, offered_only, prose, sentences, supported, unacquitted

EVIDENCE = 'cursor.execute("SELECT * FROM users WHERE id = " + user_id)'


def test_sentences_end_at_full_stops_of_both_languages_but_not_inside_names_or_code() -> None:
    text = "Use `a. b`. It calls os.path.join once! 第一句。第二句？last"
    assert sentences(text) == ["Use `a. b`.", "It calls os.path.join once!", "第一句。", "第二句？", "last"]


@given(st.text("ab .!?。`\n"))
def test_splitting_loses_nothing_but_white_space(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def test_a_quote_from_the_material_stays() -> None:
    text = "`user_id` reaches `cursor.execute()`. It is joined by `+ user_id`."
    assert supported(text, material=[EVIDENCE]) == text


@pytest.mark.parametrize(
    "invented", ["It calls `os.system(cmd)`.", "It uses `executemany()`.", "这里调用了 `eval`。", "An `unpaired quote."]
)
def test_a_sentence_that_quotes_what_is_not_there_is_dropped_whole(invented: str) -> None:
    assert supported(f"It uses `user_id`. {invented}", material=[EVIDENCE]) == "It uses `user_id`."


def test_white_space_in_a_quote_does_not_matter() -> None:
    assert supported("See `a = 1 b`.", material=["a =   1\n  b"])


@pytest.mark.parametrize(
    "verdict",
    [
        "This code is safe.",
        "The query is already secure.",
        "It is not vulnerable.",
        "There is no risk here.",
        "This is a false positive.",
        "这段代码没有漏洞。",
        "因此这段代码在这里是安全的。",
        "这是误报。",
    ],
)
def test_a_model_cannot_declare_a_finding_void(verdict: str) -> None:
    assert unacquitted(f"The id is joined into the text. {verdict}") == "The id is joined into the text."


def test_what_the_fix_does_may_be_said() -> None:
    for text in ("Bound values are never read as SQL.", "参数化查询可以防止注入。"):
        assert unacquitted(text) == text


def test_prose_keeps_complete_sentences_once_and_no_blocks_lists_or_fences() -> None:
    answer = (
        "## Why\n1. **It joins text.**\n```python\nx = 1\n```\nIt joins text.\n[[data 1]] it.\n第二句。and it was cu"
    )
    assert prose(answer) == "It joins text. 第二句。"


def test_a_source_in_brackets_after_the_last_full_stop_is_kept() -> None:
    assert prose("Bind the values. [CWE-89], [T1190]") == "Bind the values. [CWE-89], [T1190]"


def test_an_identifier_that_was_not_offered_takes_its_sentence_with_it() -> None:
    text = "It is CWE-89. It is also CWE-564. 属于T1190技术。参见A05:2025。"
    assert offered_only(text, offered=["CWE-89 T1190"]) == "It is CWE-89. 属于T1190技术。"


def test_chinese_sentences_are_joined_without_a_space() -> None:
    assert joined(["一。", "二。", "End.", "x"]) == "一。二。End. x"
