"""Every signature against its own samples, and against what a hostile or unlucky log holds."""

from __future__ import annotations

import io
import itertools
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casemate.doctor.diagnose import diagnose
from casemate.doctor.log.ranking import STANDINGS
from casemate.doctor.log.reading import LONGEST_PIECE_BYTES
from casemate.doctor.log.signatures import Sieve, Signature, signatures, trends

FOLDER = Path(__file__).parent / "samples"
SAMPLES: dict[str, dict[str, list[str]]] = {
    id_: held for file in sorted(FOLDER.glob("*.toml")) for id_, held in tomllib.loads(file.read_text("utf-8")).items()
}
BY_ID = {signature.id: signature for signature in signatures()}
COMPONENTS = pytest.mark.parametrize("component", sorted({signature.component for signature in signatures()}))
LONGEST_REPEAT = 500
HOSTILE = (
    "a" * 100_000,
    "(" * 100_000,
    "Error: " * 14_000,
    "\t \xa0" * 33_000,
    "'0x0x.:/-" * 11_000,
    "\uff5c{[<" * 25_000,
)


def test_there_are_at_least_72_and_each_has_two_samples_and_two_near_misses() -> None:
    assert len(BY_ID) >= 72
    assert SAMPLES.keys() == BY_ID.keys()
    assert all(len(held["yes"]) >= 2 and len(held["no"]) >= 2 for held in SAMPLES.values())


@COMPONENTS
def test_a_sample_is_recognised_by_its_own_signature_before_any_other(component: str) -> None:
    for signature in _of(component):
        for sample in SAMPLES[signature.id]["yes"]:
            found = [finding.id for finding in diagnose(io.BytesIO(sample.encode())).findings]
            own = found[:1] if signature.role != "wrapper" else found
            assert signature.id in own, (sample, found)


@COMPONENTS
def test_a_near_miss_is_not_recognised(component: str) -> None:
    for signature in _of(component):
        for sample in SAMPLES[signature.id]["no"]:
            hit = [one for one in diagnose(io.BytesIO(sample.encode())).findings if one.id == signature.id]
            assert not [one for one in hit if one.standing != "notice" or signature.severity == "notice"], sample


@COMPONENTS
def test_a_signature_tells_what_it_is_what_to_do_how_to_check_and_where_it_was_seen(component: str) -> None:
    for signature in _of(component):
        assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", signature.id)
        assert all((signature.root_cause, signature.fix, signature.verify, signature.applies_to, signature.source))
        assert all(source.startswith(("https://", "vLLM ")) for source in signature.source), signature.id
        assert {*signature.explains, *signature.needs} <= BY_ID.keys() - {signature.id}
        assert set(signature.stages) <= {"load", "profile", "cache", "capture", "warm", "serve"}


@COMPONENTS
def test_every_form_of_an_expression_passes_its_sieve(component: str) -> None:
    for signature in _of(component):
        sieve = Sieve(signature.words)
        shown = [form for form in forms(_parsed(signature)) if signature.expression.search(form)]
        assert not [form for form in shown if not sieve(form.encode())], signature.id


@COMPONENTS
def test_an_expression_has_simple_forms_only(component: str) -> None:
    assert not [(one.id, loose) for one in _of(component) for loose in _loose(_parsed(one), inside=False)]


@COMPONENTS
def test_a_hostile_text_is_searched_to_its_end(component: str) -> None:
    for signature in _of(component):
        literal = max(re.findall(r"[A-Za-z ]{4,}", signature.expression.pattern), key=len, default="x")
        for text in (*HOSTILE, literal * (100_000 // len(literal))):
            for begin in range(0, len(text), LONGEST_PIECE_BYTES):
                signature.expression.search(text[begin : begin + LONGEST_PIECE_BYTES])


def test_what_explains_what_has_no_circle() -> None:
    def below(id_: str, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if id_ in above:
            yield (*above, id_)
            return
        for other in BY_ID[id_].explains:
            yield from below(other, (*above, id_))

    assert not [circle for id_ in BY_ID for circle in below(id_, ())]


def test_a_trend_tells_as_much_as_a_signature() -> None:
    assert not trends().keys() & BY_ID.keys()
    for trend in trends().values():
        assert all((trend.component, trend.root_cause, trend.fix, trend.verify, trend.source))


def test_no_sample_of_a_healthy_thing_makes_a_wrapper_the_root() -> None:
    wrappers = [signature.id for signature in signatures() if signature.role == "wrapper"]
    for id_ in wrappers:
        for sample in SAMPLES[id_]["yes"]:
            root = diagnose(io.BytesIO(sample.encode())).root
            assert root is None or root.id not in wrappers, sample


def test_the_standings_are_told_apart() -> None:
    assert len(set(STANDINGS)) == len(STANDINGS)


def _of(component: str) -> list[Signature]:
    return [signature for signature in signatures() if signature.component == component]


_PARSER: Any = re._parser  # type: ignore[attr-defined] # the one reader of expressions that there is
_CODES: Any = re._constants  # type: ignore[attr-defined] # the names of its nodes


def _parsed(signature: Signature) -> Any:
    return _PARSER.parse(signature.expression.pattern)


def forms(tree: Any) -> list[str]:
    """Short texts, one for each way through an expression (optional parts left out)."""
    shown = [""]
    for code, argument in tree:
        pairs = itertools.product(shown, _form(code, argument))
        shown = ["".join(pair) for pair in itertools.islice(pairs, 4000)]
    return shown


def _form(code: Any, argument: Any) -> list[str]:
    if code is _CODES.LITERAL:
        return [chr(argument)]
    if code is _CODES.IN:
        return [_member(argument[0])]
    if code is _CODES.BRANCH:
        return [form for branch in argument[1] for form in forms(branch)]
    if code is _CODES.SUBPATTERN:
        return forms(argument[3])
    if code in (_CODES.MAX_REPEAT, _CODES.MIN_REPEAT):
        least, _, inner = argument
        return [form * least for form in forms(inner)] if least else [""]
    return ["~"] if code in (_CODES.ANY, _CODES.NOT_LITERAL) else [""]


def _member(first: Any) -> str:
    code, argument = first
    if code is _CODES.LITERAL:
        return chr(argument)
    if code is _CODES.RANGE:
        return chr(argument[0])
    names = {_CODES.CATEGORY_DIGIT: "7", _CODES.CATEGORY_WORD: "x", _CODES.CATEGORY_SPACE: " "}
    return names.get(argument, "~")


def _loose(tree: Any, *, inside: bool) -> Iterator[str]:
    """Repetitions without a bound, or inside another one: what can make a search slow."""
    for code, argument in tree:
        if code in (_CODES.MAX_REPEAT, _CODES.MIN_REPEAT):
            least, most, inner = argument
            if most > LONGEST_REPEAT:
                yield f"{{{least},{most}}}"
            if inside and most > 2:
                yield "a repetition inside a repetition"
            yield from _loose(inner, inside=most > 2)
        elif code is _CODES.BRANCH:
            for branch in argument[1]:
                yield from _loose(branch, inside=inside)
        elif code is _CODES.SUBPATTERN:
            yield from _loose(argument[3], inside=inside)
