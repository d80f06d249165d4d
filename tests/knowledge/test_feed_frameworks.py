from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from casemate.errors import KnowledgeError
from casemate.knowledge.facts import records
from casemate.knowledge.feeds import importers
from casemate.knowledge.feeds.importers import SHIPPED, Source
from casemate.knowledge.node import Edge, Node
from casemate.knowledge.tsv import FACTS

GDPR = "id\ttitle\ttitle_zh\nArt. 1\tGates\t门\nArt. 1(1)\t\t\nArt. 1(1)(a)\t\t\n"
HIPAA = "id\ttitle\ttitle_zh\tstatus\n164.308\tWalls\t墙\tsection\n164.308(a)\tWalls and gates\t墙与门\tstandard\n"
MLPS = (
    "clause\titem\ttitle\ttitle_zh\tarea\tarea_zh\tgist\tgist_zh\n"
    "8.1.1.1\ta\tPlace\t位置\tGround\t地\tHigh.\t高。\n"
    "8.1.1.2\t-\tDoor\t门\tGround\t地\tShut.\t关。\n"
)
TABLES = {"gdpr": GDPR, "hipaa": HIPAA, "mlps": MLPS}
IDS = {
    "gdpr": {"GDPR Art. 1": "门", "GDPR Art. 1(1)": "门 (1)", "GDPR Art. 1(1)(a)": "门 (1, a)"},
    "hipaa": {"HIPAA 164.308": "墙", "HIPAA 164.308(a)": "墙与门"},
    "mlps": {"MLPS 8.1.1.1": "位置", "MLPS 8.1.1.1 a)": "位置", "MLPS 8.1.1.2": "门"},
}


def nodes(source: Source) -> dict[str, str]:
    return {record.id: record.name_zh for record in importers.read(source) if isinstance(record, Node)}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("form", ["tabs", "commas", "another order"])
def test_a_table_is_recognised_by_its_head_line_and_gives_its_clauses(name: str, form: str, tmp_path: Path) -> None:
    text = TABLES[name]
    if form == "commas":
        text = "\ufeff" + text.replace("\t", ",").replace("\n", "\r\n")
    elif form == "another order":
        text = "".join("\t".join(reversed(line.split("\t"))) + "\n" for line in text.splitlines())
    path = tmp_path / "mine"
    path.write_text(text, encoding="utf-8", newline="")
    source = importers.recognise(path)
    assert source.importer == name
    assert nodes(source) == IDS[name]


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_that_ship_are_tables_of_this_form_and_give_the_same_records(name: str) -> None:
    file, _ = records.FRAMEWORKS[name]
    source = importers.recognise(Path(str(resources.files(FACTS))) / file)
    assert source.importer == name
    found = set(importers.read(source))
    frameworks = {record.source for record in found if isinstance(record, Node)}
    shipped = {r for r in records.read() if isinstance(r, Node | Edge) and r.source in frameworks}
    assert found == shipped


@pytest.mark.parametrize("name", TABLES)
def test_a_brought_table_takes_the_place_of_the_one_that_ships(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text(TABLES[name], encoding="utf-8")
    sources = (SHIPPED, Source(name, path))
    found: dict[str, str] = {}
    for source in sources:
        found |= {r.id: r.name_zh for r in importers.read(source, sources) if isinstance(r, Node)}
    prefix = next(iter(IDS[name])).split()[0] + " "
    assert {id_: zh for id_, zh in found.items() if id_.startswith(prefix)} == IDS[name]
    assert any(not id_.startswith(prefix) for id_ in found)


DAMAGES = {
    "no row": ("gdpr", GDPR.partition("\n")[0], ""),
    "a cell too few": ("gdpr", GDPR + "Art. 2\tWalls\n", ":5"),
    "a cell too many": ("hipaa", HIPAA + "164.310\ta\tb\tc\td\n", ":4"),
    "a foreign id": ("gdpr", GDPR + "CWE-89\tQuery\t查询\n", ":5"),
    "an id with a tail": ("hipaa", HIPAA + "164.310 etc.\ta\tb\tc\n", ":4"),
    "no title": ("gdpr", GDPR + "Art. 2\t\t门\n", ":5"),
    "no Chinese title": ("hipaa", HIPAA + "164.310\tWalls\t \tsection\n", ":4"),
    "a foreign item": ("mlps", MLPS.replace("\ta\t", "\t1)\t"), ":2"),
    "another table": ("mlps", GDPR, ":2"),
    "not UTF-8": ("gdpr", GDPR.encode("gb18030").decode("latin-1"), ":2"),
}


@pytest.mark.parametrize(("name", "text", "where"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_table_is_refused_by_line(name: str, text: str, where: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_bytes(text.encode("latin-1" if where == ":2" and name == "gdpr" else "utf-8"))
    with pytest.raises(KnowledgeError) as caught:
        list(importers.read(Source(name, path)))
    assert caught.value.where == f"{path}{where}"


@pytest.mark.parametrize("text", ["id\ttitle\n", "id\ttitle\ttitle_zh\tmore\n", "id title title_zh\n", "", "\t\t\n"])
def test_another_head_line_is_not_claimed(text: str, tmp_path: Path) -> None:
    (tmp_path / "other.tsv").write_text(text)
    with pytest.raises(KnowledgeError, match="in no format"):
        importers.recognise(tmp_path / "other.tsv")
