"""Long sums of float32 products in halves: in slices, in parts kept apart, unbiased, the same each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_split import BITS, CHOICES, Open, bound, far_apart

from mtbridge.compute import opencl_split, precision, shares
from mtbridge.compute.precision import PRODUCTS
from mtbridge.compute.tensor_cores import form_of


def test_sums_in_slices_and_slabs_are_right(asked: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few blocks of long sums are cut into slices; what is packed at a time is cut here, too."""
    engine = asked("split_mma", "split")
    A, B = far_apart(5, 3001, 0), far_apart(3001, 7, 1, seed=2)
    exact = A.astype(np.float64) @ B.astype(np.float64)
    whole = engine.multiply(A, B)
    monkeypatch.setattr(opencl_split, "slab_depth", lambda *_, **__: 999)
    slabs = engine.multiply(A, B)
    for found in (whole, slabs):
        assert (np.abs(found - exact) <= bound(A, B, 22)).all()


@pytest.mark.parametrize(("family", "wanted"), CHOICES)
def test_sums_that_are_kept_apart_have_memory(
    asked: Open, family: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of float32 results are longer than those of float64, and so kept in more parts."""
    engine = asked(family, wanted)
    device = engine.kernels_device
    built, buffer, run = device.kernel, device.buffer, device.run
    defines: list[dict[str, int]] = []
    kept: list[int] = []
    groups: list[int] = []

    def kernel(name: str, files: tuple[str, ...], given: dict[str, int]) -> Any:
        if name == "gram":
            defines.append(given)
        return built(name, files, given)

    def memory(slot: str, size: int) -> Any:
        if slot == "kept":
            kept.append(size)
        return buffer(slot, size)

    def launch(one: Any, extent: tuple[int, ...], *given: Any, **more: Any) -> None:
        if one.name == "gram":
            groups.append(extent[0])
        run(one, extent, *given, **more)

    monkeypatch.setattr(device, "kernel", kernel)
    monkeypatch.setattr(device, "buffer", memory)
    monkeypatch.setattr(device, "run", launch)
    # whole blocks, each of the inner size at least
    monkeypatch.setattr(shares, "shares", lambda blocks, *_, **__: (blocks, 1))
    rows = 40_000 if device.capability else 1100
    X = far_apart(rows, 200, 1)
    found = engine.gram(X)
    assert (np.abs(found - X.T.astype(np.float64) @ X) <= bound(X.T, X, BITS[wanted])).all()
    form, (made,) = form_of(family, device.capability, PRODUCTS[wanted]), defines
    parts = -(-min(rows, made["WIDE_INNER"]) // made["KEPT_INNER"]) - 1
    assert parts > 1
    assert kept == [groups[0] * form.rows * form.columns * parts * 4]


def test_the_diagonal_is_not_biased_however_long_the_sums(asked: Open) -> None:
    """Tensor cores cut off: sums that they added up alone would be too small by 6e-5 at this length."""
    engine = asked("split_mma", "split")
    X = np.random.default_rng(3).standard_normal((8192, 20)).astype(np.float32)
    exact = np.einsum("rc,rc->c", X, X, dtype=np.float64)
    assert abs(np.mean(np.diagonal(engine.gram(X)) / exact - 1)) <= precision.MOST_BIAS[3]


@pytest.mark.parametrize("wanted", ["split", "single"])
def test_the_same_call_gives_the_same_bits(asked: Open, wanted: str) -> None:
    engine = asked("split_mma", wanted)
    A, B = far_apart(70, 900, 0), far_apart(900, 40, 1)
    first, *others = (engine.multiply(A, B) for _ in range(4))
    assert all(other.tobytes() == first.tobytes() for other in others)
