"""For any request that is a message, the service gives a result that fits it or a documented error."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mtbridge.compute import Engine
from mtbridge.compute.host import NumpyEngine
from mtbridge.service import Service
from mtbridge.wire import Array, Kind, Limits, Message, Operation, Role, Status, decode, encode, request
from mtbridge.wire.options import OPTIONS

LIMITS = Limits(frame_bytes=1 << 14)
SERVICE = Service(NumpyEngine(), LIMITS)
ANSWERS = (Operation.COVARIANCE, Operation.CORRELATION, *list(Operation)[5:])
NUMBERS = st.one_of(
    st.integers(-2, 9),
    st.sampled_from([2**31 - 1, 2**31, 2**53, 2**63, 0.5, 1.5, -0.5, 1e308, 5e-324]),
)
WORDS = st.sampled_from(
    [
        *("covariance", "correlation", "beta", "pairwise", "drop", "error", "frequency", "reliability"),
        *("pearson", "spearman", "kendall", "float32", "float64", "none", "mean", "row", "pairs", "top"),
        *("eigenvalue", "variance", "absolute", "value"),
    ]
)
PAIRS = st.lists(st.tuples(st.integers(-1, 4), st.integers(-1, 4)), max_size=4)
VALUES = st.one_of(NUMBERS, WORDS, st.booleans(), st.none(), PAIRS)
SELDOM = st.integers(0, 5).map(lambda number: number == 0)
ELEMENTS = st.one_of(
    st.integers(-3, 3).map(float),
    st.sampled_from([np.nan, np.inf, -np.inf, 1e-170, 1e200, 1.7e308, 5e-324, 0.0, -0.0]),
    st.floats(allow_nan=True),
)


@st.composite
def plausible(draw: st.DrawFn, operation: Operation) -> dict[str, Any]:
    """Options that are mostly allowed, so that what comes after them is reached too."""
    fields = OPTIONS[operation].__struct_fields__
    good: dict[str, Any] = {
        "statistic": st.sampled_from(["covariance", "correlation", "beta"]),
        "missing": st.sampled_from(["pairwise", "drop", "error"]),
        "method": st.sampled_from(["pearson", "spearman", "kendall"]),
        "weight_kind": st.sampled_from(["frequency", "reliability"]),
        "dtype": st.sampled_from(["float32", "float64"]),
        "alpha": st.sampled_from([0.1, 1.0, 1e-300]),
        "span": st.sampled_from([1, 5.5, 1e300]),
        "halflife": st.sampled_from([1, 1e-300, 1e300]),
        "com": st.sampled_from([0, 3.5]),
        "halflife_ms": st.sampled_from([1, 1e-300, 1e300]),
    }
    options = {
        "rolling": {"window": draw(st.integers(1, 5))},
        "lagged": {"lags": draw(st.integers(0, 3))},
    }.get(operation.name.lower(), {})
    if operation is Operation.EWM:
        name = draw(st.sampled_from(["alpha", "span", "halflife", "com", "halflife_ms"]))
        options = {name: draw(good[name])}
    reduce = draw(st.sampled_from(["none", "mean", "row", "pairs", "top", "eigenvalue", "variance"]))
    if "reduce" in fields:
        options["reduce"] = reduce
        if reduce == "row":
            options["column"] = draw(st.integers(0, 3))
        if reduce == "pairs":
            options["pairs"] = draw(
                st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4)
            )
        if reduce == "top":
            options["top"] = draw(st.integers(1, 3))
    others = (
        "statistic",
        "missing",
        "method",
        "weight_kind",
        "dtype",
        "min_periods",
        "ddof",
        "last",
        "scalars",
    )
    for name in draw(st.sets(st.sampled_from(others), max_size=3)):
        if name in fields:
            options[name] = draw(
                good.get(name, st.integers(1, 3) if name in ("min_periods", "ddof") else st.booleans())
            )
    return options


@st.composite
def requests(draw: st.DrawFn) -> Message:
    operation = draw(st.sampled_from(ANSWERS))
    fields = OPTIONS[operation].__struct_fields__
    options = draw(
        st.one_of(
            plausible(operation),
            plausible(operation),
            st.dictionaries(st.sampled_from([*fields, "windows"]), VALUES, max_size=5),
        )
    )
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    data = np.array(draw(st.lists(ELEMENTS, min_size=rows * columns, max_size=rows * columns)))
    with np.errstate(all="ignore"):
        data = data.astype(draw(st.sampled_from(["float32", "float64"])))
    arrays = [Array(Role.DATA, np.asarray(data.reshape(rows, columns), order=draw(st.sampled_from("CF"))))]
    if draw(SELDOM) or "span_ms" in options or "halflife_ms" in options:
        times = np.arange(rows) * draw(st.sampled_from([1, 1000, -1, 0, 2**60]))
        arrays.append(Array(Role.TIMES, times.astype(draw(st.sampled_from(["int64", "int64", "float64"])))))
    if draw(SELDOM) or options.get("reduce") == "variance" or "weight_kind" in options:
        shape = draw(st.sampled_from([(rows,), (columns,), (rows, columns), (1, columns), (2, 2, 2)]))
        weights = np.full(shape, draw(st.sampled_from([0.0, 1.0, 0.5, -1.0, np.nan, 1e308])))
        kind = draw(st.sampled_from(["float64", "float32", "int64"]))
        with np.errstate(all="ignore"):
            arrays.append(Array(Role.WEIGHTS, weights.astype(kind)))
    return request(operation, draw(st.integers(0, 2**64 - 1)), arrays, options=json.dumps(options).encode())


@given(requests())
@settings(max_examples=400, deadline=None)
def test_any_request_is_answered_by_a_result_or_a_documented_error(message: Message) -> None:
    check(SERVICE, message)


@given(message=requests())
@settings(max_examples=100, deadline=None)
def test_so_it_is_on_an_opencl_device(opencl_engine: Engine, message: Message) -> None:
    check(Service(opencl_engine, LIMITS), message)


def check(service: Service, message: Message) -> None:
    """Ask, and check all that must hold of the reply."""
    reply = service.answer(message)
    frames = [bytes(frame) for frame in encode(reply)]
    back = decode(frames, LIMITS)
    assert back.head.request == message.head.request
    assert back.head.operation == message.head.operation
    event(f"{back.head.operation}: {Status(back.head.status).name}")
    if back.head.kind is Kind.ERROR:
        assert back.head.status not in (Status.OK, Status.INTERNAL, Status.DEVICE), back.text
        assert back.text.endswith(".")
        return
    found = back.find(Role.RESULT)
    assert found is not None
    assert 1 <= found.ndim <= 3
    counts = back.find(Role.COUNTS)
    assert counts is None or counts.shape == found.shape
    if message.head.operation == Operation.CORRELATION:
        assert not (np.abs(found) > 1).any()
        np.testing.assert_array_equal(found, found.T)
