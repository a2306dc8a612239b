"""The device of `mtbridge bench gpu`: memory full of NaN, the time of many launches, and one covariance."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mtbridge.bench.gpu_cases import Named
from mtbridge.bench.gpu_data import case_of
from mtbridge.compute.devices import Verdict
from mtbridge.matrix import DTYPES


@pytest.fixture(scope="module")
def device(verdict: Verdict) -> Iterator[Any]:
    from mtbridge.bench.gpu_device import open_resident

    with open_resident(verdict) as opened:
        yield opened


@pytest.mark.parametrize("count", [1, 3, 4, 5, 257, 4099])
def test_a_number_is_written_everywhere_and_nowhere_else(device: Any, count: int) -> None:
    buffer = device.uploaded(np.zeros(count + 8, np.float32))
    device.write_all(buffer, 4 * count, np.float32(7))
    found = device.downloaded(buffer, np.empty(count + 8, np.float32))
    assert (found[:count] == 7).all()
    assert (found[count:] == 0).all()


def test_memory_for_answers_is_full_of_nan_while_a_device_poisons(device: Any) -> None:
    device.poisoning = True
    try:
        buffer = device.allocate(8 * 33)
        target, array = device.result("answer", (3, 11), np.dtype(np.float64))
    finally:
        device.poisoning = False
    assert np.isnan(device.downloaded(buffer, np.empty(33))).all()
    assert np.isnan(device.receive(target, array)).all()


def test_the_time_of_several_launches_is_that_from_the_first_to_the_last(device: Any) -> None:
    buffer = device.allocate(1 << 20)

    def work() -> None:
        device.write_all(buffer, 1 << 20)
        device.finish()
        time.sleep(0.02)
        device.write_all(buffer, 1 << 20)

    spent = device.spent(work)
    assert spent.whole >= 0.02
    assert 0 < spent.kernels < spent.whole
    assert device.spent(lambda: None).whole == 0


def test_lines_are_read_from_the_middle_of_an_answer(device: Any) -> None:
    array = np.arange(60.0).reshape(10, 6)
    buffer = device.uploaded(array)
    for some in ([0, 1, 2], [4], [2, 5, 9], list(range(10))):
        found = device.lines(buffer, np.array(some), (2, 3), array.dtype)
        np.testing.assert_array_equal(found, array[some].reshape(-1, 2, 3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", ["opencl", "register_tiled", "split_mma"])
def test_a_covariance_queues_the_kernels_of_the_engine_and_gives_its_answer(
    device: Any, verdict: Verdict, family: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mtbridge.bench.gpu_families import Families
    from mtbridge.bench.gpu_works import CovarianceTrial, copies_of

    families = Families(device, verdict.key)
    engine = families.engine("opencl" if family == "split_mma" else family, dtype)
    if family == "split_mma":
        # in plain OpenCL C, which is there for tests
        engine.use_halves(0)
    case = case_of(Named("covariance", (300, 70)), dtype)
    copies = copies_of(engine, case, 2)
    trial = CovarianceTrial(device, engine, case, copies)
    queued: list[str] = []
    run = device.run

    def noted(kernel: Any, *arguments: Any, **options: Any) -> Any:
        queued.append(kernel.name)
        return run(kernel, *arguments, **options)

    monkeypatch.setattr(device, "run", noted)
    trial.run(0)
    ours, queued[:] = list(queued), []
    expected = engine.moments(copies[0][0]).covariance()
    # what stays on a device is mirrored and divided by one kernel there
    made = {"mirror", "covariance"}
    assert [name for name in ours if name not in made] == [name for name in queued if name not in made]
    assert "pack_centred" in ours
    found = trial.lines(np.arange(70))
    deviations = np.sqrt(np.diagonal(expected))
    bound = np.finfo(dtype).eps * np.outer(deviations, deviations)
    assert (np.abs(found - expected) <= bound).all()
