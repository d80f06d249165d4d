from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from casemate.knowledge import embed, words
from casemate.knowledge.build import build
from casemate.knowledge.graph import Graph
from casemate.knowledge.passages import MAX_WORDS, count
from casemate.knowledge.search import Search
from fakes.small_sources import Small

QUESTIONS = Path(__file__).parent / "questions" / "tuning.tsv"


class Letters:
    """An embedder without a model: texts with the same letters are near each other."""

    def vectors(self, texts: Sequence[str]) -> embed.Vectors:
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> embed.Vectors:
        counts = Counter(text.casefold())
        vector = np.array([counts[letter] for letter in "abcdefghijklmnopqrstuvwxyz"], dtype=np.float32) + 0.01
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def ids(graph: Graph, text: str, limit: int = 3) -> list[str]:
    return [passage.node for passage in Search(graph).search(text, limit)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CWE-89", "CWE-89"),
        ("cwe 89 是什么", "CWE-89"),
        ("what is t1190", "T1190"),
        ("T1059.007", "T1059.007"),
        ("A03:2021", "A03:2021"),
        ("TA0001", "TA0001"),
        ("M1013", "M1013"),
        ("SQL注入", "CWE-89"),
        ("ＳＱＬ 注入", "CWE-89"),
        ("这段代码有没有sql注入风险", "CWE-89"),
        ("Is this an SQLi?", "CWE-89"),
        ("存在跨站脚本和别的问题", "CWE-79"),
    ],
)
def test_what_a_text_names_comes_first(small_graph: Graph, text: str, expected: str) -> None:
    found = Search(small_graph).search(text, 3)
    assert (found[0].node, found[0].score) == (expected, 1.0)


def test_the_longest_name_in_a_chinese_sentence_wins(real_graph: Graph) -> None:
    assert ids(real_graph, "后台被人密码喷洒了怎么办", 1) == ["T1110.003"]
    assert ids(real_graph, "发现命令注入", 1) == ["CWE-78"]


def test_a_name_inside_another_word_is_not_found(small_graph: Graph) -> None:
    assert all(passage.score < 1 for passage in Search(small_graph).search("pxssh and sqlite", 5))


def test_a_revoked_id_brings_its_heir(small_graph: Graph) -> None:
    assert ids(small_graph, "T1064") == ["T1064", "T1059"]


@pytest.mark.parametrize("text", ["", "   ", "?!", "\x00", '"" OR "', "the of and", "你", "NEAR(", "* - ^ : { } +"])
def test_a_text_that_says_nothing_finds_nothing_and_breaks_nothing(small_graph: Graph, text: str) -> None:
    assert Search(small_graph).search(text) == []


def test_words_of_a_description_find_it(small_graph: Graph) -> None:
    assert "CWE-79" in ids(small_graph, "page repeats script")


def test_chinese_words_of_the_field_find_english_descriptions(small_graph: Graph) -> None:
    assert "CWE-89" in ids(small_graph, "查询被人改了")


def test_a_passage_is_short_and_says_where_it_comes_from(real_graph: Graph) -> None:
    search = Search(real_graph)
    for cwe in ("CWE-89", "CWE-79", "T1190", "A05:2025", "CWE-611", "T1002", "TA0008", "CWE-1333"):
        passage = search.search(cwe, 1)[0]
        assert count(passage.text) <= MAX_WORDS, passage
        assert passage.version
    text = search.search("CWE-89", 1)[0].text
    assert all(part in text for part in ("SQL注入", "Prevent: ", "T1190", "GDPR Art. ", "HIPAA 164.", "MLPS 8.1."))
    assert "compl" not in text.casefold()


def test_a_search_never_gives_more_than_it_is_asked_for_and_no_node_twice(real_graph: Graph) -> None:
    found = ids(real_graph, "CWE-89 SQL注入 SQL injection 跨站脚本 CSRF SSRF XXE 越权", 4)
    assert len(found) == len(set(found)) == 4


def test_many_threads_get_the_same_answer(real_graph: Graph) -> None:
    search = Search(real_graph)
    questions = ["SQL注入", "upload a php shell", "内网横向移动", "buffer overflow"] * 8
    alone = [search.search(question) for question in questions]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(search.search, questions)) == alone


def test_the_questions_are_the_ones_that_were_written_before_any_tuning() -> None:
    for line in QUESTIONS.with_name("SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = line.split()
        assert sha256(QUESTIONS.with_name(name).read_bytes()).hexdigest() == digest


def test_words_alone_answer_nine_of_ten_questions_in_either_language(real_graph: Graph) -> None:
    with QUESTIONS.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["kind"] == "first"]
    assert Counter(row["language"] for row in rows) == {"zh": 30, "en": 30}
    hits = Counter(
        row["language"] for row in rows if set(row["expected"].split(",")) & set(ids(real_graph, row["question"]))
    )
    assert min(hits["zh"], hits["en"]) >= 27, hits


def test_the_dense_index_answers_when_it_is_whole(small_graph: Graph) -> None:
    steps: list[tuple[int, int]] = []
    assert embed.open_dense(small_graph, Letters()) is None
    total = embed.build_index(small_graph, Letters(), observe=lambda done, of: steps.append((done, of)))
    assert steps[-1] == (total, total)
    assert embed.coverage(small_graph) == embed.Coverage(total, total)
    dense = embed.open_dense(small_graph, Letters())
    assert dense is not None
    assert [id_ for id_, _ in dense.nearest("JavaScript. Strangers run their script.", 1)] == ["T1059.007"]
    assert not list(small_graph.path.parent.glob("*.part"))


class Interrupted(Letters):
    """An embedder that is killed behind its first batches."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def vectors(self, texts: Sequence[str]) -> embed.Vectors:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return super().vectors(texts)


def test_an_interrupted_index_goes_on_where_it_was_and_answers_not_before(small_graph: Graph) -> None:
    total = embed.coverage(small_graph).total
    with pytest.raises(KeyboardInterrupt):
        embed.build_index(small_graph, Interrupted(1))
    found = embed.coverage(small_graph)
    assert 0 < found.done < total
    assert embed.open_dense(small_graph, Letters()) is None
    assert embed.build_index(small_graph, Letters()) == total - found.done
    assert embed.build_index(small_graph, Letters()) == 0
    assert embed.open_dense(small_graph, Letters()) is not None


def test_a_new_graph_is_embedded_only_where_it_says_something_new(small: Small, tmp_path: Path) -> None:
    path = tmp_path / "graph.sqlite"
    build(small.sources, path)
    with Graph.open(path) as graph:
        embed.build_index(graph, Letters())
    small.cwe.write_text(small.cwe.read_text().replace("Improper Input Validation", "Unread Post"))
    build(small.sources, path)
    with Graph.open(path) as graph:
        assert embed.build_index(graph, Letters()) == 1


def test_meaning_brings_in_what_no_word_finds(small_graph: Graph) -> None:
    embed.build_index(small_graph, Letters())
    question = "tpircs rieht nur sregnarts .tpircsavaj"
    meant = Search(small_graph, embed.open_dense(small_graph, Letters())).search(question, 40)
    assert "T1059.007" in [passage.node for passage in meant]
    assert "T1059.007" not in ids(small_graph, question, 40)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"\x93NUMPY"])
def test_a_damaged_dense_index_is_as_none(small_graph: Graph, content: bytes) -> None:
    embed.index_path(small_graph).write_bytes(content)
    assert embed.open_dense(small_graph, Letters()) is None


def test_the_shipped_embedder_knows_that_two_languages_say_the_same(small_graph: Graph) -> None:
    model = embed.E5()
    texts = ["SQL injection in a database query", "A cookie without a flag", "Memory is used after it was freed"]
    closeness = model.vectors(texts) @ model.vectors(["数据库查询语句被注入"])[0]
    assert int(np.argmax(closeness)) == 0


def test_folding_ignores_width_case_and_spaces_beside_chinese() -> None:
    assert words.fold("  ＳＱＬ  注入 Attack ") == "sql注入attack"
    assert words.fold("Cross  Site") == "cross site"


def test_chinese_is_split_into_neighbouring_pairs() -> None:
    assert words.pairs("跨站脚本 XSS 攻击") == ["跨站", "站脚", "脚本", "攻击"]
