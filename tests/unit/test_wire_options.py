"""`wire.options`: which options there are, what they may be, and what goes with what."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from mtbridge.errors import OptionError, ProtocolError
from mtbridge.wire import Operation, RollingOptions, Status, decode_options, encode_options, make_options

ROLLING, EXPANDING, EWM, LAGGED = Operation.ROLLING, Operation.EXPANDING, Operation.EWM, Operation.LAGGED


def refused(operation: Operation, options: bytes) -> str:
    with pytest.raises(ProtocolError) as caught:
        decode_options(operation, options)
    assert caught.value.status == Status.BAD_OPTIONS
    assert str(caught.value).endswith(".")
    return str(caught.value)


@pytest.mark.parametrize("operation", [ROLLING, EWM, LAGGED])
@pytest.mark.parametrize("options", [b"", b"{}"])
def test_what_needs_an_option_has_no_defaults(operation: Operation, options: bytes) -> None:
    refused(operation, options)


@pytest.mark.parametrize(
    ("operation", "options", "words"),
    [
        (ROLLING, {"window": 5, "span_ms": 5}, "exactly one of window and span_ms"),
        (ROLLING, {"window": 0}, ">= 1"),
        (ROLLING, {"window": -1}, ">= 1"),
        (ROLLING, {"window": 2.5}, "int"),
        (ROLLING, {"window": True}, "int"),
        (ROLLING, {"window": 2**31}, "<= 2147483647"),
        (ROLLING, {"window": 10**400}, "<= 2147483647"),
        (ROLLING, {"span_ms": 0}, ">= 1"),
        (ROLLING, {"window": 5, "step": 0}, ">= 1"),
        (ROLLING, {"window": 5, "min_periods": 6}, "min_periods is 6, but the window has only 5 rows"),
        (ROLLING, {"window": 5, "min_periods": 0}, ">= 1"),
        (ROLLING, {"window": 5, "ddof": -1}, ">= 0"),
        (ROLLING, {"window": 5, "last": 1}, "bool"),
        (ROLLING, {"window": 5, "statistic": "kurtosis"}, "kurtosis"),
        (ROLLING, {"window": 5, "dtype": "int64"}, "int64"),
        (ROLLING, {"window": 5, "reduce": "sum"}, "sum"),
        (ROLLING, {"window": 5, "windows": 5}, "unknown field `windows`"),
        (ROLLING, {"window": 5, "reduce": "row"}, "needs column"),
        (ROLLING, {"window": 5, "reduce": "pairs"}, "needs pairs"),
        (ROLLING, {"window": 5, "reduce": "top"}, "needs top"),
        (ROLLING, {"window": 5, "column": 0}, "column belongs to"),
        (ROLLING, {"window": 5, "pairs": [[0, 1]]}, "pairs belongs to"),
        (ROLLING, {"window": 5, "top": 1}, "top belongs to"),
        (ROLLING, {"window": 5, "by": "value"}, "by belongs to"),
        (ROLLING, {"window": 5, "reduce": "pairs", "pairs": []}, ">= 1"),
        (ROLLING, {"window": 5, "reduce": "pairs", "pairs": [[0, 1]] * 4097}, "<= 4096"),
        (ROLLING, {"window": 5, "reduce": "pairs", "pairs": [[0, 1, 2]]}, "length 2"),
        (ROLLING, {"window": 5, "reduce": "pairs", "pairs": [[0, -1]]}, ">= 0"),
        (ROLLING, {"window": 5, "reduce": "top", "top": 0}, ">= 1"),
        (ROLLING, {"window": 5, "reduce": "mean", "packed": True}, "packed"),
        (ROLLING, {"window": 5, "statistic": "beta", "packed": True}, "packed"),
        (ROLLING, {"window": 5, "statistic": "beta", "reduce": "mean"}, "not for betas"),
        (ROLLING, {"window": 5, "statistic": "correlation", "reduce": "variance"}, "of a covariance"),
        (EXPANDING, {"window": 5}, "unknown field `window`"),
        (EXPANDING, {"step": 5}, "unknown field `step`"),
        (EWM, {"span": 5, "alpha": 0.5}, "exactly one of alpha"),
        (EWM, {"span": 0.5}, ">= 1"),
        (EWM, {"alpha": 0}, "> 0"),
        (EWM, {"alpha": 1.5}, "<= 1"),
        (EWM, {"com": -0.1}, ">= 0"),
        (EWM, {"halflife": 0}, "> 0"),
        (EWM, {"halflife": -3}, "> 0"),
        (EWM, {"halflife_ms": 1000, "adjust": False}, "leave out adjust"),
        (EWM, {"alpha": "0.5"}, "float"),
        (EWM, {"alpha": 0.5, "ddof": 1}, "unknown field `ddof`"),
        (LAGGED, {"lags": -1}, ">= 0"),
        (LAGGED, {"lags": 4097}, "<= 4096"),
        (LAGGED, {"lags": 1, "statistic": "beta"}, "beta"),
        (Operation.COVARIANCE, {"missing": "ignore"}, "ignore"),
        (Operation.COVARIANCE, {"method": "spearman"}, "unknown field `method`"),
        (Operation.COVARIANCE, {"weight_kind": "both"}, "both"),
        (Operation.CORRELATION, {"method": "pearsons"}, "pearsons"),
    ],
)
def test_what_may_not_be_is_refused_with_its_reason(operation: Operation, options: Any, words: str) -> None:
    assert words in refused(operation, json.dumps(options).encode())
    with pytest.raises(OptionError):
        make_options(operation, options)


@pytest.mark.parametrize(
    "number", [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"nan", b"1e", b"0x5", b"5_0"]
)
def test_numbers_that_are_none_are_refused(number: bytes) -> None:
    for operation, name in ((ROLLING, b"window"), (EWM, b"span"), (EWM, b"halflife_ms"), (LAGGED, b"lags")):
        refused(operation, b'{"' + name + b'":' + number + b"}")


def test_infinite_numbers_are_refused_where_no_json_stops_them() -> None:
    with pytest.raises(OptionError, match="finite"):
        make_options(EWM, {"halflife": float("inf")})


@pytest.mark.parametrize(
    ("operation", "options"),
    [
        (ROLLING, {"window": 60, "statistic": "beta", "column": 3}),
        (ROLLING, {"span_ms": 2**53, "reduce": "pairs", "pairs": ((0, 1), (5, 2)), "step": 7}),
        (EXPANDING, {"reduce": "top", "top": 4, "by": "value", "dtype": "float32"}),
        (EWM, {"halflife": 0.1, "adjust": False, "bias": True}),
        (LAGGED, {"lags": 4096}),
        (Operation.CORRELATION, {"method": "kendall", "missing": "drop", "scalars": True}),
    ],
)
def test_options_come_back_as_they_were_and_defaults_are_not_sent(operation: Operation, options: Any) -> None:
    made = make_options(operation, options)
    frame = encode_options(made)
    assert decode_options(operation, frame) == made
    assert set(json.loads(frame)) == set(options)


def test_numbers_of_numpy_are_numbers() -> None:
    made = make_options(ROLLING, {"window": np.int64(5), "last": np.bool_(True)})
    assert made == RollingOptions(window=5, last=True)
    with pytest.raises(OptionError, match="window"):
        make_options(ROLLING, {"window": np.array([5, 6])})
