"""Benchmarks of products: cases of any shape, peers that are there or not, errors that would be seen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from mtbridge.bench import one_thread
from mtbridge.bench.contenders import Contender, Plan, measured, normal
from mtbridge.bench.products import ODD_SHAPES, measure_products, square
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES


def silent(text: str) -> None:
    """Say nothing."""


@pytest.mark.parametrize(
    ("operation", "shape", "flops"),
    [
        ("gram", (300, 5), 300 * 5 * 5),
        ("gram", (3, 41), 3 * 41 * 41),
        ("gram", (1, 9), 81),
        ("multiply", (6, 50, 6), 2 * 6 * 50 * 6),
        ("multiply", (1, 30, 20), 2 * 30 * 20),
    ],
)
def test_a_case_of_any_shape_is_right_and_counts_its_flops(
    operation: str, shape: tuple[int, ...], flops: int, verdict: Verdict
) -> None:
    plan = Plan(operation, (shape,), device="cpu", peers=("numpy", "openblas"), rounds=1)  # type: ignore[arg-type]
    rows = measure_products(plan, silent)
    assert [row["contender"] for row in rows] == ["opencl", "numpy", "serial", "openblas"] * 2
    for row in rows:
        assert row["case"] == f"{operation} " + "x".join(map(str, shape))
        assert row["gflops"] * row["median_s"] * 1e9 == pytest.approx(flops)
        assert row["error"] <= max(shape) * np.finfo(row["dtype"]).eps


def test_odd_shapes_are_tall_wide_single_and_off_every_tile() -> None:
    for operation, shapes in ODD_SHAPES.items():
        assert all(len(shape) == len(square(operation, 1)) for shape in shapes)
        assert any(shape[0] == 1 for shape in shapes)
        assert any(all(size % 2 for size in shape) and min(shape) > 1 for shape in shapes)
        assert any(max(shape) >= 1000 * min(shape) for shape in shapes)


def contenders() -> dict[str, Contender]:
    right = np.arange(20.0).reshape(4, 5)
    wrong = right.copy()
    wrong[3, 2] += 0.5

    def unable() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        raise DeviceError("it has no memory.")

    return {
        one.name: one
        for one in (
            Contender(name="right", threads=2, work=lambda: right),
            Contender(name="wrong", work=lambda: wrong),
            Contender(name="wrong below", work=lambda: wrong, triangle=True),
            Contender(name="unable", work=unable),
            Contender(name="absent", note="it is not there."),
        )
    }


def test_a_wrong_answer_shows_and_one_that_is_missing_says_why() -> None:
    exact = np.arange(20.0).reshape(4, 5)
    rows = measured(
        "case",
        "float64",
        list(contenders().values()),
        flops=20,
        error=lambda found, some: np.abs(found - exact[some]),
        versus=("right", "absent"),
        rounds=1,
    )
    by_name = {row["contender"]: row for row in rows}
    assert [by_name[name]["error"] for name in ("right", "wrong", "wrong below")] == [0, 0.5, 0]
    assert by_name["right"]["threads"] == 2
    assert set(by_name["wrong"]["versus"]) == {"right"}
    for name, reason in (("unable", "no memory"), ("absent", "not there")):
        assert by_name[name]["median_s"] is by_name[name]["gflops"] is by_name[name]["error"] is None
        assert by_name[name]["versus"] == {}
        assert reason in by_name[name]["note"]


def test_a_child_that_ends_before_its_time_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(one_thread.ONE_THREAD, "PYTHONHOME", "/nowhere")
    with pytest.raises(DeviceError, match="one thread ended with code"):
        one_thread.measure_in_child(Plan("gram", ((2, 2),), rounds=1))


# CLBlast


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch, verdict: Verdict) -> Iterator[None]:
    from mtbridge.compute import opencl_clblast

    opencl_clblast.library.cache_clear()
    monkeypatch.setattr(opencl_clblast, "LIBRARIES", ("libnothing-of-this-name.so.1",))
    yield
    opencl_clblast.library.cache_clear()


def test_without_clblast_its_row_names_the_package(no_library: None) -> None:
    plan = Plan("multiply", ((3, 4, 5),), device="cpu", peers=("clblast",), rounds=1)
    rows = [row for row in measure_products(plan, silent) if row["contender"] == "clblast"]
    assert len(rows) == 2
    assert all(row["median_s"] is None for row in rows)
    assert all("libclblast1" in row["note"] for row in rows)


def test_clblast_computes_in_the_context_of_the_engine(opencl_engine: OpenCLEngine) -> None:
    from mtbridge.compute import opencl_clblast

    try:
        peer = opencl_clblast.Clblast(opencl_engine)
    except DeviceError as absent:
        pytest.skip(str(absent))
    for dtype in DTYPES:
        bound = 300 * np.finfo(dtype).eps
        for rows, inner, columns in ((37, 11, 5), (1, 300, 3), (64, 64, 64)):
            A, B = normal((rows, inner), dtype, seed=1), normal((inner, columns), dtype, seed=2)
            assert np.abs(peer.multiply(A, B) - A @ B).max() < bound
            upper = np.triu(peer.gram(A))
            assert np.abs(upper - np.triu(A.T @ A)).max() < bound
            # and our own kernels still work on that queue
            assert np.abs(opencl_engine.gram(A) - A.T @ A).max() < bound
        # an array that starts where no vector may
        shifted = np.empty(38 * 12 + 1, dtype)[1:].reshape(38, 12)
        shifted[...] = 1
        assert (np.triu(peer.gram(shifted)) == np.triu(np.full((12, 12), 38))).all()
