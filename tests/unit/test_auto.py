"""The `auto` engine: who gets a call, why, and that the answer is that engine's own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from together import together

from mtbridge.compute import Engine, calibration, devices, open_engine, operations
from mtbridge.compute import auto as auto_module
from mtbridge.compute.auto import SMALL_PRODUCTS, AutoEngine
from mtbridge.compute.calibration import OPERATIONS, Calibration, Cost, Identity
from mtbridge.compute.devices import Survey, Verdict
from mtbridge.compute.opencl_engine import open_opencl
from mtbridge.errors import DeviceError, InputError, ShapeError
from mtbridge.matrix import DTYPES
from mtbridge.service import Service
from mtbridge.wire import Array, Operation, Role, request

SIDE = 170
"""A product of this side is not small."""

SHAPES = ((60, 50), (300, 300))
"""What is timed in tests that measure."""

LARGE = np.random.default_rng(0).standard_normal((SIDE, SIDE))


def calibrated(numpy: Cost, opencl: Cost, **others: Cost) -> Calibration:
    """A calibration where both engines have one cost for all; `others` by operation and dtype, of opencl."""
    costs = {}
    for operation in OPERATIONS:
        for dtype in DTYPES:
            costs[f"numpy {operation} {dtype}"] = numpy
            costs[f"opencl {operation} {dtype}"] = others.get(f"{operation}_{dtype}", opencl)
    return Calibration(Identity("a device", "kernels", "settings", "a BLAS", 2), costs)


SLOW, FAST = Cost(1.0, 0.0, 0.0), Cost(1e-6, 0.0, 0.0)
OPENCL_WINS, NUMPY_WINS = calibrated(SLOW, FAST), calibrated(FAST, SLOW)
CROSSING = calibrated(Cost(0.0, 0.0, 2e-11), Cost(1e-3, 0.0, 1e-11))
"""OpenCL is the faster one from 1e8 multiplications on."""

CALLS: dict[str, Callable[[Engine, np.ndarray], object]] = {
    "multiply": lambda engine, X: operations.multiply(X.T, X, engine=engine),
    "gram": lambda engine, X: operations.gram(X, engine=engine),
    "covariance": lambda engine, X: operations.covariance(X, engine=engine),
    "correlation": lambda engine, X: operations.correlation(X, engine=engine),
}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MTBRIDGE_DEVICE", raising=False)
    auto_module.say_fallback.cache_clear()


@pytest.fixture
def single_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose one device has no float64."""
    seen = Survey(
        (Verdict(key="Adreno", platform="Qualcomm", name="Adreno", kind="gpu", ok=True, fp64=False),)
    )
    monkeypatch.setattr(devices, "survey", lambda **_: seen)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("given", "name"), [(OPENCL_WINS, "opencl"), (NUMPY_WINS, "numpy")])
def test_the_faster_engine_computes_and_its_answer_comes_back_bit_for_bit(
    verdict: Verdict, given: Calibration, name: str, call: str, dtype: str
) -> None:
    X = LARGE.astype(dtype)
    chosen = open_opencl("cpu") if name == "opencl" else open_engine("numpy")
    with AutoEngine("cpu", calibration=given) as engine, chosen:
        found, right = CALLS[call](engine, X), CALLS[call](chosen, X)
        assert np.array_equal(found.matrix, right.matrix)
        assert found.matrix.dtype == np.dtype(dtype)
        assert (found.engine, found.device) == (name, chosen.device)
        assert f"auto chose {name} for" in engine.why
        assert dtype in engine.why


def test_a_small_call_is_numpys_at_once_whatever_was_measured(verdict: Verdict) -> None:
    side = round(SMALL_PRODUCTS ** (1 / 3)) - 2
    with AutoEngine("cpu", calibration=OPENCL_WINS) as engine:
        assert operations.gram(LARGE[:side, :side], engine=engine).engine == "numpy"
        assert "too small" in engine.why
        assert operations.gram(LARGE, engine=engine).engine == "opencl"


def test_missing_values_go_to_the_device_unless_they_are_few_and_complete_data_where_they_are_faster(
    verdict: Verdict,
) -> None:
    with AutoEngine(calibration=NUMPY_WINS) as engine:
        for X, name in ((LARGE, "numpy"), (np.where(LARGE > 2, np.nan, LARGE), "opencl")):
            found = operations.covariance(X, engine=engine)
            assert (found.engine, engine.used.name) == (name, name)
        small = np.where(LARGE > 2, np.nan, LARGE)[:20, :20]
        assert operations.covariance(small, engine=engine).engine == "numpy"
        assert "too small" in engine.why


def test_small_calls_neither_open_a_device_nor_measure(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def opened(*_: object, **__: object) -> None:
        raise AssertionError("a device was opened")

    monkeypatch.setattr("mtbridge.compute.opencl_engine.open_opencl", opened)
    with AutoEngine("cpu") as engine:
        for call in CALLS.values():
            assert call(engine, LARGE[:60, :50]).engine == "numpy"
    assert not capsys.readouterr().err


def test_the_shape_decides_where_the_times_cross(verdict: Verdict) -> None:
    random = np.random.default_rng(1)
    with AutoEngine("cpu", calibration=CROSSING) as engine:
        for rows, columns, name in [
            (300, 300, "numpy"),
            (500, 500, "opencl"),
            (50_000, 20, "numpy"),
            (60_000, 60, "opencl"),
        ]:
            assert operations.gram(random.standard_normal((rows, columns)), engine=engine).engine == name
            assert "ms" in engine.why


def test_the_operation_and_the_dtype_decide_too(verdict: Verdict) -> None:
    given = calibrated(Cost(1e-3, 0.0, 0.0), SLOW, gram_float32=FAST, moments_float64=FAST)
    single = LARGE.astype("float32")
    with AutoEngine("cpu", calibration=given) as engine:
        assert operations.gram(single, engine=engine).engine == "opencl"
        assert operations.gram(LARGE, engine=engine).engine == "numpy"
        assert operations.covariance(LARGE, engine=engine).engine == "opencl"
        # products are taken in the dtype that is asked for, so that one counts
        assert operations.covariance(LARGE, dtype="float32", engine=engine).engine == "numpy"


@pytest.mark.usefixtures("single_only")
def test_float64_is_numpys_where_the_device_has_none() -> None:
    with AutoEngine(calibration=OPENCL_WINS) as engine:
        assert operations.gram(LARGE, engine=engine).engine == "numpy"
        assert "Adreno has no float64" in engine.why
        assert engine.upload(LARGE) is LARGE


@pytest.mark.usefixtures("single_only")
def test_a_device_that_is_gone_when_it_is_wanted_leaves_numpy_and_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def gone(*_: object, **__: object) -> None:
        raise DeviceError("the OpenCL device Adreno is gone.")

    monkeypatch.setattr("mtbridge.compute.opencl_engine.open_opencl", gone)
    for given in (OPENCL_WINS, None):
        with AutoEngine(calibration=given) as engine:
            for _ in range(2):
                assert operations.gram(LARGE.astype("float32"), engine=engine).engine == "numpy"
            assert "Adreno is gone" in engine.why
    assert capsys.readouterr().err == "mtbridge: numpy is used, since the OpenCL device Adreno is gone.\n"


def test_the_line_about_a_missing_device_comes_once_a_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(devices, "survey", lambda **_: Survey(()))
    for _ in range(3):
        with open_engine() as engine:
            assert engine.name == "numpy"
            assert engine.used is engine
            assert engine.why == ""
    assert capsys.readouterr().err.count("numpy is used") == 1


def test_a_named_device_is_taken_without_a_choice(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_engine("auto", device="cpu") as engine:
        assert engine.name == "opencl"
        assert operations.gram(LARGE[:5], engine=engine).engine == "opencl"
    monkeypatch.setenv("MTBRIDGE_DEVICE", "cpu")
    with open_engine("auto") as engine:
        assert engine.name == "opencl"


def test_uploaded_matrices_stay_on_their_device(verdict: Verdict) -> None:
    small = LARGE[:7, :5]
    with AutoEngine("cpu", calibration=NUMPY_WINS) as engine:
        there = engine.upload(small)
        assert there is not small
        product = engine.multiply(there.transposed, there)
        assert engine.used.name == "opencl"
        assert "lies on the device" in engine.why
        assert np.allclose(engine.download(product), small.T @ small)
        assert np.allclose(engine.download(engine.gram(there, small)), small.T @ small)
        assert engine.used.name == "opencl"
        assert np.allclose(engine.moments(there).covariance(), np.cov(small, rowvar=False))
        assert engine.used.name == "opencl"


def test_a_matrix_of_another_engine_is_refused(verdict: Verdict) -> None:
    with AutoEngine("cpu", calibration=NUMPY_WINS) as engine, open_opencl("cpu") as other:
        there = other.upload(LARGE[:7])
        with pytest.raises(InputError, match="another engine"):
            engine.gram(there)


def test_batches_and_bad_shapes_are_as_on_every_engine(verdict: Verdict) -> None:
    with AutoEngine("cpu", calibration=OPENCL_WINS) as engine:
        pair = np.stack([LARGE, LARGE[::-1]])
        assert np.allclose(engine.multiply(pair, pair), pair @ pair)
        assert np.allclose(engine.gram(pair), pair.swapaxes(1, 2) @ pair)
        with pytest.raises(ShapeError, match="3 columns but B has 2"):
            engine.multiply(np.ones((2, 3)), np.ones((2, 3)))
        with pytest.raises(ShapeError, match="1 dimensions"):
            engine.gram(np.ones(3))


@pytest.fixture
def calibrations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of calibrations, empty; one takes little time."""
    monkeypatch.setattr(calibration, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(calibration, "writable_cache", lambda: tmp_path)
    monkeypatch.setattr(calibration, "RUNS_SECONDS", 0.0)
    monkeypatch.setattr(calibration, "ROUNDS", 1)
    monkeypatch.setattr(calibration, "SHAPES", SHAPES)
    return tmp_path / "calibrations"


def test_the_first_large_call_measures_with_a_line_and_the_next_engine_reads_what_was_stored(
    verdict: Verdict, calibrations: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with AutoEngine("cpu") as engine:
        assert operations.gram(LARGE, engine=engine).engine in ("numpy", "opencl")
        assert capsys.readouterr().err.count("are timed, once") == 1
    (stored,) = calibrations.iterdir()
    made = stored.read_bytes()
    with AutoEngine("cpu") as engine:
        assert operations.gram(LARGE, engine=engine).engine in ("numpy", "opencl")
        assert not capsys.readouterr().err
    stored.write_bytes(b"{")
    with AutoEngine("cpu") as engine:
        engine.prepare()
        assert "are timed, once" in capsys.readouterr().err
        assert calibration.stored(calibration.identity_of(verdict.key)) is not None
        stored.write_bytes(made)
        operations.gram(LARGE, engine=engine)
        assert not capsys.readouterr().err


def test_threads_each_with_an_engine_get_right_answers_and_measure_once(
    verdict: Verdict, calibrations: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    right = LARGE.T @ LARGE

    def work() -> None:
        with AutoEngine("cpu") as engine:
            for _ in range(10):
                assert np.allclose(engine.gram(LARGE), right)

    together(*[work] * 4, seconds=100)
    assert capsys.readouterr().err.count("are timed, once") == 1


def test_it_may_be_closed_twice_and_says_both_devices(verdict: Verdict) -> None:
    with AutoEngine("cpu", calibration=OPENCL_WINS) as engine:
        operations.gram(LARGE, engine=engine)
        assert engine.name == "auto"
        assert engine.device.endswith(f" (numpy) and {verdict.name} (opencl)")
    engine.close()


def test_a_worker_with_auto_says_so_and_answers_small_requests_by_numpy(verdict: Verdict) -> None:
    with AutoEngine("cpu", calibration=OPENCL_WINS) as engine:
        service = Service(engine)
        pong = service.answer(request(Operation.PING, 1, []))
        names = pong.find(Role.NAMES)
        assert names is not None
        assert names.tobytes().decode().splitlines()[1:] == ["auto", engine.device]
        assert f"auto on {engine.device}" in pong.text
        bars = LARGE[:60, :50].copy()
        reply = service.answer(request(Operation.CORRELATION, 2, [Array(Role.DATA, bars)]))
        found = reply.find(Role.RESULT)
        assert found is not None
        assert np.allclose(found, np.corrcoef(bars, rowvar=False))
        assert engine.used.name == "numpy"


def test_pinned_arrays_and_arrays_to_download_into_work_on_either_engine(verdict: Verdict) -> None:
    with AutoEngine("cpu", calibration=NUMPY_WINS) as engine:
        X, out = engine.empty_pinned((SIDE, SIDE)), engine.empty_pinned((SIDE, SIDE))
        X[...] = LARGE
        assert engine.download(engine.upload(X), out=out) is out
        assert np.array_equal(out, LARGE)
        assert np.allclose(engine.gram(X), LARGE.T @ LARGE)
        assert engine.used.name == "numpy"
        out[...] = 0
        assert engine.download(LARGE, out=out) is out
        assert np.array_equal(out, LARGE)


@pytest.mark.parametrize(("given", "name"), [(OPENCL_WINS, "opencl"), (NUMPY_WINS, "numpy")])
def test_answers_go_into_an_array_of_the_callers_on_either_engine(
    verdict: Verdict, given: Calibration, name: str
) -> None:
    with AutoEngine("cpu", calibration=given) as engine:
        out = engine.empty_pinned((SIDE, SIDE))
        for call in (
            lambda out: engine.multiply(LARGE.T, LARGE, out=out),
            lambda out: engine.gram(LARGE, out=out),
            lambda out: operations.covariance(LARGE, engine=engine, out=out).matrix,
        ):
            out[...] = np.nan
            assert call(out) is out
            assert engine.used.name == name
            assert np.array_equal(out, call(None))
        batch = np.stack([LARGE, LARGE])
        many = np.empty_like(batch)
        assert engine.multiply(batch, batch, out=many) is many
        assert np.allclose(many, batch @ batch)
        assert engine.gram(batch, out=many) is many
        assert np.allclose(many, batch.transpose(0, 2, 1) @ batch)
