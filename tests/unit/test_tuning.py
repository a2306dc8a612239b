"""The search itself: it keeps what is faster and right, and nothing that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mtbridge.compute import tuned, tuning
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.parameters import SPACES
from mtbridge.compute.tuned import kept_sets
from mtbridge.compute.tuning import tune
from mtbridge.compute.tuning_check import every_error, first_error, share
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES, Matrix

SIZE = 96


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tuned, "cache_folder", lambda: tmp_path)
    return tmp_path / "tuned.json"


def test_a_search_keeps_a_checked_candidate_and_leaves_the_engine_with_it(verdict: Verdict) -> None:
    said: list[str] = []
    with open_opencl("cpu") as engine:
        found = tune(engine, "float32", seconds=60, say=said.append, most=2, size=SIZE)
        space = SPACES[found.best.target.form]
        assert space.fault(found.best.settings, "float32", engine.limits) == ""
        assert 0 < found.best.error <= 1
        assert found.best.speedup >= 1
        assert engine.form_in_use("float32").defines == found.best.settings
        assert every_error(engine, "float32", np.random.default_rng(9)) <= 1
    assert kept_sets() == ([found.best], "")
    assert "the shipped settings take" in said[0]
    assert found.candidates == 2
    with open_opencl("cpu") as other:
        assert other.form_in_use("float32").defines == found.best.settings


def test_what_is_timed_is_halved_where_the_device_is_slow_or_small(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "SMALLEST", 50)
    with open_opencl("cpu", largest_buffer=100_000) as engine:
        engine.use("float64")
        # the panels of 200 x 200 float64 numbers have 320 000 bytes and more
        search = tuning.Search(engine, "float64", lambda line: None, 400)
        search._prepare()
        assert search._size == 100
    monkeypatch.setattr(tuning, "LONGEST_CALL", 0)
    with open_opencl("cpu") as engine:
        search = tuning.Search(engine, "float64", lambda line: None, 400)
        search._prepare()
        assert search._size == 50


def test_no_time_at_all_keeps_the_shipped_settings(verdict: Verdict) -> None:
    with open_opencl("cpu") as engine:
        found = tune(engine, "float64", seconds=0, say=lambda line: None, size=SIZE)
        assert found.best.settings == engine.form("float64").defines
        assert found.candidates == 0
        assert found.best.speedup == 1


def test_the_gpu_kernels_are_tuned_in_their_own_space(open_tiled: Callable[[], OpenCLEngine]) -> None:
    with open_tiled() as engine:
        found = tune(engine, "float32", seconds=60, say=lambda line: None, most=1, size=64)
        assert found.best.target.form == "register_tiled"
        assert SPACES["register_tiled"].fault(found.best.settings, "float32", engine.limits) == ""


def test_a_wrong_candidate_is_never_timed_nor_kept(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_opencl("cpu") as engine:
        monkeypatch.setattr(tuning, "first_error", lambda *arguments: float("nan"))
        found = tune(engine, "float32", seconds=60, say=lambda line: None, most=4, size=SIZE)
        assert found.ends == {"wrong": 4}
        assert found.best.settings == engine.form("float32").defines
        assert engine.form_in_use("float32") == engine.form("float32")


def test_a_device_that_computes_wrongly_is_refused_in_one_sentence(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch, kept: Path
) -> None:
    with open_opencl("cpu") as engine:
        multiply = engine.multiply

        def wrong(A: Matrix, B: Matrix) -> Matrix:
            C = multiply(A, B)
            C[-1, -1] += 1e-3
            return C

        monkeypatch.setattr(engine, "multiply", wrong)
        with pytest.raises(DeviceError, match="wrongly with the shipped settings"):
            tune(engine, "float64", seconds=1, say=lambda line: None, size=SIZE)
    assert not kept.exists()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_check_finds_one_wrong_element(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    with open_opencl("cpu") as engine:
        assert first_error(engine, dtype, np.random.default_rng(0)) <= 1
        gram = engine.gram

        def lopsided(X: Matrix) -> Matrix:
            G = gram(X)
            G[0, -1] = np.nextafter(G[0, -1], G.dtype.type(np.inf))
            return G

        with monkeypatch.context() as patch:
            patch.setattr(engine, "gram", lopsided)
            assert not first_error(engine, dtype, np.random.default_rng(0)) <= 1
        with monkeypatch.context() as patch:
            patch.setattr(engine, "gram", lambda X: np.full_like(gram(X), np.nan))
            assert not first_error(engine, dtype, np.random.default_rng(0)) <= 1


def test_an_error_is_a_share_of_its_bound() -> None:
    A, B = np.ones((2, 4), np.float32), np.ones((4, 3), np.float32)
    C = A @ B
    assert share(C, A, B) == 0
    C[1, 2] += np.float32(4 * 4 * np.finfo(np.float32).eps)
    assert share(C, A, B) == pytest.approx(1)
    C[0, 0] = np.nan
    assert share(C, A, B) == np.inf
