"""Some dangers cannot occur because the syntax for them does not occur."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from house import safety
from house.source import PACKAGE, Source, sources

Rule = Callable[[Source], Iterator[str]]

_RULES = (
    safety.unsafe_modules,
    safety.code_from_data,
    safety.unsafe_switches,
    safety.remote_code,
    safety.open_doors,
)

# Where a danger must be named in order to find or refuse it, or is fenced by other means.
_EXCUSED: dict[Rule, tuple[str, ...]] = {
    safety.unsafe_modules: (f"{PACKAGE}/process.py",),  # a pool speaks pickle with its own workers on a private channel
    safety.remote_code: (f"{PACKAGE}/agents/audit/",),
    safety.open_doors: (f"{PACKAGE}/agents/audit/",),
}

_BREACHES: list[tuple[Rule, str]] = [
    (safety.unsafe_modules, "import pickle"),
    (safety.unsafe_modules, "from marshal import loads"),
    (safety.code_from_data, "x = eval(text)"),
    (safety.code_from_data, "exec(text)"),
    (safety.code_from_data, "os.system(text)"),
    (safety.unsafe_switches, "run(line, shell=True)"),
    (safety.unsafe_switches, "numpy.load(file, allow_pickle=True)"),
    (safety.unsafe_switches, "Environment(autoescape=False)"),
    (safety.unsafe_switches, "load(folder, trust_remote_code=True)"),
    (safety.remote_code, "argv = ['serve', '--trust-remote-code']"),
    (safety.remote_code, "argv = f'--trust-remote-code={x}'"),
    (safety.open_doors, "host = '0.0.0.0'"),
]
_ALLOWED: list[tuple[Rule, str]] = [
    (safety.code_from_data, "import re\nre.compile(text)\nmodel.eval()\nrule = 'eval(x) runs text'"),
    (safety.unsafe_switches, "run(argv, shell=False, verify=True)"),
    (safety.remote_code, '"""Never emits --trust-remote-code."""'),
    (safety.open_doors, "host = '127.0.0.1'"),
]


@pytest.mark.parametrize("rule", _RULES)
def test_the_product_does_not_contain(rule: Rule) -> None:
    read = [source for source in sources("src") if not source.path.startswith(_EXCUSED.get(rule, ("-",)))]
    assert not [place for source in read for place in rule(source)]


@pytest.mark.parametrize(("rule", "text"), _BREACHES)
def test_a_breach_is_caught(rule: Rule, text: str) -> None:
    assert list(rule(Source.of("src/casemate/x.py", text)))


@pytest.mark.parametrize(("rule", "text"), _ALLOWED)
def test_what_is_harmless_passes(rule: Rule, text: str) -> None:
    assert not list(rule(Source.of("src/casemate/x.py", text)))
