from __future__ import annotations

from pathlib import Path

import pytest

from casemate.doctor.watch import metrics
from casemate.errors import UsageError
from conftest import Optional

RECORDING = Path(__file__).parents[3] / "shared/gpu/recordings/metrics.txt"


def test_the_recorded_page_of_a_real_engine_is_read(optional: Optional) -> None:
    optional("no recording of a real engine's metrics", RECORDING.exists())
    told = metrics.engine(RECORDING.read_text())
    assert (told.kind, told.running, told.waiting, told.kv_usage) == ("vllm", 0, 0, 0)
    assert (told.prompt_tokens, told.generation_tokens, told.iterations) == (576101, 12260, 1404)
    assert (told.prefix_queries, told.prefix_hits, told.preemptions, told.finished) == (577125, 0, 0, 129)
    assert told.queue_s == pytest.approx(29.615, abs=0.001)
    assert told.cpu_s == pytest.approx(48.51)
    assert told.small_step_tokens is not None
    assert told.iteration_tokens is not None
    assert told.small_step_tokens < 0.1 * told.iteration_tokens, "4,500 tokens a prompt, 95 an answer"
    assert told.draft_tokens is None
    assert told.running_by_engine == ()


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("vllm:gpu_cache_usage_perc 0.5", "kv_usage"),
        ("vllm:kv_cache_usage_perc 0.5", "kv_usage"),
        ("vllm:gpu_prefix_cache_hits_total 0.5", "prefix_hits"),
        ("vllm:prefix_cache_hits 0.5", "prefix_hits"),
        ("vllm:spec_decode_num_accepted_tokens_total 0.5", "accepted_tokens"),
        ("vllm:time_per_output_token_seconds_sum 0.5", "between_tokens_s"),
        ("vllm:inter_token_latency_seconds_sum 0.5", "between_tokens_s"),
        ("vllm:num_requests_waiting 0.5", "waiting"),
        ("llamacpp:requests_processing 0.5", "running"),
        ("llamacpp:requests_deferred 0.5", "waiting"),
        ("llamacpp:tokens_predicted_total 0.5", "generation_tokens"),
        ("llamacpp:kv_cache_usage_ratio 0.5", "kv_usage"),
    ],
)
def test_a_fact_is_found_under_the_name_of_every_release(line: str, field: str) -> None:
    assert getattr(metrics.engine(line), field) == 0.5


def test_what_is_not_on_the_page_is_unknown_and_not_zero() -> None:
    told = metrics.engine("vllm:num_requests_running 3\n")
    unknown = [name for name in type(told).__slots__ if getattr(told, name) is None]
    assert {"waiting", "kv_usage", "prompt_tokens", "preemptions", "cpu_s", "waiting_deferred"} <= set(unknown)


@pytest.mark.parametrize("value", ["NaN", "nan", "+Inf", "-Inf", "", "abc", "1_0", "0x10"])
def test_a_value_that_is_no_finite_number_tells_nothing(value: str) -> None:
    told = metrics.engine(
        f"vllm:num_requests_waiting 1\nvllm:kv_cache_usage_perc {value}\nvllm:num_requests_running {value}"
    )
    assert (told.waiting, told.kv_usage, told.running) == (1, None, None)


@pytest.mark.parametrize("value", ["-3", "1e308", "1e31"])
def test_a_count_that_no_engine_can_reach_tells_nothing(value: str) -> None:
    lines = "".join(f'vllm:{name}{{engine="{place}"}} {value}\n' for name in COUNTS for place in range(3))
    told = metrics.engine(lines)
    assert (told.running, told.waiting, told.generation_tokens) == (None, None, None)


COUNTS = ("num_requests_running", "num_requests_waiting", "generation_tokens_total")


@pytest.mark.parametrize("value", ["55", "-0.5", "1.2"])
def test_a_share_above_the_whole_or_below_nothing_is_not_told(value: str) -> None:
    assert metrics.engine(f"vllm:kv_cache_usage_perc {value}\n").kv_usage is None
    assert metrics.engine("vllm:kv_cache_usage_perc 1.0000001\n").kv_usage == 1


def test_several_engines_behind_one_address_are_summed_and_the_fullest_cache_counts() -> None:
    told = metrics.engine(
        'vllm:num_requests_running{engine="0",model_name="a"} 7\n'
        'vllm:num_requests_running{engine="1",model_name="a"} 1\n'
        'vllm:kv_cache_usage_perc{engine="0"} 0.9\nvllm:kv_cache_usage_perc{engine="1"} 0.1\n'
    )
    assert (told.running, told.kv_usage, told.running_by_engine) == (8, 0.9, (("0", 7.0), ("1", 1.0)))


def test_requests_that_were_swapped_out_wait_and_those_that_wait_for_something_else_are_told_apart() -> None:
    told = metrics.engine(
        "vllm:num_requests_waiting 4\nvllm:num_requests_swapped 2\n"
        'vllm:num_requests_waiting_by_reason{reason="capacity"} 1\n'
        'vllm:num_requests_waiting_by_reason{reason="deferred"} 3\n'
    )
    assert (told.waiting, told.waiting_deferred) == (6, 3)


def test_labels_may_hold_quotes_braces_commas_line_ends_and_foreign_separators() -> None:
    name = 'a\\"b},{c=\\n\\\\ d\u2028e'
    (series,) = metrics.page(f'vllm:x{{model="{name}",engine="0"}} 2.5 1700000000000\n')["vllm:x"]
    assert series.labels == {"model": 'a"b},{c=\n\\ d\u2028e', "engine": "0"}
    assert series.value == 2.5


@pytest.mark.parametrize(
    "line", ["vllm:x{", 'vllm:x{a="1} 2', "vllm:x{a=1} 2", "{} 1", "vllm:x", "vllm:x 1 2 3", "\x00 1"]
)
def test_a_line_of_another_form_is_left_out(line: str) -> None:
    assert metrics.page(f"{line}\nvllm:y 1\n").keys() == {"vllm:y"}


def test_small_steps_hold_about_as_many_tokens_as_their_classes_say() -> None:
    told = metrics.engine(
        'vllm:iteration_tokens_total_bucket{le="1.0"} 10\nvllm:iteration_tokens_total_bucket{le="9.0"} 30\n'
        'vllm:iteration_tokens_total_bucket{le="512.0"} 31\nvllm:iteration_tokens_total_bucket{le="+Inf"} 32\n'
        "vllm:iteration_tokens_total_sum 5000\n"
    )
    assert told.small_step_tokens == 10 * 0.5 + 20 * 5


@pytest.mark.parametrize("text", ["", "<html>", "python_info 1", "# vllm:num_requests_running 1", "go_goroutines 7\n"])
def test_a_page_without_an_engines_metrics_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no metrics of vLLM"):
        metrics.engine(text)
