"""Centred float64 columns in digits of 8 bits: panels and sums everywhere, tensor cores where there are some.

Whole numbers have no rounding, so what plain OpenCL C gives on a processor is what tensor cores give, bit for
bit. References are in long double, or in Python's integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from given_digits import EPS, Bench, comoment_of, data, in_digits, right

from mtbridge.compute.int8_mma import (
    CAPABILITIES,
    SMALL_GROUP,
    SMALL_SETTINGS,
    fault_in,
    fault_of,
    int8_form,
)
from mtbridge.compute.int8_products import (
    DIGIT_REACH,
    SUM,
    Uncentred,
    digits_of,
    gram_blocks,
    reach_of,
)
from mtbridge.compute.moments import Moments
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.opencl_split import queue_products
from mtbridge.matrix import Matrix

SPAN = 2**55
AWKWARD = [(1, 1), (1, 5), (2, 3), (31, 33), (33, 31), (37, 70), (64, 65), (65, 33), (1025, 35), (2080, 3)]
"""(rows, columns): beside a stage, a tile and what int32 adds up."""


@pytest.fixture(scope="module")
def nvidia() -> Iterator[Bench]:
    with in_digits("nvidia") as found:
        yield found


@pytest.mark.parametrize("shape", AWKWARD, ids=str)
def test_moments_are_as_good_as_those_of_float64_at_awkward_sizes(
    bench: Bench, shape: tuple[int, int]
) -> None:
    X = data(*shape) - 1000
    assert right(bench.moments(X), X)


@pytest.mark.parametrize("name", ["tails", "spikes", "turns", "levels", "wide", "tiny", "vast"])
def test_hostile_columns_keep_the_bound_of_norms(bench: Bench, name: str) -> None:
    random = np.random.default_rng(2)
    X = random.standard_normal((600, 40))
    if name == "tails":
        X = random.standard_t(2, X.shape)
    elif name == "spikes":
        X[np.arange(40), np.arange(40)] = 1e9
    elif name == "turns":
        X[:300, ::2] *= 1e-12
        X[300:, 1::2] *= 1e-12
    elif name == "levels":
        X = 1e5 + 0.01 * random.integers(0, 3, X.shape)
    else:
        X *= {"wide": 10.0 ** -np.arange(40), "tiny": 1e-170, "vast": 1e200}[name]
    assert right(bench.moments(X), X)


def test_columns_of_several_large_deviations_keep_half_of_the_bound(bench: Bench) -> None:
    X = np.random.default_rng(3).standard_normal((1000, 35))
    assert right(bench.moments(X), X, share=1)


def test_usual_errors_are_those_of_float64(bench: Bench) -> None:
    """Not the bound but what is met: at most twice the error of numpy's products of doubles."""
    X = np.random.default_rng(4).standard_normal((1500, 40))
    found = bench.moments(X)
    exact, norms = comoment_of(X, found.exponent)
    Z = np.ldexp(X - X.mean(axis=0), -found.exponent.astype(np.int32))
    ours, theirs = (np.abs(C - exact) / norms for C in (found.comoment, Z.T @ Z))
    assert ours.max() <= 2 * theirs.max() + EPS


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_column_that_is_not_finite_spoils_no_other_and_holds_up_none(bench: Bench, bad: float) -> None:
    X = data(300, 20) - 1000
    X[5, 3] = X[299, 19] = bad
    found = bench.moments(X)
    bad_ones = np.isin(np.arange(20), (3, 19))
    assert np.isnan(found.comoment[bad_ones]).all()
    assert np.isnan(found.comoment[:, bad_ones]).all()
    assert np.isnan(found.origin[bad_ones]).all()
    assert np.isnan(found.mean[bad_ones]).all()
    keep = ~bad_ones
    few = Moments(
        found.n,
        found.origin[keep],
        found.exponent[keep],
        found.mean[keep],
        found.comoment[np.ix_(keep, keep)],
    )
    assert right(few, X[:, keep])


def test_all_columns_may_be_lost(bench: Bench) -> None:
    assert np.isnan(bench.moments(np.full((3, 2), np.nan)).covariance()).all()


@pytest.mark.parametrize("value", [1e300, -1e300])
def test_vast_columns_are_left_to_the_host(bench: Bench, value: float) -> None:
    X = data(50, 4)
    X[7, 2] = value
    assert bench.digits(X) is None
    scaled = X / np.abs(X).max(axis=0)
    R = bench.engine.moments(X).correlation()
    assert np.allclose(R, np.corrcoef(scaled, rowvar=False), atol=1e-12)


def test_constant_and_repeated_columns_give_exact_answers(bench: Bench) -> None:
    X = data(300, 40)
    X[:, 7], X[:, 39] = 0.1, 1e5
    X[:, 33], X[:, 35] = X[:, 5], -X[:, 5]
    found = bench.moments(X)
    assert not found.covariance()[[7, 39]].any()
    R = found.correlation()
    assert np.isnan(R[7]).all()
    assert R[5, 33] == 1
    assert R[5, 35] == R[35, 33] == -1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_order_and_type_is_read(bench: Bench, dtype: Any, order: Any) -> None:
    X = np.asarray(data(130, 35) - 1000, dtype, order=order)
    found = bench.moments(X)
    assert right(found, X.astype(np.float64))
    assert np.abs(found.covariance() - np.cov(X.astype(np.float64), rowvar=False)).max() <= 1e-9


def test_the_same_call_gives_the_same_bits(bench: Bench) -> None:
    X = data(500, 70)
    first, *others = (bench.moments(X).comoment for _ in range(3))
    assert all(other.tobytes() == first.tobytes() for other in others)


def test_tensor_cores_give_the_bits_of_plain_opencl(nvidia: Bench) -> None:
    X = data(1500, 190)
    settings = {name: value for name, value in nvidia.form.defines.items() if name != "PTX"}
    found = nvidia.moments(X)
    other = OpenCLEngine(nvidia.device, tiled=SMALL_GROUP)
    other.use_int8(0, settings, least=0)
    plain = Bench(other).moments(X)
    assert found.comoment.tobytes() == plain.comoment.tobytes()
    assert found.mean.tobytes() == plain.mean.tobytes()


def uncentred(bench: Bench, X: Matrix) -> Uncentred:
    source, steps = bench.engine._launches.source("right", X)
    return Uncentred(source, X.shape, steps, X.dtype, SUM, bench.form)


@pytest.mark.parametrize("shape", [(1, 1), (31, 5), (32, 32), (33, 33), (150, 70)], ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_panels_hold_every_digit(plain_bench: Bench, shape: tuple[int, int], order: Any) -> None:
    """Against the formula at the head of kernels/int8.clh."""
    (inner, strips), slices = shape, plain_bench.form.defines["SLICES"]
    X = np.asarray(np.random.default_rng(5).standard_t(2, shape), order=order)
    X[:, 0] = np.ldexp(1.0, -np.arange(inner).clip(0, 60)) * (-1) ** np.arange(inner)
    raw = uncentred(plain_bench, X)
    exponent = reach_of(np.abs(X).max(axis=0))
    digits = digits_of(plain_bench.device, raw, np.zeros(strips), exponent)
    buffer, depth = digits.packed(plain_bench.device, slice(0, inner))
    tile, width = plain_bench.form.right, raw.width
    panels = plain_bench.device.downloaded(buffer, np.empty((width // tile, depth * slices * tile), np.int8))

    z = np.ldexp(X, -exponent.astype(np.int32))
    assert np.abs(z).max() < DIGIT_REACH
    assert (np.abs(z).max(axis=0) >= DIGIT_REACH / 2).all()
    expected = np.zeros((depth, width), object)
    expected[:inner, :strips] = np.vectorize(lambda x: round(float(x) * SPAN), otypes=[object])(z)
    k, c = np.indices((depth, width))
    found = np.zeros((depth, width), object)
    for s in range(slices):
        block = ((k // 32 * slices + s) * (tile // 16) + c % tile // 16) * 512
        place = block + c % 16 // 2 * 64 + k % 32 // 8 * 16 + c % 2 * 8 + k % 8
        found = found * 256 + panels[c // tile, place].astype(object)
    assert (found == expected).all()
    sums = digits.sums(plain_bench.device)
    assert np.abs(sums - z.sum(axis=0)).max() <= inner * EPS * np.abs(z).sum(axis=0).max()


def digits_by_definition(X: Any, slices: int) -> list[Any]:
    """The digits of integers, the first one first: each within -128 .. 127, so the rest divides exactly."""
    digits = []
    for _ in range(slices):
        digit = (X + 128) % 256 - 128
        digits.append(digit)
        X = (X - digit) // 256
    assert not X.any()
    return digits[::-1]


@pytest.mark.parametrize(("inner", "strips"), [(1, 2), (32, 33), (100, 40)])
def test_sums_are_those_of_all_digits_but_the_least(bench: Bench, inner: int, strips: int) -> None:
    """Against Python's integers, to the last bit: one block, not cut into slices."""
    slices = bench.form.defines["SLICES"]
    X = np.random.default_rng(9).standard_normal((inner, strips))
    exponent = reach_of(np.abs(X).max(axis=0))
    digits = digits_of(bench.device, uncentred(bench, X), np.zeros(strips), exponent)
    target, out = bench.device.result("product", (strips, strips), SUM)
    blocks = gram_blocks(bench.device, bench.form, strips)
    limit = bench.device.largest_buffer
    queue_products(bench.device, bench.form, (digits,), blocks, SUM, target, limit)
    found = bench.device.receive(target, out)

    z = np.ldexp(X, -exponent.astype(np.int32))
    whole = np.vectorize(lambda x: round(float(x) * SPAN), otypes=[object])(z)
    D = digits_by_definition(whole, slices)
    sums = sum((D[s].T @ D[d - s]) * 256 ** (slices - 1 - d) for d in range(slices) for s in range(d + 1))
    exact = (np.asarray(sums, object) / 2 ** (8 * slices + 6)).astype(np.float64)
    assert (np.abs(found - exact) <= np.spacing(np.abs(exact))).all()


def test_the_largest_digits_do_not_overflow_the_longest_sum(bench: Bench) -> None:
    """All digits -128, which no number has, over as many inner indices as one sum in int32 takes."""
    form = int8_form(bench.form.defines["PTX"], {**SMALL_SETTINGS, "WIDE_INNER": 16384})
    slices, tile, inner = form.defines["SLICES"], form.right, 16384
    panels = bench.device.uploaded(np.full(inner * slices * tile, -128, np.int8))
    files, defines = (*form.headers, "gram/int8_mma.cl"), {**form.defines, "REAL_BITS": 64, "SUM_BITS": 64}
    kernel = bench.device.kernel("gram", files, defines)
    target, out = bench.device.result("product", (1, 1), SUM)
    blocks, count = gram_blocks(bench.device, form, 1)
    assert count == 1
    sizes = tuple(map(np.int32, (1, inner, 1)))
    shares = tuple(map(np.int32, (1, 1, 0)))
    bench.device.run(kernel, (1,), (form.group,), panels, target, *sizes, blocks, target, *shares)
    weights = sum((d + 1) * 256 ** (slices - 1 - d) for d in range(slices))
    assert bench.device.receive(target, out)[0, 0] == inner * 2**14 * weights / 2 ** (8 * slices + 6)


def test_the_check_of_a_device_finds_nothing_wrong(nvidia: Bench) -> None:
    assert not fault_of(nvidia.device, nvidia.device.capability)


def test_the_check_sees_wrong_sums_a_lost_triangle_and_spoilt_columns(plain_bench: Bench) -> None:
    X = data(50, 6) - 1000
    found = plain_bench.moments(X)
    assert not fault_in(found, X)
    C = found.comoment.copy()
    C[1, 2] *= 1 + 1e-15
    assert "symmetric" in fault_in(Moments(found.n, found.origin, found.exponent, found.mean, C), X)
    C[1, 2] = C[2, 1] = C[1, 2] + 1e-10 * np.sqrt(C[1, 1] * C[2, 2])
    assert "wrong" in fault_in(Moments(found.n, found.origin, found.exponent, found.mean, C), X)
    C[3] = C[:, 3] = np.nan
    assert "wrong" in fault_in(Moments(found.n, found.origin, found.exponent, found.mean, C), X)


def test_capabilities_are_those_of_cards_with_little_float64() -> None:
    assert set(CAPABILITIES) == {86, 89, 120}
