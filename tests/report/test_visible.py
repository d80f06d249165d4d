import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.report.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "␛[31mred"),
        ("a\x00b\x07\x7f", "a␀b␇␡"),
        ("a\u202eb\u2066", "a⟨U+202E⟩b⟨U+2066⟩"),
        ("\x9b2J", "⟨U+009B⟩2J"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("\udce9", "⟨U+DCE9⟩"),
        ("a\r\nb\rc", "a\nb␍c"),
        ("tab\tand 中文 and 🙂 stay\n", "tab\tand 中文 and 🙂 stay\n"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text(st.characters()))
def test_nothing_invisible_remains_and_showing_twice_changes_nothing(text: str) -> None:
    shown = visible(text)
    assert not [c for c in shown if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and c not in "\n\t"]
    assert visible(shown) == shown
    shown.encode()
