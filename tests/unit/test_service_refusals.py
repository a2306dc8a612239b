"""What the service refuses of statistics, with which status, and before anything is computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from service_requests import (
    CORRELATION,
    COVARIANCE,
    DATA,
    EWM,
    EXPANDING,
    LAGGED,
    ROLLING,
    TIMES,
    Idle,
    X,
    refusal,
)

from mtbridge.compute import open_engine
from mtbridge.service import Service
from mtbridge.wire import Array, Limits, Operation, Role, Status


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with open_engine("numpy") as engine:
        yield Service(engine)


WEIGHTS = Array(Role.WEIGHTS, np.ones(40))
HELD = Array(Role.WEIGHTS, np.ones(4))
STAMPS = Array(Role.TIMES, TIMES)
PAST = "past the range of float32"
REFUSED: dict[str, tuple[Operation, Any, list[Array], Status, str]] = {
    "weights without a kind": (COVARIANCE, {}, [WEIGHTS], Status.BAD_OPTIONS, "weight_kind"),
    "a kind without weights": (
        COVARIANCE,
        {"weight_kind": "frequency"},
        [],
        Status.BAD_OPTIONS,
        "no array weights",
    ),
    "too few weights": (
        COVARIANCE,
        {"weight_kind": "reliability"},
        [HELD],
        Status.BAD_SHAPE,
        "there are 40 rows",
    ),
    "a weight below 0": (
        COVARIANCE,
        {"weight_kind": "reliability", "missing": "drop"},
        [Array(Role.WEIGHTS, np.full(40, -1.0))],
        Status.BAD_VALUE,
        "weight",
    ),
    "a fraction as a frequency": (
        COVARIANCE,
        {"weight_kind": "frequency", "missing": "drop"},
        [Array(Role.WEIGHTS, np.full(40, 0.5))],
        Status.BAD_VALUE,
        "whole",
    ),
    "NaN as a weight": (
        COVARIANCE,
        {"weight_kind": "reliability", "missing": "drop"},
        [Array(Role.WEIGHTS, np.full(40, np.nan))],
        Status.BAD_VALUE,
        "weight",
    ),
    "text as weights": (
        COVARIANCE,
        {"weight_kind": "reliability"},
        [Array(Role.WEIGHTS, np.ones(40, np.uint8))],
        Status.UNSUPPORTED,
        "float32 or float64",
    ),
    "weights of ranks": (
        CORRELATION,
        {"method": "spearman", "weight_kind": "reliability"},
        [WEIGHTS],
        Status.BAD_OPTIONS,
        "spearman",
    ),
    "NaN with weights": (COVARIANCE, {"weight_kind": "reliability"}, [WEIGHTS], Status.BAD_VALUE, "missing"),
    "NaN refused": (CORRELATION, {"missing": "error"}, [], Status.BAD_VALUE, "missing values"),
    "a span without times": (ROLLING, {"span_ms": 5}, [], Status.BAD_OPTIONS, "int64 array times"),
    "times without a span": (ROLLING, {"window": 5}, [STAMPS], Status.BAD_OPTIONS, "leave them out"),
    "a half-life without times": (EWM, {"halflife_ms": 5}, [], Status.BAD_OPTIONS, "int64 array times"),
    "times of an expanding window": (
        EXPANDING,
        {},
        [STAMPS],
        Status.UNSUPPORTED,
        "no array with the role times",
    ),
    "times as floats": (
        ROLLING,
        {"span_ms": 5},
        [Array(Role.TIMES, TIMES.astype(float))],
        Status.UNSUPPORTED,
        "int64",
    ),
    "too few times": (ROLLING, {"span_ms": 5}, [Array(Role.TIMES, TIMES[1:])], Status.BAD_SHAPE, "40 rows"),
    "times as a column": (
        ROLLING,
        {"span_ms": 5},
        [Array(Role.TIMES, TIMES[:, np.newaxis])],
        Status.BAD_SHAPE,
        "40 rows",
    ),
    "a time twice": (
        ROLLING,
        {"span_ms": 5},
        [Array(Role.TIMES, np.zeros(40, np.int64))],
        Status.BAD_VALUE,
        "must increase",
    ),
    "times backwards over all of int64": (
        EWM,
        {"halflife_ms": 5},
        [Array(Role.TIMES, np.linspace(2**62, -(2**62), 40).astype(np.int64))],
        Status.BAD_VALUE,
        "row 1",
    ),
    "a column that is not there": (
        ROLLING,
        {"window": 5, "reduce": "row", "column": 4},
        [],
        Status.BAD_OPTIONS,
        "column 4 is named but there are 4",
    ),
    "a pair that is not there": (
        EWM,
        {"span": 5, "reduce": "pairs", "pairs": [[0, 4]]},
        [],
        Status.BAD_OPTIONS,
        "column 4",
    ),
    "more pairs than there are": (
        EXPANDING,
        {"reduce": "top", "top": 7},
        [],
        Status.BAD_OPTIONS,
        "only 6 pairs",
    ),
    "a portfolio without weights": (
        ROLLING,
        {"window": 5, "reduce": "variance"},
        [],
        Status.BAD_OPTIONS,
        "needs an array weights",
    ),
    "weights of no portfolio": (ROLLING, {"window": 5}, [HELD], Status.BAD_OPTIONS, "leave them out"),
    "weights of other windows": (
        ROLLING,
        {"window": 5, "reduce": "variance", "step": 2},
        [Array(Role.WEIGHTS, np.ones((40, 4)))],
        Status.BAD_SHAPE,
        "(20, 4)",
    ),
    "infinite weights": (
        ROLLING,
        {"window": 5, "reduce": "variance"},
        [Array(Role.WEIGHTS, np.full(4, np.inf))],
        Status.BAD_VALUE,
        "finite",
    ),
    "a variance past float32": (
        ROLLING,
        {"window": 5, "reduce": "variance", "dtype": "float32", "min_periods": 2},
        [Array(Role.WEIGHTS, np.full(4, 1e25))],
        Status.BAD_VALUE,
        PAST,
    ),
    "covariances past float32": (
        ROLLING,
        {"window": 5, "min_periods": 2},
        [],
        Status.BAD_VALUE,
        PAST,
    ),
    "as many lags as rows": (LAGGED, {"lags": 40}, [], Status.BAD_OPTIONS, "there are 40 rows"),
    "weights of lags": (LAGGED, {"lags": 1}, [WEIGHTS], Status.UNSUPPORTED, "weights"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=[name.replace(" ", "-") for name in REFUSED])
def test_what_cannot_be_answered_gets_its_status_and_a_sentence(service: Service, case: Any) -> None:
    operation, options, arrays, status, words = case
    data = Array(Role.DATA, X.astype(np.float32) * np.float32(1e30)) if words == PAST and not arrays else DATA
    given, sentence = refusal(service, operation, options, data, *arrays)
    assert given == status, sentence
    assert words in sentence


@pytest.mark.parametrize(
    ("operation", "options", "words"),
    [
        (ROLLING, {"window": 5}, "100x20x20"),
        (ROLLING, {"window": 5, "step": 3, "dtype": "float32"}, "34x20x20"),
        (ROLLING, {"window": 5, "packed": True}, "100x210"),
        (ROLLING, {"window": 5, "reduce": "row", "column": 0}, "100x20"),
        (ROLLING, {"window": 5, "reduce": "pairs", "pairs": [[0, 1]] * 9}, "100x9"),
        (EXPANDING, {"reduce": "top", "top": 4, "dtype": "float32"}, "100x4x2"),
        (EWM, {"span": 5}, "100x20x20"),
        (LAGGED, {"lags": 2}, "5x20x20"),
    ],
)
def test_an_answer_too_large_for_a_frame_is_refused_before_it_is_computed(
    operation: Operation, options: dict[str, Any], words: str
) -> None:
    service = Service(Idle(), Limits(frame_bytes=20 * 20 * 8))
    status, sentence = refusal(service, operation, options, Array(Role.DATA, np.ones((100, 20), np.float32)))
    assert status == Status.TOO_LARGE
    assert words in sentence
    if operation is not LAGGED:
        assert "use last, reduce, packed" in sentence


@pytest.mark.parametrize(
    "reduce", [{"reduce": "mean"}, {"reduce": "eigenvalue"}, {"reduce": "top", "top": 1}]
)
def test_a_single_matrix_too_large_is_refused_also_where_it_is_reduced(reduce: dict[str, Any]) -> None:
    service = Service(Idle(), Limits(frame_bytes=20 * 20 * 8))
    status, sentence = refusal(service, ROLLING, {"window": 2, **reduce}, Array(Role.DATA, np.ones((2, 21))))
    assert status == Status.TOO_LARGE
    assert "21x21" in sentence
