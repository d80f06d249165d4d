"""What a correction turns into: never the opposite of what was meant, never without what it needs."""

from __future__ import annotations

import pytest

from casemate.errors import UsageError
from casemate.finding import Severity
from casemate.plan.recipe.judging import Report, judge
from casemate.plan.recipe.mending import command
from casemate.plan.recipe.reading import launches
from casemate.plan.recipe.telling import as_value, lines
from plan.recipes import ground, judged


def loud(report: Report) -> list[str]:
    return [problem.flag for problem in report.problems if problem.severity is not Severity.INFO]


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (
            "0.28.0",
            """vllm serve m --override-generation-config='{"a": true}' --speculative-config='{"method": "ngram"}'""",
        ),
        ("0.8.5", "vllm serve m --limit-mm-per-prompt image=4,video=0"),
        ("0.9.2", "vllm serve m --limit-mm-per-prompt image=4"),
        ("0.20.0", "vllm serve m -O 3"),
        ("0.33.0", "vllm serve m -O3 -h"),
        ("0.33.0", "vllm serve m --help=all"),
        ("0.33.0", "vllm serve m -qfp8 -n2 -r0"),
        ("0.11.2", "vllm serve m -O.cudagraph_mode=NONE"),
        ("0.33.0", "python3 -m vllm.entrypoints.cli.main serve m --port 8000"),
        ("0.33.0", "vllm serve m --max-model-len -1 --port 0"),
    ],
)
def test_what_the_parser_takes_raises_no_alarm(version: str, text: str) -> None:
    assert loud(judged(text, ground(version))) == []


@pytest.mark.parametrize(
    ("version", "text", "corrected"),
    [
        ("0.20.0", "vllm serve m --enable-chunked-prefill=False", "vllm serve m --no-enable-chunked-prefill"),
        ("0.20.0", "vllm serve m --enable-prefix-caching false", "vllm serve m --no-enable-prefix-caching"),
        ("0.33.0", "vllm serve m --async-scheduling=False", "vllm serve m --no-async-scheduling"),
        ("0.33.0", "vllm serve m --no-async-scheduling=False", "vllm serve m --async-scheduling"),
        ("0.6.3", "vllm serve m --enable-prefix-caching=False", "vllm serve m"),
        ("0.20.0", "vllm serve m --disable-prefix-caching", "vllm serve m --no-enable-prefix-caching"),
        ("0.20.0", "vllm serve m --disable-chunked-prefill", "vllm serve m --no-enable-chunked-prefill"),
        ("0.33.0", "vllm serve m --gpu-memory-utilization 1.2", "vllm serve m"),
        ("0.33.0", "vllm serve m --gpu-memory-utilization 85", "vllm serve m --gpu-memory-utilization 0.85"),
        ("0.33.0", "vllm serve m --api-key $KEY", "VLLM_API_KEY=$KEY vllm serve m"),
        ("0.33.0", "vllm serve m --api-key sk-1", "VLLM_API_KEY=${VLLM_API_KEY:?} vllm serve m"),
        ("0.33.0", "vllm serve m ${EXTRA} --bad-flag", "vllm serve m ${EXTRA}"),
        ("0.33.0", "vllm serve m --max-seq-len $LEN", 'vllm serve m --max-model-len "$LEN"'),
        ("0.33.0", "vllm serve m --task embed", "vllm serve m --runner pooling"),
        ("0.11.2", "vllm serve m --rope-scaling '{\"a\": 1}'", "vllm serve m --hf-overrides.rope_scaling '{\"a\": 1}'"),
        ("0.33.0", "vllm serve m -tp4", "vllm serve m --tensor-parallel-size 4"),
        ("0.33.0", "vllm serve m -O.mode=3", "vllm serve m -cc.mode 3"),
        ("0.33.0", "VLLM_ATTENTION_BACKEND=FLASH_ATTN vllm serve m", "vllm serve m --attention-backend FLASH_ATTN"),
        ("0.33.0", "vllm serve m \N{EM DASH}port 1 \N{EN DASH}tp 2", "vllm serve m --port 1 --tensor-parallel-size 2"),
        ("0.33.0", "sudo -u llm /v/bin/vllm serve m --bad", "sudo -u llm /v/bin/vllm serve m"),
        ("0.33.0", "A=b sudo -E vllm serve m", "sudo -E env A=b vllm serve m"),
        ("0.33.0", "/v/bin/python -m vllm.entrypoints.openai.api_server --model m", "/v/bin/vllm serve m"),
        (
            "0.33.0",
            "docker run -e A=1 -p 1:1 vllm/vllm-openai m --bad",
            "docker run -p 1:1 -e A=1 vllm/vllm-openai m",
        ),
        ("0.6.3", "vllm serve m --preemption-mode recomputed", "vllm serve m --preemption-mode recompute"),
        ("0.33.0", "vllm serve m --attention-backend flash-attn", "vllm serve m --attention-backend FLASH_ATTN"),
        ("0.33.0", "vllm serve m --max-num-seqs 0 --port 99999 -tp -2 --max-model-len 0", "vllm serve m"),
        ("0.33.0", "vllm serve m --distributed-executor-backend zzz --kv-cache-dtype zzz", "vllm serve m"),
    ],
)
def test_a_correction_says_what_was_meant(version: str, text: str, corrected: str) -> None:
    report = judged(text, ground(version))
    assert command(report.corrected) == corrected


@pytest.mark.parametrize(
    "text",
    ["sudo -E vllm serve m", "sudo -u llm vllm serve m", "env -i A=b vllm serve m", "sudo -E env A=b vllm serve m"],
)
def test_a_wrapper_s_options_start_nothing_of_their_own(text: str) -> None:
    assert [word.text for word in judged(text).launch.arguments] == ["m"]


@pytest.mark.parametrize(
    "text",
    [
        'ARGS="--enforce-eager --port 8000"; vllm serve m $ARGS',
        'ARGS=(--enforce-eager\n  --port 8000)\nvllm serve m "${ARGS[@]}"',
        "ARGS=(--enforce-eager)  # one\nARGS+=(--port 8000)\nvllm serve m ${ARGS[@]}",
    ],
)
def test_what_a_script_plainly_assigns_is_judged(text: str) -> None:
    report = judged(text)
    assert loud(report) == ["--enforce-eager"]
    assert command(report.corrected) == "vllm serve m --port 8000"


def test_what_is_set_under_a_condition_is_named_as_not_judged() -> None:
    report = judged('if true; then ARGS="--enforce-eager"; fi\nvllm serve m --port 1 $ARGS')
    assert [(problem.kind.value, problem.flag) for problem in report.problems] == [("not_judged", "$ARGS")]


def test_a_line_that_does_not_go_on_is_told() -> None:
    report = judged("vllm serve m --port 8000 \\\n # a comment\n --seed 7")
    assert loud(report) == ["--seed"]
    assert command(report.corrected) == "vllm serve m --port 8000 --seed 7"


_SERVICES = """\
services:
  a: {image: "vllm/vllm-openai:v0.33.0", command: Qwen/Qwen3-8B --enforce-eager}
  b: {image: vllm/vllm-openai, command: [Qwen/Qwen3-8B, --enforce-eager]}
  c: {image: vllm/vllm-openai}
  d: {image: vllm/vllm-openai, command: bash run.sh}
"""


def test_no_service_with_an_image_of_vllm_is_passed_over() -> None:
    reports = [judge(launch, ground()) for launch in launches(_SERVICES)]
    assert [loud(report) for report in reports] == [["--enforce-eager"], ["--enforce-eager"], [""], []]
    assert [problem.kind.value for problem in reports[3].problems] == ["not_judged"]
    with pytest.raises(UsageError):
        launches("services:\n  d: {image: vllm/vllm-openai, command: bash run.sh}\n")


def test_a_release_that_cannot_run_the_model_is_told_first_and_the_command_is_not_sold_as_right() -> None:
    report = judged("vllm serve x -tp 2 --enforce-eager", ground("0.19.1", "v4"))
    assert "0.20 or newer" in report.problems[0].says
    assert not report.mendable
    assert as_value(report)["runs"] is False
    assert "corrected:" not in list(lines(report))


def test_stages_and_drafts_that_the_release_has_not_are_refused() -> None:
    stages = judged("vllm serve x -pp 2", ground("0.20.0", "v4"))
    assert command(stages.corrected) == "vllm serve x --tensor-parallel-size 2"
    draft = """vllm serve x --speculative-config '{"method":"dspark","num_speculative_tokens":5}'"""
    assert "0.25 or newer" in judged(draft, ground("0.22.1", "0731")).problems[0].says
    assert loud(judged(draft, ground("0.25.1", "0731"))) == []


def test_code_of_the_model_stays_allowed_in_a_correction() -> None:
    report = judged("vllm serve m --trust-remote-code --enforce-eager")
    assert command(report.corrected) == "vllm serve m --trust-remote-code"
    assert {problem.severity for problem in report.problems if "trust" in problem.flag} == {Severity.LOW}


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve s3://user:hush1234@h/x --bad",
        "vllm serve m --otlp-traces-endpoint http://u:hush1234@h:1/ --bad",
        """vllm serve m --additional-config '{"a": {"dbPassword": "hush1234"}}' --bad""",
        """vllm serve m --additional-config '{"api_key": "hush1234"' --bad""",
        "vllm serve m --speculative-config.api_key hush1234 --bad",
        "vllm serve m --served-model-name sk-hush1234 --bad",
        "vllm serve m --served-model-name hf_hush1234 --bad",
        "vllm serve m --headers 'Authorization=Bearer hush1234'",
        "DATABASE_URL=postgres://u:hush1234@h/x vllm serve m --bad",
        "OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer hush1234' vllm serve m --bad",
        "docker run -e HF_TOKEN=hush1234 vllm/vllm-openai m --bad",
    ],
)
def test_no_secret_is_repeated_wherever_it_stands(text: str) -> None:
    report = judged(text)
    assert "hush1234" not in "\n".join(lines(report))
    assert "hush1234" not in str(as_value(report))


def test_what_only_sounds_like_a_secret_is_shown() -> None:
    text = """vllm serve /data/hf_models/x --hf-overrides '{"eos_token_id": 2}' --max-num-batched-tokens 2048 --bad"""
    assert command(judged(text).corrected) == text.removesuffix(" --bad")
