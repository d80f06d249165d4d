r"""The rules of a remapping: regular expressions that rename or drop tensors, from a TOML file.

    max_bytes = "5GB"                      # optional: lay the result out in files of at most so many bytes

    [[rule]]
    match = '^model\.layers\.(\d+)\.mlp\.'  # searched anywhere in the name, Python's syntax
    replace = 'layers.\1.ffn.'             # every place that matches; groups as \1 or \g<name>

    [[rule]]
    match = '\.rotary_emb\.inv_freq$'
    drop = true

Rules run in order, each on the name that the one before left. Expressions come from a file that may be anybody's, and
one such as `(a+)+$` never ends on some names; so they run in a worker process that is ended after some seconds.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from casemate.checkpoint.jsonscan import shown, shown_path
from casemate.checkpoint.layout import MOST_NAME_BYTES
from casemate.checkpoint.listing import opened
from casemate.checkpoint.sharding import parsed_size
from casemate.errors import UsageError
from casemate.process import Broken, Limits, each

_MOST_FILE_BYTES = 1 << 20
_MOST_RULES = 1000
_MOST_EXPRESSION = 1 << 12
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of control, format and separator characters."""
_BATCH = 2000
_LIMITS = Limits(time_s=5.0, memory_bytes=1 << 30, processes=1)


@dataclass(frozen=True, slots=True)
class Rule:
    """What is done to names in which `match` is found: `replace` it, or drop the tensor where that is None."""

    match: str
    replace: str | None


@dataclass(frozen=True, slots=True)
class Rules:
    """A rule file: the rules in order, and the most bytes a file where the layout changes too."""

    rules: tuple[Rule, ...]
    most_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """New names in the order of the old, None for dropped ones; and how many names each rule changed or dropped."""

    names: tuple[str | None, ...]
    uses: tuple[int, ...]


def read_rules(path: Path) -> Rules:
    """Read a rule file; the expressions are tried by `apply_rules` only.

    Raises:
        UsageError: it cannot be read, is no TOML, or says something that we do not know.
    """
    with opened(path) as file:
        content = file.read(_MOST_FILE_BYTES + 1)
    if len(content) > _MOST_FILE_BYTES:
        raise UsageError(f"more than {_MOST_FILE_BYTES} bytes of rules", where=shown_path(path))
    try:
        found = tomllib.loads(content.decode())
        return _rules(found)
    except UsageError as error:
        raise UsageError(f"wrong rules: {error}", where=shown_path(path)) from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the rules are no TOML: {shown(str(error))}", where=shown_path(path)) from error


def apply_rules(rules: Rules, names: Sequence[str]) -> Applied:
    """Rename all names.

    Raises:
        UsageError: an expression or replacement is wrong or takes too long, or a name grows too long.
    """
    answered: list[str | None] = []
    uses = [0] * len(rules.rules)
    tasks = [(rules.rules, batch) for batch in _batches(names)] or [(rules.rules, ())]
    for _, result in each(_apply, tasks, limits=_LIMITS):
        match result:
            case Applied():
                answered += result.names
                uses = [before + more for before, more in zip(uses, result.uses, strict=True)]
            case Broken(reason):
                raise UsageError(f"the rules cannot be applied: {shown(reason)}", remedy="simplify the expressions")
            case str():
                raise UsageError(result)
    return Applied(tuple(answered), tuple(uses))


def _rules(found: dict[str, Any]) -> Rules:
    _must_know(found, ("rule", "max_bytes"))
    listed, size = found.get("rule", []), found.get("max_bytes")
    if not isinstance(listed, list) or len(listed) > _MOST_RULES:
        raise UsageError(f"rules are [[rule]] tables, at most {_MOST_RULES}")
    if not listed and size is None:
        raise UsageError("there is no [[rule]]")
    if size is not None and (not isinstance(size, str | int) or isinstance(size, bool)):
        raise UsageError("max_bytes is a size such as '5GB'")
    rules = tuple(_rule(number, item) for number, item in enumerate(listed, start=1))
    return Rules(rules, None if size is None else parsed_size(str(size)))


def _rule(number: int, item: object) -> Rule:
    if not isinstance(item, dict):
        raise UsageError(f"rule {number} is no table")
    _must_know(item, ("match", "replace", "drop"), where=f"rule {number}")
    match, replace, drop = item.get("match"), item.get("replace"), item.get("drop", False)
    if not isinstance(match, str) or not match or len(match) > _MOST_EXPRESSION:
        raise UsageError(f"rule {number} needs a `match` of at most {_MOST_EXPRESSION} letters")
    if not isinstance(drop, bool) or drop == (replace is not None):
        raise UsageError(f"rule {number} needs either `replace` or `drop = true`")
    if replace is not None and (not isinstance(replace, str) or len(replace) > _MOST_EXPRESSION):
        raise UsageError(f"rule {number} has a `replace` that is no text of at most {_MOST_EXPRESSION} letters")
    return Rule(match, replace)


def _must_know(found: dict[str, Any], known: tuple[str, ...], *, where: str = "the file") -> None:
    for key in found:
        if key not in known:
            raise UsageError(f"{where} has {shown(key)!r}, and we know {', '.join(known)}")


def _batches(names: Sequence[str]) -> Iterable[tuple[str, ...]]:
    rest = iter(names)
    while batch := tuple(islice(rest, _BATCH)):
        yield batch


def _is_odd(old: str, new: str) -> bool:
    """Whether a name got characters that do not show; those that it had already are not the rule's."""
    return any(unicodedata.category(letter) in _UNSEEN for letter in set(new) - set(old))


def _apply(task: tuple[tuple[Rule, ...], tuple[str, ...]]) -> Applied | str:
    """In a worker: all rules on a batch of names; a text tells what is wrong with a rule."""
    rules, names = task
    current: list[str | None] = list(names)
    uses: list[int] = []
    for number, rule in enumerate(rules, start=1):
        before = tuple(current)
        try:
            used = _apply_one(rule, current)
        except (re.error, OverflowError, RecursionError, IndexError) as error:
            return f"rule {number}, {shown(rule.match)!r}: {error}"
        changed = zip(before, current, strict=True)
        if odd := next(
            (new for old, new in changed if old is not None and new is not None and _is_odd(old, new)), None
        ):
            return f"rule {number}, {shown(rule.match)!r}, makes a name with control characters: {shown(odd)!r}"
        if any(name is not None and len(name) > MOST_NAME_BYTES for name in current):
            return f"rule {number}, {shown(rule.match)!r}, makes a name of more than {MOST_NAME_BYTES} letters"
        uses.append(used)
    return Applied(tuple(current), tuple(uses))


def _apply_one(rule: Rule, names: list[str | None]) -> int:
    pattern = re.compile(rule.match)
    if rule.replace is not None:
        pattern.sub(rule.replace, "")  # a wrong group in the replacement shows even where nothing matches
    used = 0
    for at, name in enumerate(names):
        if name is None or not pattern.search(name):
            continue
        used += 1
        names[at] = None if rule.replace is None else pattern.sub(rule.replace, name)
    return used
