"""The Python functions: labels, pandas conventions, dtypes, and what they refuse."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from together import together

import mtbridge
from mtbridge.compute import Engine
from mtbridge.compute.devices import Verdict
from mtbridge.errors import DeviceError, InputError, MissingValueError, OptionError, ShapeError


@pytest.fixture
def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    times = pd.date_range("2025-01-01", periods=80, freq="h", name="time")
    columns = pd.Index(["EURUSD", "GBPUSD", "XAUUSD"], name="symbol")
    return pd.DataFrame(random.standard_normal((80, 3)) * [1, 1e-3, 40] + [1, 2, 2400], times, columns)


@pytest.mark.parametrize("ddof", [0, 1, 2])
def test_covariance_agrees_with_pandas_to_the_label(frame: pd.DataFrame, engine: Engine, ddof: int) -> None:
    found = mtbridge.covariance(frame, engine=engine, ddof=ddof)
    pd.testing.assert_frame_equal(found, frame.cov(ddof=ddof), rtol=1e-12)


def test_correlation_agrees_with_pandas_to_the_label(frame: pd.DataFrame, engine: Engine) -> None:
    pd.testing.assert_frame_equal(mtbridge.correlation(frame, engine=engine), frame.corr(), rtol=1e-12)


def test_an_array_gives_an_array(engine: Engine) -> None:
    X = np.random.default_rng(1).standard_normal((40, 3))
    found = mtbridge.covariance(X, engine=engine)
    assert type(found) is np.ndarray
    assert np.allclose(found, np.cov(X, rowvar=False), rtol=1e-12)


def test_a_single_column_gives_a_matrix_of_one(engine: Engine) -> None:
    assert mtbridge.covariance([1.0, 2.0, 4.0], engine=engine).shape == (1, 1)
    assert mtbridge.correlation(pd.DataFrame({"A": [1.0, 2.0]}), engine=engine).shape == (1, 1)


def test_whole_numbers_and_floats_and_nullable_columns_mix(engine: Engine) -> None:
    frame = pd.DataFrame(
        {
            "a": np.array([1, 5, 2, 8], np.int32),
            "b": np.array([0.5, 1.5, 9, 2], np.float32),
            "c": pd.array([3, 1, 4, 1], dtype="Int64"),
            "d": pd.array([0.25, 1, 4, 2], dtype="Float64"),
            "e": [True, False, True, True],
        }
    )
    found = mtbridge.covariance(frame, engine=engine)
    pd.testing.assert_frame_equal(found, frame.astype(float).cov(), rtol=1e-14)
    assert list(found.columns) == list("abcde")


def test_arrow_columns_count_as_numbers(engine: Engine) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 5.0]})
    found = mtbridge.covariance(frame.astype("float64[pyarrow]"), engine=engine)
    assert np.allclose(found, frame.cov())


@pytest.mark.parametrize("kind", ["Int64", "Float64"])
def test_na_in_a_nullable_column_is_refused_by_its_name(kind: str) -> None:
    frame = pd.DataFrame({"EURUSD": [1.0, 2.0, 3.0], "GBPUSD": pd.array([1, None, 3], dtype=kind)})
    with pytest.raises(MissingValueError, match=r"1 missing values.*GBPUSD"):
        mtbridge.covariance(frame, engine="numpy", missing="error")


def test_nan_in_a_frame_is_refused_by_the_name_of_its_column_if_that_is_wanted(frame: pd.DataFrame) -> None:
    frame.iloc[7, 2] = np.nan
    for function in (mtbridge.covariance, mtbridge.correlation):
        with pytest.raises(MissingValueError, match="XAUUSD"):
            function(frame, engine="numpy", missing="error")


@pytest.mark.parametrize(
    "bad",
    [
        ["1.5", "2.5", "4.5"],
        pd.to_datetime(["2025-01-01", "2025-01-02", "2025-01-03"]),
        pd.Categorical([1, 2, 3]),
        [1 + 2j, 2.0, 3.0],
        pd.to_timedelta([1, 2, 3], unit="h"),
        [object(), object(), object()],
    ],
    ids=["text", "dates", "categories", "complex", "spans", "objects"],
)
def test_a_column_that_is_no_number_is_refused_by_its_name(bad: object) -> None:
    frame = pd.DataFrame({"EURUSD": [1.0, 2.0, 3.0], "note": bad})
    with pytest.raises(InputError, match="'note'"):
        mtbridge.covariance(frame, engine="numpy")
    with pytest.raises(InputError, match=r"'note' of B"):
        mtbridge.multiply(np.ones((2, 3)), frame, engine="numpy")


def test_float32_stays_float32_and_one_wide_column_widens_all(frame: pd.DataFrame, engine: Engine) -> None:
    small = frame.astype(np.float32)
    found = mtbridge.covariance(small, engine=engine)
    assert set(found.dtypes) == {np.dtype("float32")}
    small["EURUSD"] = frame["EURUSD"]
    assert set(mtbridge.covariance(small, engine=engine).dtypes) == {np.dtype("float64")}


def test_a_nullable_float32_frame_stays_float32(frame: pd.DataFrame) -> None:
    found = mtbridge.covariance(frame.astype("Float32"), engine="numpy")
    assert set(found.dtypes) == {np.dtype("float32")}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtype_is_obeyed(frame: pd.DataFrame, engine: Engine, dtype: str) -> None:
    assert set(mtbridge.correlation(frame, engine=engine, dtype=dtype).dtypes) == {np.dtype(dtype)}
    assert mtbridge.multiply([[1.0]], [[2.0]], engine=engine, dtype=dtype).dtype == np.dtype(dtype)


def test_an_unknown_dtype_names_the_known_ones(frame: pd.DataFrame) -> None:
    with pytest.raises(OptionError, match="float16"):
        mtbridge.covariance(frame, engine="numpy", dtype="float16")


def test_a_float32_answer_past_its_range_is_refused_not_inf() -> None:
    with pytest.raises(InputError):
        mtbridge.covariance(np.array([[1e300], [-1e300]]), engine="numpy", dtype="float32")


def test_labels_that_are_no_text_are_kept(engine: Engine) -> None:
    frame = pd.DataFrame([[1.0, 2.0], [2.0, 5.0], [4.0, 3.0]], columns=[7, ("a", 1)])
    assert list(mtbridge.covariance(frame, engine=engine).index) == [7, ("a", 1)]
    levels = pd.DataFrame(
        np.random.default_rng(1).standard_normal((5, 2)),
        columns=pd.MultiIndex.from_tuples([("EURUSD", "close"), ("GBPUSD", "close")], names=["s", "f"]),
    )
    pd.testing.assert_frame_equal(mtbridge.covariance(levels, engine=engine), levels.cov())


def test_two_columns_of_one_name_are_kept(engine: Engine) -> None:
    frame = pd.DataFrame([[1.0, 2.0], [2.0, 5.0], [4.0, 3.0]], columns=["A", "A"])
    assert mtbridge.covariance(frame, engine=engine).shape == (2, 2)


def test_the_data_stay_as_they_were(frame: pd.DataFrame, engine: Engine) -> None:
    kept = frame.copy()
    mtbridge.covariance(frame, engine=engine)
    mtbridge.correlation(frame, engine=engine)
    pd.testing.assert_frame_equal(frame, kept)


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows_give_nan_as_in_pandas(engine: Engine, rows: int) -> None:
    frame = pd.DataFrame(np.ones((rows, 2)), columns=["A", "B"])
    assert mtbridge.covariance(frame, engine=engine).isna().to_numpy().all()
    assert mtbridge.correlation(frame, engine=engine).isna().to_numpy().all()


def test_full_gives_counts_symbols_and_where_it_was_computed(frame: pd.DataFrame, engine: Engine) -> None:
    found = mtbridge.correlation(frame, engine=engine, full=True)
    assert isinstance(found, mtbridge.Result)
    assert found.symbols == ("EURUSD", "GBPUSD", "XAUUSD")
    assert found.counts is not None
    assert (found.counts == 80).all()
    assert found.counts.dtype == np.int64
    assert found.rows == 80
    assert found.engine == engine.name
    assert found.seconds > 0


def test_a_product_of_frames_keeps_the_outer_labels(frame: pd.DataFrame, engine: Engine) -> None:
    weights = pd.DataFrame({"one": [1.0, 2, 3], "two": [0.5, 0, 1]}, index=frame.columns)
    found = mtbridge.multiply(frame, weights, engine=engine)
    pd.testing.assert_frame_equal(found, frame @ weights, rtol=1e-13)


def test_a_product_of_a_frame_and_an_array_keeps_the_labels_there_are(
    frame: pd.DataFrame, engine: Engine
) -> None:
    """A DataFrame in gives a DataFrame out, as pandas does."""
    weights = np.array([[1.0, 0.5], [2, 0], [3, 1]])
    pd.testing.assert_frame_equal(
        mtbridge.multiply(frame, weights, engine=engine), frame @ weights, rtol=1e-13
    )


def test_frames_whose_inner_labels_differ_are_refused(frame: pd.DataFrame) -> None:
    weights = pd.DataFrame(np.ones((3, 1)), index=["GBPUSD", "EURUSD", "XAUUSD"])
    with pytest.raises(ShapeError, match="different labels"):
        mtbridge.multiply(frame, weights, engine="numpy")


def test_products_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match="A has 3 columns but B has 4 rows"):
        mtbridge.multiply(np.ones((2, 3)), np.ones((4, 2)), engine="numpy")


def test_mixed_widths_multiply_in_float64(engine: Engine) -> None:
    found = mtbridge.multiply(np.ones((2, 3), np.float32), np.ones((3, 2)), engine=engine)
    assert found.dtype == np.float64


def test_nan_passes_through_a_product(engine: Engine) -> None:
    found = mtbridge.multiply([[np.nan, 1.0], [1.0, 1.0]], [[1.0], [1.0]], engine=engine)
    assert np.isnan(found[0, 0])
    assert found[1, 0] == 2


@pytest.mark.parametrize("engine_name", ["numpy", "serial", "auto"])
def test_engines_are_taken_by_name(frame: pd.DataFrame, engine_name: str) -> None:
    assert np.allclose(mtbridge.covariance(frame, engine=engine_name), frame.cov())


def test_opencl_is_taken_by_name_and_by_device(frame: pd.DataFrame, verdict: Verdict) -> None:
    found = mtbridge.covariance(frame, engine="opencl", device="cpu", full=True)
    assert found.engine == "opencl"
    assert found.device == verdict.name


def test_threads_each_have_an_engine_of_their_own(frame: pd.DataFrame, verdict: Verdict) -> None:
    right = frame.cov()

    def work() -> None:
        for _ in range(20):
            assert np.allclose(mtbridge.covariance(frame, engine="opencl", device="cpu"), right)

    together(*[work] * 4)


def test_an_unknown_engine_is_refused(frame: pd.DataFrame) -> None:
    with pytest.raises(OptionError, match="'gpu'"):
        mtbridge.covariance(frame, engine="gpu")


@pytest.mark.parametrize("engine_name", ["opencl", "auto"])
def test_a_device_that_is_not_there_is_refused_with_those_that_are(
    frame: pd.DataFrame, verdict: Verdict, engine_name: str
) -> None:
    with pytest.raises(DeviceError, match="no OpenCL device 'Riva TNT'; there are 0: "):
        mtbridge.covariance(frame, engine=engine_name, device="Riva TNT")


def test_the_environment_names_the_device_and_is_read_at_every_call(
    frame: pd.DataFrame, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MTBRIDGE_DEVICE", "cpu")
    assert mtbridge.covariance(frame, engine="opencl", full=True).device == verdict.name
    monkeypatch.setenv("MTBRIDGE_DEVICE", "Riva TNT")
    with pytest.raises(DeviceError, match="Riva TNT"):
        mtbridge.covariance(frame, engine="opencl")


def test_importing_loads_neither_pandas_nor_pyopencl() -> None:
    heavy = {"pandas", "pyopencl", "zmq", "numba", "pyarrow"}
    script = f"import sys, mtbridge; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_arrays_are_computed_with_without_pandas() -> None:
    script = (
        "import sys, mtbridge; mtbridge.covariance([[1.0, 2.0], [2.0, 1.0]], engine='numpy');"
        "mtbridge.multiply([[1.0]], [[1.0]], engine='numpy'); print('pandas' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "False"


def test_every_public_name_is_there() -> None:
    for name in mtbridge.__all__:
        assert getattr(mtbridge, name) is not None
        assert name in dir(mtbridge)
    with pytest.raises(AttributeError, match="no attribute 'covarianse'"):
        mtbridge.covarianse  # noqa: B018
