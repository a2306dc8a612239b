"""A matrix that lies on several engines: on the processor's device, each with a queue of its own."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from given_several import KINDS, LEAST, among, assert_product, normal, prices, three_engines

from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.devices import Verdict
from mtbridge.compute.forms import upper_triangle
from mtbridge.compute.nvidia import tensor_core_form
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.several import SeveralEngine
from mtbridge.compute.several_stripes import equal_stripes
from mtbridge.compute.shared_matrix import SharedAnswer, SharedMatrix
from mtbridge.compute.tensor_cores import form_of
from mtbridge.errors import DeviceError, InputError, ShapeError
from mtbridge.matrix import DTYPES, Matrix

COLUMNS = [1, 2, LEAST, 31, 32, 33, 73, 150]
"""A tile of the small settings is 32."""

WIDE = 333
"""Columns of at least three stripes."""


@pytest.fixture(scope="module", params=KINDS)
def engines(
    request: pytest.FixtureRequest, verdict: Verdict, open_tiled: Callable[[], OpenCLEngine]
) -> Iterator[list[OpenCLEngine]]:
    opened = three_engines(request.param, open_tiled)
    yield opened
    for engine in opened:
        engine.close()


def there(engine: Any, X: Matrix, **options: Any) -> Matrix:
    """The covariance matrix that is computed where `X` lies."""
    found: Matrix = engine.download(engine.covariance_on_device(engine.upload(X), **options))
    return found


def hostile(rows: int, dtype: str) -> Matrix:
    """Columns that miss something, hold an inf, or are constant; in stripes far apart."""
    X = prices(rows, 101, dtype)
    X[3, 1], X[0, 64], X[rows - 1, 98], X[:, 5], X[:, 96] = np.nan, np.inf, -np.inf, 0.1, 7e5
    X[:, -1] = X[:, 0]
    return X


# X'X


@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", COLUMNS)
def test_a_gram_matrix_has_the_bits_of_one_device(
    engines: list[OpenCLEngine], columns: int, dtype: str, order: str
) -> None:
    X = normal(37, columns, dtype, order)
    alone = engines[0].gram(X)
    assert_product(alone, X.T, X)
    for count in (1, 2, 3):
        shared = among(engines, count)
        answer = shared.gram(shared.upload(X))
        assert isinstance(answer, SharedAnswer)
        assert (shared.used is shared) == (columns >= LEAST)
        assert shared.download(answer).tobytes() == alone.tobytes()


def test_infinities_and_nan_of_a_gram_matrix_are_those_of_one_device(engines: list[OpenCLEngine]) -> None:
    X = normal(40, 150)
    X[3, 2], X[4, 70], X[5, 149] = np.inf, -np.inf, np.nan
    shared = among(engines, 3)
    assert shared.download(shared.gram(shared.upload(X))).tobytes() == engines[0].gram(X).tobytes()


# covariances


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(2, 33), (37, 97), (300, 150), (1009, 64), (50, 1), (3, 2)])
def test_a_covariance_has_the_bits_of_one_device(
    engines: list[OpenCLEngine], rows: int, columns: int, dtype: str, order: str
) -> None:
    X = np.array(prices(rows, columns, dtype), order=order)
    alone = there(engines[0], X)
    wide = X.astype(np.longdouble)
    wide -= wide.mean(axis=0)
    right = wide.T @ wide / (rows - 1)
    scale = np.sqrt(np.outer(np.diagonal(right), np.diagonal(right)))
    # as for one device: eps of the products, and that of a deviation from an origin near 2000
    assert (np.abs(alone - right) <= (4e-7 if dtype == "float32" else 1e-12) * scale).all()
    for count in (2, 3):
        shared = among(engines, count)
        assert there(shared, X).tobytes() == alone.tobytes()
        assert (shared.used is shared) == (columns >= LEAST and not engines[0]._packed)


@pytest.mark.parametrize("ddof", [0, 1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_inf_and_constants_are_data_as_they_are_to_one_device(
    engines: list[OpenCLEngine], dtype: str, ddof: int
) -> None:
    X, shared = hostile(61, dtype), among(engines, 3)
    alone, found = there(engines[0], X, ddof=ddof), there(shared, X, ddof=ddof)
    assert found.tobytes() == alone.tobytes()
    lost = ~np.isfinite(X).all(axis=0)
    assert np.isnan(found[lost]).all()
    assert not np.isnan(found[np.ix_(~lost, ~lost)]).any()
    assert not found[5, ~lost].any()
    assert (shared.used is shared) == (not engines[0]._packed)


@pytest.mark.parametrize("scale", [1e-170, 1e200])
def test_extreme_columns_are_left_to_the_first_device_and_the_host(
    engines: list[OpenCLEngine], scale: float
) -> None:
    X, shared = prices(61, 97, "float64") - 2000, among(engines, 2)
    X[:, 40] *= scale
    with np.errstate(over="ignore"):
        assert there(shared, X).tobytes() == there(engines[0], X).tobytes()
    assert shared.used is engines[0]


@pytest.mark.parametrize(("rows", "ddof"), [(1, 1), (2, 2), (2, 5)])
def test_too_few_rows_have_no_covariance(engines: list[OpenCLEngine], rows: int, ddof: int) -> None:
    assert np.isnan(there(among(engines), prices(rows, 97), ddof=ddof)).all()


@pytest.mark.parametrize("shape", [(0, 40), (7, 0), (0, 0)])
def test_a_matrix_of_nothing_has_the_answer_of_one_device(
    engines: list[OpenCLEngine], shape: tuple[int, int]
) -> None:
    shared, X = among(engines), np.zeros(shape)
    assert shared.download(shared.gram(shared.upload(X))).shape == (shape[1], shape[1])
    assert there(shared, X).tobytes() == there(engines[0], X).tobytes()


@pytest.mark.parametrize("family", ["dmma", "split_wgmma", "split_mma"])
def test_kernels_for_tensor_cores_have_the_bits_of_one_device(
    open_tiled: Callable[[], OpenCLEngine], family: str
) -> None:
    """In plain OpenCL C: their tiles are cut into slices or pieces, by which bits go."""
    opened = [open_tiled() for _ in range(3)]
    dtype = "float64" if family == "dmma" else "float32"
    for engine in opened:
        if family == "dmma":
            engine._use("float64", tensor_core_form(0))
        else:
            engine.use_halves(0, family)
    with SeveralEngine(dict(enumerate(opened)), least=LEAST) as shared:
        for X in (prices(700, 333, dtype), hostile(150, dtype)):
            assert there(shared, X).tobytes() == there(opened[0], X).tobytes()
            assert shared.used is shared
            held = shared.upload(X)
            assert shared.download(shared.gram(held)).tobytes() == opened[0].gram(X).tobytes()


def test_products_of_another_precision_are_left_to_the_first_device(
    open_tiled: Callable[[], OpenCLEngine],
) -> None:
    opened = [open_tiled() for _ in range(2)]
    for engine in opened:
        engine.use_precision("split", form_of("split_mma", 0))
    with SeveralEngine(dict(enumerate(opened)), least=LEAST) as shared:
        X = normal(40, 97, "float32")
        answer = shared.gram(shared.upload(X))
        assert len(answer.parts) == 1
        assert shared.used is opened[0]
        assert shared.download(answer).tobytes() == opened[0].gram(X).tobytes()


# matrices and answers


def test_an_upload_is_on_every_device_and_is_that_of_the_first_to_all_else(
    engines: list[OpenCLEngine],
) -> None:
    X, shared = normal(30, 40), among(engines, 3)
    held = shared.upload(X)
    assert isinstance(held, SharedMatrix)
    assert [copy.device for copy in held.copies] == [engine.kernels_device for engine in engines]
    for engine, copy in zip(engines, held.copies, strict=True):
        assert np.array_equal(engine.download(copy), X)
        assert np.array_equal(engine.download(copy.transposed), X.T)
    assert np.array_equal(shared.download(held), X)  # type: ignore[arg-type]
    product: Any = shared.multiply(held.transposed, X)
    assert isinstance(product, DeviceMatrix)
    assert shared.used is engines[0]
    assert_product(shared.download(product), X.T, X)
    both = shared.download(shared.gram(held, held))
    assert_product(both, X.T, X)
    out = np.empty((40, 40))
    assert shared.multiply(held.transposed, held, out=out) is out
    assert out.tobytes() == both.tobytes()
    turned = shared.download(shared.gram(held.transposed))
    assert_product(turned, X, X.T)
    assert np.allclose(shared.moments(held).covariance(), np.cov(X, rowvar=False))  # type: ignore[arg-type]
    assert repr(held) == "SharedMatrix(30x40 float64 on 3 devices)"


def test_an_answer_may_be_a_factor_and_is_brought_to_the_first_device_then(
    engines: list[OpenCLEngine],
) -> None:
    X, shared = normal(30, 97), among(engines, 3)
    answer = shared.gram(shared.upload(X))
    C = engines[0].gram(X)
    assert_product(shared.download(shared.multiply(X, answer)), X, C)
    assert_product(shared.download(shared.gram(answer)), C.T, C)
    assert_product(shared.download(shared.gram(X.T, answer)), X, C)
    assert shared.moments(answer).n == 97


def test_answers_are_downloaded_into_an_array_that_is_given(engines: list[OpenCLEngine]) -> None:
    X, shared = normal(37, 150, "float32"), among(engines, 3)
    held = shared.upload(X)
    answer = shared.gram(held)
    for out in (np.full((150, 150), np.nan, np.float32), shared.empty_pinned((150, 150), "float32")):
        assert shared.download(answer, out) is out
        assert out.tobytes() == engines[0].gram(X).tobytes()
        out.fill(np.nan)
        assert shared.gram(held, out=out) is out
        assert out.tobytes() == engines[0].gram(X).tobytes()
    for wrong in (np.empty((150, 149), np.float32), np.empty((150, 150)), np.empty((150, 150), "f4", "F")):
        with pytest.raises(ShapeError, match="out is"):
            shared.download(answer, wrong)


def test_the_memory_of_an_answer_may_be_used_again(engines: list[OpenCLEngine]) -> None:
    X, Y, shared = normal(37, 150), normal(38, 150), among(engines, 3)
    first = shared.gram(shared.upload(X))
    blocks = [engine.kernels_device._pool.active_blocks for engine in engines]
    second = shared.gram(shared.upload(Y), out=first)
    assert [part.matrix for part in second.parts] == [part.matrix for part in first.parts]
    assert [engine.kernels_device._pool.active_blocks for engine in engines] == blocks
    assert shared.download(second).tobytes() == engines[0].gram(Y).tobytes()
    if not engines[0]._packed:
        third = shared.covariance_on_device(shared.upload(Y), out=second)
        assert [part.matrix for part in third.parts] == [part.matrix for part in first.parts]
        assert shared.download(third).tobytes() == there(engines[0], Y).tobytes()
    with pytest.raises(ShapeError, match="SharedAnswer"):
        shared.gram(shared.upload(normal(37, 149)), out=first)
    last = SeveralEngine({2: engines[2]}, least=LEAST)
    with pytest.raises(InputError, match="other devices"):
        last.gram(last.upload(X), out=first)


def test_what_is_of_another_engine_is_refused(engines: list[OpenCLEngine]) -> None:
    two, three, X = among(engines, 2), among(engines, 3), normal(37, 97)
    for method in (two.gram, two.covariance_on_device):
        with pytest.raises(InputError, match="another engine"):
            method(three.upload(X))
    last = SeveralEngine({2: engines[2]}, least=LEAST)
    with pytest.raises(InputError, match="another engine"):
        last.download(two.gram(two.upload(X)))


def test_memory_goes_with_a_matrix_and_with_an_answer_and_no_thread_is_left(
    engines: list[OpenCLEngine],
) -> None:
    before, shared = threading.active_count(), among(engines, 3)
    held = shared.upload(normal(50, WIDE))
    answer = shared.gram(held)
    shared.download(answer)
    assert [engine.kernels_device._pool.active_blocks for engine in engines] == [2, 2, 2]
    del held, answer
    assert [engine.kernels_device._pool.active_blocks for engine in engines] == [0, 0, 0]
    assert threading.active_count() == before


def test_closing_releases_what_is_kept(open_tiled: Callable[[], OpenCLEngine]) -> None:
    opened = [open_tiled(), open_tiled()]
    with SeveralEngine(dict(enumerate(opened)), least=LEAST) as shared:
        there(shared, prices(50, 150))
    for engine in opened:
        assert not engine.kernels_device._slots
        assert engine.kernels_device._pool.held_blocks == 0


# failures


@pytest.mark.parametrize("what", ["allocate", "run"])
def test_a_device_that_fails_is_named_in_one_sentence_and_nothing_is_left(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    X, shared, before = normal(50, WIDE), among(engines, 3), threading.active_count()

    def failing(*_: object, **__: object) -> Any:
        raise DeviceError("gram on Voodoo failed: lost.")

    held = shared.upload(X)
    with monkeypatch.context() as patched:
        patched.setattr(engines[1].kernels_device, what, failing)
        with pytest.raises(DeviceError) as raised:
            shared.gram(held)
    assert str(raised.value) == "device 1 of those that share a matrix: gram on Voodoo failed: lost."
    del raised, held
    assert [engine.kernels_device._pool.active_blocks for engine in engines] == [0, 0, 0]
    assert threading.active_count() == before
    assert shared.download(shared.gram(shared.upload(X))).tobytes() == engines[0].gram(X).tobytes()


def test_a_device_without_memory_is_named_and_one_short_for_a_moment_is_not(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, shared, calls = normal(50, 150), among(engines, 2), []
    held, device = shared.upload(X), engines[1].kernels_device
    allocate = device.allocate

    def scarce(size: int) -> Any:
        calls.append(size)
        if len(calls) in short:
            raise MemoryError("a buffer of 9 bytes")
        return allocate(size)

    with monkeypatch.context() as patched:
        patched.setattr(device, "allocate", scarce)
        short = {1}
        assert shared.download(shared.gram(held)).tobytes() == engines[0].gram(X).tobytes()
        short = set(range(99))
        with pytest.raises(DeviceError, match=r"^device 1 .*too little memory .*9 bytes.*--engine numpy\.$"):
            shared.gram(held)
        with pytest.raises(DeviceError, match=r"^device 1 .*too little memory"):
            shared.upload(X)


# stripes


@pytest.mark.parametrize("units", [2, 132])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize(
    ("columns", "block"), [(1, (32, 32)), (333, (32, 32)), (8192, (128, 128)), (20_000, (128, 192))]
)
def test_stripes_are_all_rows_and_of_as_many_rounds(
    columns: int, block: tuple[int, int], count: int, units: int
) -> None:
    found = equal_stripes(columns, block[0], block, count, units)
    stripes = sorted(found, key=lambda stripe: stripe.start)
    assert stripes[0].start == 0
    assert stripes[-1].stop == columns
    assert all(one.stop == other.start for one, other in pairwise(stripes))
    assert all(stripe.start % block[0] == 0 and stripe.start < stripe.stop for stripe in stripes)
    assert len(stripes) <= count
    blocks = [len(upper_triangle(columns, block, stripe)) for stripe in found]
    assert blocks == sorted(blocks, reverse=True)
    fair, row = sum(blocks) / count, -(-columns // block[1])
    assert max(blocks) <= max(fair, units * math.ceil(fair / units)) + row
    if columns == 20_000 and units == 132 and count <= 3:
        # an H200
        assert max(math.ceil(some / units) for some in blocks) == math.ceil(fair / units)
