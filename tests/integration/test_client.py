"""The Python client against a real worker."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mtbridge
from mtbridge.client import Client
from mtbridge.errors import (
    EndpointError,
    InputError,
    MtbridgeError,
    OptionError,
    RemoteError,
    ShapeError,
)
from mtbridge.server import Server, WorkerProcess
from mtbridge.wire import Limits, Operation, Status

ROOT = Path(__file__).parents[2]
X = np.random.default_rng(5).standard_normal((60, 7))
SYMBOLS = ["EURUSD.£", "@ES", "#US30", "Золото", "EUR/USD", "x" * 64, '"quoted\\" name']


def test_a_ping_tells_all_about_the_worker(client: Client) -> None:
    pong = client.ping()
    assert pong.versions == (1, 1)
    assert pong.limits == Limits()
    assert pong.operations == tuple(Operation)
    assert pong.worker == f"mtbridge {mtbridge.__version__}"
    assert pong.engine == "numpy"
    assert pong.device
    assert 0 < pong.seconds < 20
    assert str(pong) == f"{pong.worker}, numpy on {pong.device}"


def test_arrays_give_what_numpy_gives(client: Client) -> None:
    np.testing.assert_allclose(client.multiply(X, X.T), X @ X.T, atol=1e-13)
    np.testing.assert_allclose(client.gram(X), X.T @ X, atol=1e-13)
    np.testing.assert_allclose(client.covariance(X), np.cov(X, rowvar=False), atol=1e-14)
    np.testing.assert_allclose(client.covariance(X, ddof=0), np.cov(X, rowvar=False, ddof=0), atol=1e-14)
    np.testing.assert_allclose(client.correlation(X), np.corrcoef(X, rowvar=False), atol=1e-14)


@pytest.mark.parametrize(
    "view",
    [
        X.T.copy().T,
        X[::2],
        X[:, ::-1],
        X[5:50, 2:6],
        np.asfortranarray(X)[::3],
        X.astype(np.float32),
        X[:, :1],
    ],
    ids=["Fortran", "every-second-row", "backwards", "block", "Fortran-rows", "float32", "one-column"],
)
def test_any_layout_gives_the_same_as_a_plain_copy(client: Client, view: Any) -> None:
    plain = np.ascontiguousarray(view)
    np.testing.assert_allclose(client.covariance(view), client.covariance(plain), rtol=1e-6, atol=1e-15)
    assert client.covariance(view).dtype == view.dtype


def test_lists_whole_numbers_and_single_columns_are_matrices_too(client: Client) -> None:
    assert client.gram([[1, 2], [3, 4]]).tolist() == [[10.0, 14.0], [14.0, 20.0]]
    assert client.gram([3, 4]).tolist() == [[25.0]]


def test_two_float32_matrices_give_a_float32_product_and_a_mixture_float64(client: Client) -> None:
    narrow = X.astype(np.float32)
    assert client.multiply(narrow, narrow.T).dtype == np.float32
    assert client.multiply(narrow, X.T).dtype == np.float64


def test_a_result_may_be_changed_and_outlives_the_client(worker: WorkerProcess) -> None:
    wide = np.random.default_rng(1).standard_normal((10, 200))
    with Client(worker.endpoint) as client:
        small, large = client.gram(X), client.gram(wide)
    for matrix in (small, large):
        assert matrix.flags.aligned
        matrix += 1
    np.testing.assert_allclose(large, wide.T @ wide + 1, atol=1e-12)


def test_a_frame_in_gives_a_frame_out_with_its_labels(client: Client) -> None:
    frame = pd.DataFrame(X, columns=SYMBOLS, index=pd.date_range("2026-01-05", periods=60, freq="h"))
    pd.testing.assert_frame_equal(client.covariance(frame), frame.cov())
    pd.testing.assert_frame_equal(client.correlation(frame), frame.corr())
    pd.testing.assert_frame_equal(client.gram(frame), frame.T @ frame)
    pd.testing.assert_frame_equal(client.multiply(frame, frame.T), frame @ frame.T)
    product = client.multiply(frame, X.T)
    assert product.index.equals(frame.index)
    assert list(product.columns) == list(range(60))
    with pytest.raises(ShapeError, match="different labels"):
        client.multiply(frame, frame.T.iloc[::-1])


def test_a_frame_is_read_as_the_functions_without_a_worker_read_it(client: Client) -> None:
    frame = pd.DataFrame({"whole": [1, 2, 4], "nullable": pd.array([2.0, 1.0, 3.0], dtype="Float64")})
    pd.testing.assert_frame_equal(client.covariance(frame), mtbridge.covariance(frame, engine="numpy"))
    large = pd.DataFrame({"a": [2**60 + 1, 2**60 + 2, 2**60 + 5], "b": [1, 2, 2]})
    pd.testing.assert_frame_equal(client.covariance(large), mtbridge.covariance(large, engine="numpy"))
    narrow = frame.astype("float32")
    assert set(client.covariance(narrow).dtypes) == {np.dtype(np.float32)}
    with pytest.raises(InputError, match="'text' of data holds"):
        client.gram(frame.assign(text="a"))


def test_labels_that_are_no_text_come_back_as_they_were(client: Client) -> None:
    frame = pd.DataFrame(X[:, :2], columns=[20260105, ("EURUSD", "close")])
    assert list(client.correlation(frame).columns) == [20260105, ("EURUSD", "close")]


def test_a_full_result_tells_names_counts_engine_and_time(client: Client) -> None:
    result = client.correlation(X, symbols=SYMBOLS, full=True)
    assert result.symbols == tuple(SYMBOLS)
    assert result.counts is not None
    assert result.counts.tolist() == [[60] * 7] * 7
    assert (result.rows, result.engine) == (60, "numpy")
    assert result.device
    assert 0 < result.seconds < 20
    np.testing.assert_array_equal(result.matrix, client.correlation(X))
    frame = pd.DataFrame(X, columns=SYMBOLS)
    assert client.covariance(frame, full=True).symbols == tuple(SYMBOLS)
    assert client.multiply(X, X.T, full=True).counts is None


def test_a_refusal_carries_the_status_and_the_sentence_of_the_worker(client: Client) -> None:
    with pytest.raises(RemoteError, match="a has 7 columns but b has 60 rows") as caught:
        client.multiply(X, X)
    assert caught.value.status == Status.BAD_SHAPE
    holed = pd.DataFrame(np.where(X > 2, np.nan, X), columns=SYMBOLS)
    holed.iloc[0, 3] = np.nan
    with pytest.raises(RemoteError, match="missing") as caught:
        client.correlation(holed[["Золото"]], missing="error")
    assert caught.value.status == Status.BAD_VALUE
    assert "Золото" in str(caught.value)
    with pytest.raises(RemoteError, match="lags is 60 but there are 60 rows") as caught:
        client.lagged(X, 60)
    assert caught.value.status == Status.BAD_OPTIONS
    client.ping()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda client: client.gram(np.empty((0, 3))), "0 rows and 3 columns"),
        (lambda client: client.gram(np.ones((2, 2, 2))), "3 dimensions"),
        (lambda client: client.gram([["a"]]), "convert them to numbers"),
        (lambda client: client.covariance(X, ddof=1.5), "whole number"),
        (lambda client: client.covariance(X, ddof=True), "whole number"),
        (lambda client: client.covariance(X, ddof=-1), "whole number of 0 or more"),
        (lambda client: client.covariance(X, symbols=["a"]), "1 symbols for 7 columns"),
        (lambda client: client.covariance(X, symbols=["a\nb", *SYMBOLS[1:]]), "one line"),
        (lambda client: client.covariance(X, symbols=["", *SYMBOLS[1:]]), "not empty"),
        (lambda client: client.covariance(X, symbols=["\ud800", *SYMBOLS[1:]]), "UTF-8"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_it_is_sent(client: Client, call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call(client)


def test_a_matrix_past_the_workers_limits_is_refused_with_the_limit() -> None:
    limits = Limits(frame_bytes=200_000, rows=2000, columns=100)
    with (
        Server("tcp://127.0.0.1:0", engine_name="numpy", limits=limits) as server,
        Client(server.endpoint) as client,
    ):
        for data, words in (
            (np.ones((1000, 50)), "390.6 KiB, but the worker at .* accepts 195.3 KiB"),
            (np.ones((3000, 5)), "3000x5, but the worker at .* accepts 2000 rows"),
            (np.ones((80, 120)), "100 columns"),
        ):
            with pytest.raises(InputError, match=words):
                client.gram(data)
        assert server.counters.errors == 0
        assert client.gram(np.ones((1000, 20)))[0, 0] == 1000


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), "5", None])
def test_a_timeout_is_a_positive_number(timeout: Any) -> None:
    with pytest.raises(OptionError, match="positive number"):
        Client(timeout=timeout)


@pytest.mark.parametrize("endpoint", ["", "127.0.0.1:5555", "tcp://127.0.0.1", "http://127.0.0.1:5555"])
def test_what_is_no_address_is_refused(endpoint: str) -> None:
    with pytest.raises(EndpointError, match=r"write tcp://127\.0\.0\.1:5555"):
        Client(endpoint)


def test_a_client_may_be_closed_twice(worker: WorkerProcess) -> None:
    client = Client(worker.endpoint)
    client.ping()
    client.close()
    client.close()


def test_errors_are_of_one_tree() -> None:
    assert issubclass(RemoteError, MtbridgeError)
    assert issubclass(ShapeError, InputError)


def test_the_client_imports_neither_pandas_nor_pyopencl() -> None:
    program = "import sys, mtbridge.client; print({'pandas', 'pyopencl', 'numba'} & set(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "set()"


def test_a_closed_client_says_so() -> None:
    client = Client("tcp://127.0.0.1:1", timeout=0.2)
    client.close()
    with pytest.raises(EndpointError, match="closed"):
        client.ping()
