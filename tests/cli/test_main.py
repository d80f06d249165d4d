"""The edge of the command line."""

import importlib
import inspect

import pytest
import typer

from casemate.cli import loader, main


def _exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main.run(list(arguments))
    code = stopped.value.code
    assert isinstance(code, int)
    return code


def test_help_lists_every_verb_without_importing_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit_code("--help") == 0
    printed = capsys.readouterr().out
    assert all(f"  {verb}" in printed for verb in loader.VERBS)


@pytest.mark.parametrize(
    "arguments", [("fecth",), ("--nope",), ("audit",), ("audit", "--nope"), ("ask",), ("kb", "nope"), ()]
)
def test_a_usage_error_is_one_line_and_exits_3(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit_code(*arguments) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    assert arguments == () or len(captured.err.strip().splitlines()) == 1


def test_a_mistyped_verb_is_answered_with_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit_code("adit") == 3
    assert "Did you mean 'audit'" in capsys.readouterr().err


@pytest.mark.parametrize("verb", loader.VERBS)
def test_the_help_line_of_a_verb_is_the_first_line_of_its_docstring(verb: str) -> None:
    target = getattr(importlib.import_module(f"casemate.cli.{verb}"), verb)
    text = target.info.help if isinstance(target, typer.Typer) else inspect.getdoc(target)
    assert isinstance(text, str)
    assert text.splitlines()[0] == loader.VERBS[verb]


@pytest.mark.parametrize("verb", loader.VERBS)
def test_every_verb_prints_its_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _exit_code(verb, "--help") == 0
    assert loader.VERBS[verb] in " ".join(capsys.readouterr().out.split())
