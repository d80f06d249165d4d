"""The line through two printed observations, on the public ones (vllm#44376; two GB10 by their pool sizes)."""

from __future__ import annotations

import pytest

from casemate.errors import UsageError
from casemate.plan.affine import Affine, fitted
from casemate.plan.decision import GIB

REFUSED = fitted((30000, 6.66 * GIB), (13528, 5.44 * GIB))
SPARK = Affine(request_bytes=3.2e9, token_bytes=3300)


def test_a_refused_start_up_tells_both_parts() -> None:
    assert REFUSED.token_bytes == pytest.approx(79500, rel=0.01)
    assert REFUSED.request_bytes / GIB == pytest.approx(4.44, abs=0.05)
    assert REFUSED.longest(5.44 * GIB) == pytest.approx(13528, abs=2)


def test_shorter_requests_fit_and_longer_ones_do_not() -> None:
    assert REFUSED.need_bytes(8192) / GIB == pytest.approx(5.04, abs=0.02)
    assert REFUSED.need_bytes(65536) / GIB == pytest.approx(9.29, abs=0.03)


@pytest.mark.parametrize(("context", "observed", "requests"), [(50_000, 398_000, 7.8), (500_000, 2_450_000, 5.4)])
def test_a_shorter_limit_prints_a_smaller_pool_and_serves_more_requests(
    context: int, observed: int, requests: float
) -> None:
    assert SPARK.printed_tokens(24.5 * GIB, context) == pytest.approx(observed, rel=0.15)
    assert SPARK.requests(24.5 * GIB, context) == pytest.approx(requests, rel=0.02)


def test_observations_without_a_slope_are_refused() -> None:
    for second in ((30000, 6.66 * GIB), (30001, 6.66 * GIB), (40000, 1.0)):
        with pytest.raises(UsageError):
            fitted((30000, 6.66 * GIB), second)


def test_nothing_fits_where_one_request_is_too_much() -> None:
    assert SPARK.longest(1e9) == 0
