"""A file is read in the encoding that it has; a guess is said, and places stay right whatever it is."""

from __future__ import annotations

import codecs
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.agents.audit.facts.syntax import parse
from casemate.agents.audit.flow.statements import summarize
from casemate.agents.audit.reading.encodings import Text, decode, is_binary

_WEAK = "import os, sys\nname = '名'; os.system('x ' + input())\n"
_CHINESE = (
    "名",
    "打印",
    "# 用户名",
    "数据库连接，密码：",
    "价格￥",
    "查询失败！",
    "“引号”—",
    "日志（一）",
    "①查询②返回",
)
_WESTERN = (
    *("é", "différent", "Größe", "créée", "naïve café", "¿Qué?", "Äußerung", "señor niño", "déjà vu", "ÄÖÜ äöü"),
    *("© 2020", "Straße", "São Paulo ção", "Ærøskøbing", "Ñandú", "à", "20 °C", "±5", "«x»", "§ 5"),
)


@pytest.mark.parametrize(
    "data",
    [
        _WEAK.encode(),
        codecs.BOM_UTF8 + _WEAK.encode(),
        *(_WEAK.encode(name) for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")),
        _WEAK.encode("gbk"),
        b"# -*- coding: gb2312 -*-\n" + _WEAK.encode("gb2312"),
        b"#!/usr/bin/python\r# coding: gbk\r" + _WEAK.replace("\n", "\r").encode("gbk"),
        b"# vim: set fileencoding=latin-1 :\n" + _WEAK.replace("名", "é").encode("latin-1"),
        _WEAK.replace("\n", "\r\n").encode(),
        _WEAK.replace("\n", "\r").encode(),
        ("\f\n" + _WEAK.replace(";", ";\f")).encode(),
        ("x = 1\r\n" + _WEAK.replace("\n", "\r", 1)).encode(),
        b"# coding: no-such-encoding\n" + _WEAK.encode(),
    ],
)
def test_a_weak_line_is_found_at_its_place_in_every_encoding_and_with_every_line_end(data: bytes) -> None:
    text = decode(data).text
    (hit,) = (hit for hit in summarize(parse(text, "a.py")).hits if hit.rule == "command-injection")
    before = text[: text.index("os.system(")].replace("\r\n", "\n").replace("\r", "\n")
    assert hit.location.line == before.count("\n") + 1
    assert hit.location.column == len(before) - before.rfind("\n")
    assert hit.code == "os.system('x ' + input())"


@pytest.mark.parametrize("frame", ["x = '{}'\n", "# {}\nx = 1\n", "{}"])
@pytest.mark.parametrize("words", _CHINESE)
def test_short_undeclared_chinese_is_told_from_western_text(words: str, frame: str) -> None:
    text = frame.format(words)
    assert decode(text.encode("gb18030")) == Text(text, "no encoding declared, read as GB 18030")


@pytest.mark.parametrize("frame", ["x = '{}'\n", "# {}\nx = 1\n", "{}"])
@pytest.mark.parametrize("words", _WESTERN)
def test_short_undeclared_western_text_is_not_taken_for_chinese(words: str, frame: str) -> None:
    text = frame.format(words)
    assert decode(text.encode("latin-1")).text == text
    assert "Latin-1" in decode(text.encode("latin-1")).remark


def test_what_the_file_says_itself_needs_no_remark() -> None:
    assert not any(decode(_WEAK.encode(name)).remark for name in ("utf-8", "utf-16", "utf-8-sig", "utf-32-le"))
    assert not decode(b"# coding: gbk\n" + _WEAK.encode("gbk")).remark


@given(st.binary(max_size=400))
def test_any_bytes_decode_to_text_or_are_refused_as_a_value_error(data: bytes) -> None:
    with suppress(ValueError):
        assert isinstance(decode(data).text, str)


@given(st.text(st.characters(codec="gb18030", categories=["L", "N", "P", "Zs"]), min_size=1))
def test_valid_utf_8_is_never_read_as_anything_else(text: str) -> None:
    assert decode(text.encode()).text == text.removeprefix("\ufeff")


@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01\x01\0\0\0", b"\x89PNG\0\0\0", b"PK\x03\x04\0\0abc\0"])
def test_nulls_that_no_wide_encoding_explains_are_no_text(data: bytes) -> None:
    assert is_binary(data)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "utf-32-le", "gbk"])
def test_text_is_not_taken_for_binary(encoding: str) -> None:
    assert not is_binary(_WEAK.encode(encoding))
