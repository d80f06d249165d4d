"""Splitting shell text as sh does, without running any of it."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import UsageError
from casemate.plan.recipe.shell import commands, quoted


def _texts(text: str) -> list[list[str]]:
    return [[word.text for word in command] for command in commands(text)]


def test_operators_newlines_and_comments_end_commands() -> None:
    text = "a b; c && d || e | f & g # not h\n# nor i\nj"
    assert _texts(text) == [["a", "b"], ["c"], ["d"], ["e"], ["f"], ["g"], ["j"]]


def test_quotes_escapes_and_joined_pieces_make_one_word() -> None:
    assert _texts("""a 'b c' "d \\"e\\"" f\\ g h'i'"j" 'it'\\''s'""") == [["a", "b c", 'd "e"', "f g", "hij", "it's"]]


def test_a_continued_line_goes_on_and_a_hash_inside_a_word_is_no_comment() -> None:
    assert _texts("a \\\n  --b=c#d \\\r\n  http://x/#y") == [["a", "--b=c#d", "http://x/#y"]]


def test_redirections_are_left_out() -> None:
    assert _texts("a > log 2>&1 b < in >> out c 2> err") == [["a", "b", "c"]]


@pytest.mark.parametrize("word", ["$X", "${X:-8000}", '"$X"', "a$(nproc)b", "`date`", "$1", '"$@"', "$?"])
def test_what_only_the_shell_knows_stays_as_it_is_and_is_marked(word: str) -> None:
    ((read, end),) = [tuple(command) for command in commands(f"{word} end")]
    assert read.text == word.strip('"')
    assert (read.known, end.known) == (False, True)


@pytest.mark.parametrize("word", ["'$X'", '"\\$X"', "\\$X", "a$"])
def test_a_dollar_that_the_shell_leaves_alone_is_known(word: str) -> None:
    ((read,),) = commands(word)
    assert read.known


def test_lines_are_counted() -> None:
    assert [command[0].line for command in commands("a \\\nb\n\nc 'x\ny'\nd")] == [1, 4, 6]


@pytest.mark.parametrize("text", ["a 'b", 'a "b', "a\\", "a 'b\nc", "echo `x"])
def test_a_quotation_that_does_not_end_is_an_error_that_says_where(text: str) -> None:
    with pytest.raises(UsageError, match="line 1"):
        list(commands(text))


def test_more_words_than_any_script_has_are_refused() -> None:
    with pytest.raises(UsageError, match="no recipe"):
        list(commands("x " * 200_000))


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00\r")))
def test_a_quoted_word_comes_back_as_it_was_for_us_and_for_the_standard_library(word: str) -> None:
    assert _texts(f"a {quoted(word)}") == [["a", word]]
    assert shlex.split(f"a {quoted(word)}") == ["a", word]


@given(st.text(alphabet="ab '\"\\$`;&|()<>#\n{}=-", max_size=40))
def test_no_text_makes_it_fail_otherwise_than_by_its_own_error(text: str) -> None:
    try:
        words = [word for command in commands(text) for word in command]
    except UsageError:
        return
    assert all(word.line <= text.count("\n") + 1 for word in words)
