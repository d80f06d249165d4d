from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import pytest

from agents.material import ANSWERING, INJECTION, tools
from casemate.agents import dossier
from casemate.agents.ask import ask
from casemate.agents.audit.rules import RULES
from casemate.agents.dossier.words import WORDS
from casemate.agents.phrases import PHRASES, Language
from casemate.chat.scripted import ScriptedModel
from casemate.finding import AuditResult, Gone, Ledger, ModelNote, Trend, Unread
from casemate.report.document import Block, Document, Fold, Quote, Section, Steps, Table, Verdict
from report.sample_audit import CLEAN, EMPTY, HOSTILE_FINDING, PARTIAL, UNFINISHED

LANGUAGES = get_args(Language)


def _sections(document: Document) -> Iterator[Section]:
    for section in document.sections:
        yield section
        yield from section.sections


def _blocks(document: Document) -> Iterator[Block]:
    for section in _sections(document):
        for block in section.blocks:
            yield from (block, *block.blocks) if isinstance(block, Fold) else (block,)


def _tables(document: Document) -> list[Table]:
    return [block for block in _blocks(document) if isinstance(block, Table)]


def _verdict(result: AuditResult, language: Language = "en") -> Verdict:
    (verdict,) = dossier.document(result, language=language, root=".").lead
    assert isinstance(verdict, Verdict)
    return verdict


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("result", [PARTIAL, UNFINISHED], ids=["with findings", "without"])
def test_an_audit_with_failed_files_is_called_incomplete_and_never_clean(
    result: AuditResult, language: Language
) -> None:
    verdict = _verdict(result, language)
    assert verdict.tone == "warn"
    assert WORDS[language].incomplete.split("{")[0] in verdict.text
    assert verdict.text != WORDS[language].clean.format(analysed=3)


def test_clean_found_and_nothing_analysed_are_three_different_verdicts() -> None:
    found = _verdict(AuditResult(PARTIAL.findings, CLEAN.ledger))
    assert (found.tone, found.text) == ("bad", "3 findings in 3 analysed files, the worst is high.")
    assert _verdict(CLEAN).tone == "good"
    assert (_verdict(EMPTY).tone, _verdict(EMPTY).text) == ("warn", "Nothing was analysed, so nothing can be said.")


def test_the_manager_sees_counts_by_severity_and_kind_and_the_clauses() -> None:
    severity, kinds, folders, gdpr, mlps, *_ = _tables(dossier.document(PARTIAL, language="en", root="."))
    assert severity.rows == (("high", "1"), ("medium", "1"), ("low", "1"), ("total", "3"))
    assert kinds.rows == (("CWE-89 SQL injection", "high", "1"), ("CWE-328 Use of weak hash", "medium", "2"))
    assert folders.header == ("Folder", "high", "medium", "low", "total")
    assert folders.rows == (("src", "1", "", "", "1"), ("(top folder)", "", "1", "", "1"), ("lib", "", "", "1", "1"))
    assert gdpr.rows == (("Art. 32(1)(b)", "Confidentiality of processing", "curated", "1"),)
    assert mlps.rows[0][0] == "8.1.4.4 d)"


def test_what_to_do_first_is_the_worst_with_its_file_and_leads_to_the_finding() -> None:
    (first,) = [s for s in _sections(dossier.document(PARTIAL, language="en", root=".")) if s.anchor == "first"]
    (steps,) = first.blocks
    assert isinstance(steps, Steps)
    assert [step.place for step in steps.steps] == ["src/a b#1.py:12", "empty.py", "lib/h.py:7"]
    anchors = {section.anchor for section in _sections(dossier.document(PARTIAL, language="en", root="."))}
    assert {step.target for step in steps.steps} <= anchors


def test_thousands_of_skipped_files_are_told_by_reason_with_the_first_names() -> None:
    many = tuple(Unread(f"static/{number}.js", "no rules for this language (.js)") for number in range(4000))
    result = AuditResult(ledger=Ledger(3, (*many, Unread("a.bin", "not text"))))
    (table,) = _tables(dossier.document(result, language="en", root="."))
    assert table.rows == (
        ("no rules for this language (.js)", "4000", "static/0.js, static/1.js, static/2.js, and 3997 more"),
        ("not text", "1", "a.bin"),
    )


def test_only_the_worst_findings_are_told_in_full_and_the_rest_in_a_table() -> None:
    many = tuple(replace(INJECTION, fingerprint=f"{number:032}") for number in range(700))
    document = dossier.document(AuditResult(many, CLEAN.ledger), language="en", root=".")
    assert sum(section.anchor.startswith("finding-") for section in _sections(document)) == 500
    assert max(len(table.rows) for table in _tables(document)) == 200
    assert "200 milder findings, not told in full here" in [section.title for section in document.sections]


@pytest.mark.parametrize("language", LANGUAGES)
def test_known_and_honoured_findings_stand_apart_and_are_not_called_findings_of_now(language: Language) -> None:
    known = replace(INJECTION, known=True)
    hidden = replace(INJECTION, suppressed=True, fingerprint="e" * 32)
    result = AuditResult((known, hidden), CLEAN.ledger, honoured=True, trend=Trend((Gone("f", "weak-hash", "x.py"),)))
    document = dossier.document(result, language=language, root=".")
    words = WORDS[language]
    (verdict,) = document.lead
    assert verdict == Verdict("good", words.clean_but.format(analysed=3, hidden=2))
    titles = [section.title for section in document.sections]
    for title in (words.known, words.hidden, words.gone):
        assert f"{title} (1)" in titles
    assert words.honoured.format(count=1, answer=words.yes) in str(document)


def test_what_was_not_looked_at_is_listed_with_its_reason() -> None:
    rows = [row for table in _tables(dossier.document(PARTIAL, language="en", root=".")) for row in table.rows]
    assert ("minified", "1", "static/app.min.js") in rows
    assert ("src/latin\udce9.py", "not UTF-8") in rows


def test_the_models_words_stand_apart_under_its_name() -> None:
    quotes = [
        block for block in _blocks(dossier.document(PARTIAL, language="en", root=".")) if isinstance(block, Quote)
    ]
    assert quotes == [Quote("Explanation by qwen2.5-coder-1.5b", PARTIAL.findings[0].explanation)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_suppression_mark_is_shown_and_counted(language: Language) -> None:
    document = dossier.document(AuditResult((HOSTILE_FINDING,), CLEAN.ledger), language=language, root=".")
    marks = [block for section in _sections(document) for block in section.blocks if isinstance(block, Verdict)]
    assert marks == [Verdict("note", WORDS[language].suppressed)]
    assert WORDS[language].honoured.format(count=1, answer=WORDS[language].no) in str(document)


async def test_an_answer_about_code_shows_four_parts_the_explanation_and_the_sources() -> None:
    answer = await ask(
        f"`{INJECTION.evidence}` 有风险吗", model=ScriptedModel(["直接拼接。"]), tools=tools(), note=ModelNote("m")
    )
    document = dossier.answer_document(answer)
    assert [section.title for section in document.sections] == [
        *("弱点类型", "严重程度", "修复代码", "涉及条款", "解释", "来源"),
    ]
    assert document.sections[4].blocks == (Quote("解释（由 m 生成）", "直接拼接。"),)
    assert document.language == "zh-CN"


async def test_an_answer_without_a_model_says_that_none_took_part() -> None:
    answer = await ask(ANSWERING, model=None, tools=tools(), note=ModelNote())
    document = dossier.answer_document(answer)
    assert not [block for block in document.lead if isinstance(block, Quote)]
    assert PHRASES["en"].no_model in str(document.sections[-1])


async def test_the_same_answer_gives_the_same_document() -> None:
    answer = await ask(ANSWERING, model=None, tools=tools(), note=ModelNote())
    assert dossier.answer_document(answer) == dossier.answer_document(replace(answer))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_finding_of_our_rules_is_told_in_the_readers_language(language: Language) -> None:
    rule = RULES["sql-injection"]
    bare = replace(INJECTION, fix="")
    text = str(dossier.document(AuditResult((bare,), CLEAN.ledger), language=language, root="."))
    for words in (rule.title(language), rule.message(language), rule.guidance(language)):
        assert words in text
    assert rule.name.replace("'", "") in text.replace("\\'", "").replace("'", "")
