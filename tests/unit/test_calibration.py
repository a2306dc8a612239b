"""The measurement behind `auto`: its model, its file, and what makes it be made again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from mtbridge.compute import Engine, calibration
from mtbridge.compute.calibration import OPERATIONS, Calibration, Cost, Identity, fitted
from mtbridge.compute.host import NumpyEngine
from mtbridge.compute.tuned import Target, TunedSet
from mtbridge.compute.tuned import keep as keep_tuned
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES

SHAPES = calibration.SHAPES
NAMES = [
    f"{engine} {operation} {dtype}"
    for engine in ("numpy", "opencl")
    for operation in OPERATIONS
    for dtype in DTYPES
]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache folder of this test's own, and as few runs as there can be."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(calibration, "RUNS_SECONDS", 0.0)
    monkeypatch.setattr(calibration, "ROUNDS", 1)
    monkeypatch.setattr(calibration, "SHAPES", ((60, 50), (300, 300)))
    monkeypatch.setattr(calibration, "PAUSE_SECONDS", 0.0)
    return tmp_path / "mtbridge" / "calibrations"


@pytest.fixture
def numpy_engine() -> Iterator[Engine]:
    with NumpyEngine() as engine:
        yield engine


def made_up(device: str = "PoCL | EPYC") -> Calibration:
    cost = Cost(call=1e-5, element=1e-9, product=1e-11)
    return Calibration(calibration.identity_of(device), dict.fromkeys(NAMES, cost))


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("cost", [Cost(2e-4, 1e-9, 5e-12), Cost(3e-6, 0.0, 2e-11), Cost(0.0, 4e-9, 0.0)])
def test_the_parts_of_a_time_are_found_again(operation: str, cost: Cost) -> None:
    shapes = [(columns, rows, columns) for rows, columns in SHAPES]
    found = fitted(operation, [(shape, cost.seconds(operation, shape)) for shape in shapes])
    for shape in [*shapes, (2000, 500, 2000), (50, 10**6, 50)]:
        assert found.seconds(operation, shape) == pytest.approx(cost.seconds(operation, shape), rel=1e-6)


@pytest.mark.parametrize("seed", range(20))
def test_no_part_is_negative_however_noisy_the_times_are(seed: int) -> None:
    random = np.random.default_rng(seed)
    samples = [((columns, rows, columns), float(random.lognormal(-7, 2))) for rows, columns in SHAPES]
    found = fitted("gram", samples)
    assert min(found.call, found.element, found.product) >= 0
    assert max(found.call, found.element, found.product) > 0


def test_with_one_time_only_the_others_are_in_proportion_to_the_work() -> None:
    found = fitted("multiply", [((50, 60, 50), 1e-3)])
    assert found.seconds("multiply", (500, 60, 500)) == pytest.approx(0.1)


def test_a_measurement_has_every_operation_and_grows_with_the_work(numpy_engine: Engine) -> None:
    found = calibration.measure(calibration.identity_of("PoCL | EPYC"), numpy_engine)
    assert found.sound
    assert set(found.costs) == {name for name in NAMES if name.startswith("numpy")}
    for operation in OPERATIONS:
        for dtype in DTYPES:
            small = found.seconds("numpy", operation, dtype, (50, 60, 50))
            assert small < found.seconds("numpy", operation, dtype, (2000, 2000, 2000)) < 3600


def test_what_a_device_cannot_compute_has_no_time_and_is_never_the_faster_one(numpy_engine: Engine) -> None:
    class SingleOnly(NumpyEngine):
        name = "opencl"

        def _gram(self, X: np.ndarray, *, wide: bool) -> np.ndarray:
            if X.dtype == np.float64:
                raise DeviceError("there is no float64.")
            return super()._gram(X, wide=wide)

    found = calibration.measure(calibration.identity_of("Adreno"), SingleOnly(), numpy_engine)
    assert found.sound
    assert "opencl gram float32" in found.costs
    assert found.seconds("opencl", "gram", "float64", (9, 9, 9)) == float("inf")
    assert found.seconds("opencl", "moments", "float64", (9, 9, 9)) == float("inf")


def test_a_calibration_is_kept_and_found_again(cache: Path) -> None:
    made = made_up()
    assert calibration.stored(made.identity) is None
    calibration.keep(made)
    assert calibration.stored(made.identity) == made
    assert [path.suffix for path in cache.iterdir()] == [".json"]


def test_each_device_has_a_calibration_of_its_own() -> None:
    first, second = made_up("PoCL | EPYC"), made_up("CUDA | H200")
    calibration.keep(first)
    calibration.keep(second)
    assert calibration.stored(first.identity) == first
    assert calibration.stored(second.identity) == second


@pytest.mark.parametrize("field", Identity.__struct_fields__)
def test_another_device_kernel_setting_or_blas_needs_another_calibration(field: str) -> None:
    made = made_up()
    calibration.keep(made)
    other = 99 if field == "processors" else "another"
    assert calibration.stored(msgspec.structs.replace(made.identity, **{field: other})) is None


def test_threads_of_blas_and_tuned_settings_are_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    before = calibration.identity_of("PoCL | EPYC")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert calibration.identity_of("PoCL | EPYC") != before
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    assert calibration.identity_of("PoCL | EPYC") == before
    target = Target(device="PoCL | EPYC", vector_bytes=32, form="packed", dtype="float64")
    keep_tuned(TunedSet(target=target, settings={"MICRO_ROWS": 4}, error=0.1, speedup=1.1))
    assert calibration.identity_of("PoCL | EPYC") != before
    assert calibration.identity_of("CUDA | H200").settings == before.settings


def damaged(content: bytes) -> list[bytes]:
    """Files that are no calibration, each near to one."""
    return [
        b"",
        b"{",
        b"[]",
        b"\xff\x00",
        content[: len(content) // 2],
        content.replace(b"0.00001", b"-0.00001"),
        content.replace(b"0.00001", b"NaN"),
        content.replace(b"0.00001", b"1e999"),
        content.replace(b"0.00001", b'"fast"'),
        content.replace(b"numpy gram float32", b"numpy gram float16"),
        content.replace(b"0.00001", b"0").replace(b"1e-9", b"0").replace(b"1e-11", b"0"),
        content.replace(b"PoCL", b"CUDA"),
        content.replace(b'"costs"', b'"prices"'),
    ]


def test_a_damaged_or_wrong_file_counts_as_none(cache: Path) -> None:
    made = made_up()
    calibration.keep(made)
    (path,) = cache.iterdir()
    content = path.read_bytes()
    for wrong in damaged(content):
        assert wrong != content
        path.write_bytes(wrong)
        assert calibration.stored(made.identity) is None, wrong[:60]
        calibration.keep(made)
        assert calibration.stored(made.identity) == made


def test_forgotten_calibrations_are_gone(cache: Path) -> None:
    calibration.forget()
    made = made_up()
    calibration.keep(made)
    calibration.forget()
    assert calibration.stored(made.identity) is None
    assert not list(cache.iterdir())


def test_a_folder_that_cannot_be_made_costs_the_calibration_and_nothing_else(cache: Path) -> None:
    cache.parent.mkdir(exist_ok=True)
    cache.write_text("not a folder")
    made = made_up()
    calibration.keep(made)
    assert calibration.stored(made.identity) is None
