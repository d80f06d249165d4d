"""The command that circulates for this very set-up, judged word by word, and other whole commands."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from casemate.engine.flags.helptext import from_help
from casemate.engine.flags.table import recorded
from casemate.finding import Severity
from casemate.plan.recipe.judging import Ground, Report, judge
from casemate.plan.recipe.mending import command
from casemate.plan.recipe.reading import of_words
from casemate.plan.recipe.telling import as_value, lines
from engine.parsers import columns, parser
from plan.recipes import ground, judged

CIRCULATING = (
    "python -m vllm.entrypoints.api_server --model ./deepseek-v4-flash-hf --tensor-parallel-size 1 "
    "--pipeline-parallel-size 2 --device cuda --dtype half --quantization fp8 "
    "--quantization-param-path ./fp8_scales.pt --gpu-memory-utilization 0.85 --max-model-len 32768 "
    "--max-num-batched-tokens 4096 --max-num-seqs 256 --block-size 32 --enable-prefix-caching --enforce-eager "
    "--preemption-mode recomputed --max-num-prompt-tokens 32768 --host 0.0.0.0 --port 8000 --disable-log-requests "
    "--disable-log-stats"
)

_VERDICTS = {
    "python -m vllm.entrypoints.api_server": "removed",
    "--model ./deepseek-v4-flash-hf": "fine",
    "--tensor-parallel-size 1": "fine",
    "--pipeline-parallel-size 2": "wrong_belief",
    "--device cuda": "removed",
    "--dtype half": "refused",
    "--quantization fp8": "wrong_belief",
    "--quantization-param-path ./fp8_scales.pt": "removed",
    "--gpu-memory-utilization 0.85": "fine",
    "--max-model-len 32768": "fine",
    "--max-num-batched-tokens 4096": "fine",
    "--max-num-seqs 256": "fine",
    "--block-size 32": "refused",
    "--enable-prefix-caching": "fine",
    "--enforce-eager": "harmful",
    "--preemption-mode recomputed": "removed",
    "--max-num-prompt-tokens 32768": "never_existed",
    "--host 0.0.0.0": "exposed",
    "--port 8000": "fine",
    "--disable-log-requests": "removed",
    "--disable-log-stats": "harmful",
}


def test_every_word_of_the_circulating_command_has_its_verdict() -> None:
    report = judged(CIRCULATING, ground("0.32.0", "v4"))
    assert {word.text: word.verdict for word in report.words} == _VERDICTS
    assert " ".join(word.text for word in report.words) == CIRCULATING


def test_in_0_33_the_one_flag_that_came_back_is_only_needless() -> None:
    report = judged(CIRCULATING, ground("0.33.0", "v4"))
    verdicts = {word.text: word.verdict for word in report.words}
    assert verdicts == _VERDICTS | {"--disable-log-requests": "needless"}


def test_in_0_6_3_the_same_command_fails_by_its_batched_tokens() -> None:
    report = judged(CIRCULATING, ground("0.6.3"))
    verdicts = {word.text: word.verdict for word in report.words}
    assert verdicts["--max-num-batched-tokens 4096"] == "refused"
    assert verdicts["--quantization-param-path ./fp8_scales.pt"] == "wrong_belief"
    assert verdicts["--device cuda"] == verdicts["--disable-log-requests"] == "fine"
    assert verdicts["python -m vllm.entrypoints.api_server"] == "harmful"


def test_the_corrected_command_keeps_what_was_sound() -> None:
    report = judged(CIRCULATING, ground("0.32.0", "v4"))
    assert command(report.corrected) == (
        "vllm serve ./deepseek-v4-flash-hf --gpu-memory-utilization 0.85 --max-model-len 32768 "
        "--max-num-batched-tokens 4096 --max-num-seqs 256 --enable-prefix-caching --port 8000 "
        "--tensor-parallel-size 2 --block-size 256 --host 127.0.0.1"
    )


def test_without_the_model_s_facts_nothing_is_said_of_it_for_sure() -> None:
    report = judged(CIRCULATING, ground("0.32.0"))
    info = {problem.flag for problem in report.problems if problem.severity is Severity.INFO}
    assert info == {"--dtype", "--quantization", "--block-size"}
    assert "--quantization fp8" in command(report.corrected)


def _saved_help(version: str) -> str:
    with columns(100):
        return parser(recorded().table(version)).format_help()


def test_flags_that_no_longer_exist_are_told_against_a_saved_help() -> None:
    """Case V21: the flags alone, against the help of an engine whose version is not told."""
    table = from_help(_saved_help("0.25.1"), recorded())
    by = Ground(table, recorded(), ground().advice)
    report = judged(
        "--disable-log-requests --preemption-mode recomputed --max-num-prompt-tokens 32768 --quantization-param-path "
        "./s.pt --device cuda --tensor-parallel-size 1 --pipeline-parallel-size 2 --enforce-eager",
        by,
    )
    verdicts = {word.text.split()[0]: word.verdict for word in report.words}
    assert verdicts == {
        "--disable-log-requests": "removed",
        "--preemption-mode": "removed",
        "--max-num-prompt-tokens": "never_existed",
        "--quantization-param-path": "removed",
        "--device": "removed",
        "--tensor-parallel-size": "fine",
        "--pipeline-parallel-size": "wrong_belief",
        "--enforce-eager": "harmful",
    }
    says = {problem.flag: problem.says for problem in report.problems}
    assert "--enable-log-requests" in says["--disable-log-requests"]
    assert "--max-model-len" in says["--max-num-prompt-tokens"]
    assert command(report.corrected) == "vllm serve MODEL --tensor-parallel-size 2"
    assert not report.clean


def test_offload_that_is_not_needed_is_an_error_with_the_measured_loss() -> None:
    """Case V13."""
    report = judged(
        "vllm serve m --cpu-offload-gb 35 -tp 2 --max-model-len 32768", ground(model="dense", machine="hopper")
    )
    (problem,) = report.problems
    assert problem.severity is Severity.HIGH
    assert "2,434" in problem.says
    assert command(report.corrected) == "vllm serve m -tp 2 --max-model-len 32768"


def test_a_model_named_by_its_hub_id_is_spoken_of_with_a_condition() -> None:
    by = ground(model="v4")
    presumed = Ground(by.table, by.history, by.advice, by.checkpoint, presumed=True)
    report = judged("vllm serve deepseek-ai/DeepSeek-V4-Flash --quantization fp8 --enforce-eager", presumed)
    says = {problem.flag: problem.says for problem in report.problems}
    assert says["--quantization"].startswith("If this is the published checkpoint")
    assert not says["--enforce-eager"].startswith("If")


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("vllm serve m --api-key sk-example-1", "sk-example-1"),
        ("vllm serve m --api_key=sk-example-1", "sk-example-1"),
        ("vllm serve m --apikey sk-example-1", "sk-example-1"),
        ("vllm serve m --hf-token hf_example --hf-token hf_example2", "hf_example"),
        ("HF_TOKEN=hf_example VLLM_API_KEY=sk-example-1 vllm serve m --bad", "example"),
        ("AWS_SECRET_ACCESS_KEY=abcd1234example vllm serve m --enforce-eager", "abcd1234example"),
    ],
)
def test_no_secret_of_a_recipe_is_repeated(text: str, hidden: str) -> None:
    report = judged(text)
    assert hidden not in "\n".join(lines(report))
    assert hidden not in str(as_value(report))


_TOKENS = [
    "--model", "m", "--port", "--dtype", "--max-model-len", "-tp", "2", "-pp", "0.5", "auto", "--", "-1", "$X",
    "--enforce-eager", "-cc.x.y", '{"method": "mtp"}', "--speculative-config", "--host=::", "--api-key",
    "--quantization=fp8", "--no-async-scheduling", "--max", "=", "--=", "-O", "--cpu-offload-gb",
]  # fmt: skip


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.one_of(st.sampled_from(_TOKENS), st.text(max_size=8)), max_size=8),
    st.sampled_from(["", "dense", "0731"]),
)
def test_any_arguments_are_judged_word_by_word_and_corrected_for_good(words: list[str], model: str) -> None:
    by = ground(model=model, machine="hopper")
    (launch,) = of_words(["vllm", "serve", *words])
    report = judge(launch, by)
    assert len(report.words) == 1 + sum(1 for _ in _grouped(report))
    again = judge(report.corrected, by)
    assert [
        problem.says for problem in again.problems if problem.mend is not None and problem.severity is not Severity.INFO
    ] == []
    "\n".join(lines(report))
    as_value(report)


def _grouped(report: Report) -> list[str]:
    return [word.text for word in report.words[1:]]
