import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.agents.snippet import Pasted, find_code

CALL = 'cursor.execute("SELECT * FROM users WHERE id = " + user_id)'


@pytest.mark.parametrize(
    "question",
    [
        f"这段 Python 代码（sqlite3）{CALL} 是否存在 SQL 注入风险？如何修复？",
        f"这段 Python 代码（sqlite3，`{CALL}`）是否存在 SQL 注入风险，如何修复？",
        f"下面的代码有 SQL 注入风险吗：{CALL}，怎么修复？",
        f"请看\n{CALL}\n有 SQL 注入风险吗？",
        f"Is this safe: {CALL} and how do I fix it?",
        f"Is this safe?\n\n    {CALL}\n\nThanks",
        f"```python\n{CALL}\n```\n这安全吗",
        f"``` py\n{CALL}",
        f"~~~\n{CALL}\n~~~",
    ],
)
def test_the_call_is_found_wherever_it_stands(question: str) -> None:
    assert find_code(question) == Pasted(CALL)


def test_lines_of_code_keep_their_imports_and_lose_the_prose_around_them() -> None:
    code = f"import sqlite3\nconnection = sqlite3.connect('a.db')\ncursor = connection.cursor()\n{CALL}"
    assert find_code(f"请看这段代码\n{code}\n有风险吗？").python == code


def test_an_indented_function_is_dedented_and_kept_whole() -> None:
    question = "Is this ok?\n\n    @app.get('/x')\n    def f(x):\n        # note\n        return eval(x)\n\nthanks"
    assert find_code(question).python == "@app.get('/x')\ndef f(x):\n    # note\n    return eval(x)"


def test_a_fence_is_taken_even_if_it_does_not_parse() -> None:
    assert find_code("```\ndef f(:\n```") == Pasted("def f(:")


@pytest.mark.parametrize("name", ["", "py", "Python", " python3 title=a", "app.py", "{.python .numberLines}", "代码"])
def test_a_fence_that_names_python_or_nothing_holds_python(name: str) -> None:
    assert find_code(f"```{name}\n{CALL}\n```") == Pasted(CALL)


@pytest.mark.parametrize("name", ["js", "java", "go", "c++", "C#", "vb.net", "objective-c", "text"])
def test_a_fence_that_names_another_language_is_told_by_that_name_and_never_taken_for_python(name: str) -> None:
    assert find_code(f"``` {name} x=1\neval(x)\n```\n~~~{name}\neval(y)\n~~~") == Pasted("", (name,))
    assert find_code(f"```py\n{CALL}\n```\n```{name}\neval(x)\n```") == Pasted(CALL, (name,))


@pytest.mark.parametrize(
    "question",
    [
        "",
        "SQL 注入是什么",
        "What is CWE-89 and how does execute() relate?",
        "How do I store passwords? see (docs)",
        "import duties",
        "note: this",
        "请看这段代码",
        "What about `sqlite3`?",
    ],
)
def test_prose_is_not_taken_for_code(question: str) -> None:
    assert find_code(question) == Pasted()


@pytest.mark.parametrize(
    "hostile", ["(" * 20_000, "x(\n" * 400, "f(a) " * 300, "x((\n" * 200 + "]", "\x00f(1)", "'''\n" * 99]
)
def test_a_hostile_question_does_not_break_the_search(hostile: str) -> None:
    assert isinstance(find_code(hostile), Pasted)


@given(st.text("ab(=): \n\"'#.,@`", max_size=60))
def test_any_text_is_survived(text: str) -> None:
    find_code(text)
