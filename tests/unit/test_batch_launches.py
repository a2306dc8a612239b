"""How batches are done: in how many launches, from where their matrices lie, and what stays on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_batches import ORDERS, assert_moments, assert_products, batch, batches, bits, tensor_engine

from mtbridge.compute import batch_plan
from mtbridge.compute.batch_plan import Card, centring
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.parameters import Limits
from mtbridge.compute.strided import Strided
from mtbridge.errors import InputError
from mtbridge.matrix import DTYPES

# fixtures
__all__ = ["batches", "tensor_engine"]


def launches(engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of kernels that are queued from now on."""
    names: list[str] = []
    real = engine.kernels_device.run
    monkeypatch.setattr(
        engine.kernels_device,
        "run",
        lambda kernel, *rest, **more: names.append(kernel.name) or real(kernel, *rest, **more),
    )
    return names


def test_a_batch_is_one_launch(batches: OpenCLEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    X = batch((50, 20, 8), "float64")
    names = launches(batches, monkeypatch)
    batches.gram(X)
    batches.gram(X, X)
    batches.moments(X)
    assert names == ["gram", "multiply", "gram"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("limit", [4096, 9000, 1 << 20])
def test_small_buffers_take_a_batch_in_parts(
    verdict: Any, batches: OpenCLEngine, monkeypatch: pytest.MonkeyPatch, limit: int, dtype: str
) -> None:
    X, windows = batch((23, 20, 8), dtype), batch((23, 20, 8), dtype, "windows")
    expected = [batches.gram(X).tobytes(), batches.gram(windows).tobytes(), *bits(batches.moments(X))]
    monkeypatch.setattr(batches, "_limit", limit)
    names = launches(batches, monkeypatch)
    found = [batches.gram(X).tobytes(), batches.gram(windows).tobytes(), *bits(batches.moments(X))]
    assert found == expected
    assert (len(names) > 3) == (limit < 1 << 20)


def test_matrices_too_large_for_a_group_go_one_by_one(
    batches: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = batch((3, 31, 17), "float64")
    monkeypatch.setattr(batch_plan, "LARGEST", 100)
    names = launches(batches, monkeypatch)
    found = batches.gram(X)
    assert len(names) > len(X)
    assert_products(found, X.swapaxes(1, 2), X)
    assert_products(batches.gram(X, X), X.swapaxes(1, 2), X)
    assert_moments(batches.moments(X), X, "float64")
    resident: Any = batches.gram(batches.upload(X))
    assert np.array_equal(batches.download(resident), found)


def test_a_kernel_that_cannot_be_built_for_tensor_cores_is_replaced(
    tiled_engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = batch((3, 12, 5), "float64")
    # no such instruction on this device
    monkeypatch.setattr(tiled_engine, "batch_plans", Card(tiled_engine.limits, tensor=80))
    assert_products(tiled_engine.gram(X), X.swapaxes(1, 2), X)
    assert tiled_engine.batch_plans == Card(tiled_engine.limits)


def test_plans_stay_within_what_a_device_has() -> None:
    limits = Limits(vector_bytes=0, largest_group=1024, local_bytes=48 << 10)
    fitting = 0
    for tensor in (None, 90):
        for columns in range(1, 200):
            for rows in (1, 2, 63, 64, 65, 250, 1000):
                for size, centre in ((4, None), (8, None), (4, centring(4, subnormals=True))):
                    plan = Card(limits, tensor).gram((rows, columns), size, centre)
                    if plan is None:
                        assert rows * columns > batch_plan.LARGEST or columns > 120
                        continue
                    fitting += 1
                    assert plan.items >= columns
                    assert plan.items * plan.matrices <= limits.largest_group
                    assert sum(plan.local) <= limits.local_bytes
                    assert 1 <= plan.sizes[2] <= 64
    assert fitting > 5000


# windows, and what lies on the device


def test_windows_are_sent_once() -> None:
    windows = batch((1000, 60, 5), "float64", "windows")
    one = Strided.of(windows)
    assert one.flat.size == 1059 * 5
    assert one.steps == (5, 5, 1)
    assert not one.flat.flags.writeable


@pytest.mark.parametrize("order", ORDERS)
def test_a_batch_is_where_its_steps_say(order: str) -> None:
    X = batch((4, 7, 3), "float32", order)
    one = Strided.of(X)
    m, r, c = np.indices(X.shape)
    places = one.begin + m * one.steps[0] + r * one.steps[1] + c * one.steps[2]
    assert np.array_equal(one.flat[places], X)
    assert one.flat.size <= 2 * X.size


def test_memory_with_large_holes_or_at_odd_addresses_is_copied() -> None:
    holes = np.arange(4000.0).reshape(10, 20, 20)[::3, ::5, ::4]
    records = np.zeros((4, 7, 3), [("flag", "i1"), ("value", "f8")])
    records["value"] = batch((4, 7, 3), "float64")
    for X in (holes, records["value"]):
        one = Strided.of(X)
        assert one.flat.size == X.size
        assert np.array_equal(one.flat.reshape(X.shape), X)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_batch_on_the_device_gives_what_the_array_gives(
    batches: OpenCLEngine, dtype: str, order: str
) -> None:
    X = batch((4, 31, 17), dtype, order)
    there: Any = batches.upload(X)
    assert isinstance(there, DeviceMatrix)
    assert (there.shape, there.ndim, there.nbytes) == (X.shape, 3, X.nbytes)
    assert np.array_equal(batches.download(there), X)
    assert np.array_equal(batches.download(there.transposed), X.swapaxes(1, 2))
    square: Any = batches.gram(there)
    assert isinstance(square, DeviceMatrix)
    assert np.array_equal(batches.download(square), batches.gram(X))
    chained: Any = batches.multiply(there, square)
    assert np.array_equal(batches.download(chained), batches.multiply(X, batches.gram(X)))
    beside: Any = batches.multiply(X, square)
    assert np.array_equal(batches.download(beside), batches.download(chained))
    assert bits(batches.moments(there)) == bits(batches.moments(X))


def test_a_batch_of_another_engine_is_refused(
    opencl_engine: OpenCLEngine, tiled_engine: OpenCLEngine
) -> None:
    there: Any = opencl_engine.upload(batch((4, 7, 3), "float64"))
    with pytest.raises(InputError, match="another engine"):
        tiled_engine.gram(there)
