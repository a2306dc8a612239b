"""Products in the form of NVIDIA's tensor cores, and when they are taken: all but their instructions.

With capability 0 the kernels say the same in plain OpenCL C, so that places, pieces, parts and edges are
tested on any device. The instructions are tested by tests/gpu.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from mtbridge.compute import devices, forms, nvidia, pieces, runtimes, slices
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.quarters import PANEL, product_quarters
from mtbridge.sources import program_text

FORM = nvidia.tensor_core_form(0)
SHAPES = [
    (1, 1, 1), (2, 3, 1), (37, 11, 5), (127, 17, 129), (128, 16, 128), (129, 15, 127), (131, 300, 257),
    (1, 700, 300),
]  # fmt: skip
GUARD = 64
"""Elements before and after a matrix that nothing may write to."""


def right(found: Any, left: Any, other: Any) -> bool:
    exact = left.astype(np.longdouble) @ other.astype(np.longdouble)
    bound = left.shape[1] * np.finfo(np.float64).eps * (np.abs(left) @ np.abs(other))
    return bool((np.abs(found - exact) <= bound).all())


@pytest.fixture
def engine(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenCLEngine]:
    """An engine whose float64 products have the form of tensor cores, on a device of five units."""
    with open_opencl("cpu") as found:
        found._forms["float64"] = FORM
        monkeypatch.setattr(found._device, "units", 5)
        found.centred_from = 0
        yield found


@pytest.mark.parametrize(("rows", "inner", "columns"), SHAPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_are_right_at_every_edge_and_in_every_order(
    engine: OpenCLEngine, rows: int, inner: int, columns: int, order: Any
) -> None:
    random = np.random.default_rng([rows, inner, columns])
    A = np.asarray(random.standard_normal((rows, inner)), order=order)
    B = np.asarray(random.standard_normal((inner, columns)), order=order)
    C, G = engine.multiply(A, B), engine.gram(B)
    assert right(C, A, B)
    assert right(G, B.T, B)
    assert np.array_equal(G, G.T)
    first: Any = engine.upload(A)
    second: Any = engine.upload(B)
    answers: list[Any] = [engine.multiply(first, second), engine.gram(second)]
    assert [engine.download(answer).tobytes() for answer in answers] == [C.tobytes(), G.tobytes()]


def test_nan_and_infinity_stay_in_their_rows_and_columns(engine: OpenCLEngine) -> None:
    X = np.ones((40, 150))
    X[39, 149] = X[3, 5] = np.nan
    X[7, 130] = np.inf
    G = engine.gram(X)
    extreme = np.isin(np.arange(150), (5, 130, 149))
    assert (G[np.ix_(~extreme, ~extreme)] == 40).all()
    assert np.isnan(G[[5, 149]]).all()
    assert (G[130, ~extreme] == np.inf).all()
    C = engine.multiply(X.T, np.ones((40, 3)))
    assert (C[~extreme] == 40).all()
    assert np.isnan(C[[5, 149]]).all()
    assert (C[130] == np.inf).all()


@pytest.fixture
def seen(engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[int, ...]]]:
    """The kernels that the engine runs from now on, and their groups."""
    found: list[tuple[str, tuple[int, ...]]] = []
    run = engine._device.run

    def noted(kernel: Any, groups: tuple[int, ...], *rest: Any, **named: Any) -> Any:
        found.append((kernel.name, groups))
        return run(kernel, groups, *rest, **named)

    monkeypatch.setattr(engine._device, "run", noted)
    return found


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_product_is_one_launch_where_rows_lie_on_boundaries(
    engine: OpenCLEngine, seen: list[tuple[str, tuple[int, ...]]], order: Any
) -> None:
    random = np.random.default_rng(9)
    A = np.asarray(random.standard_normal((38, 200)), order=order)
    B = np.asarray(random.standard_normal((200, 130)), order=order)
    assert right(engine.multiply(A, B), A, B)
    assert right(engine.gram(B), B.T, B)
    assert [name for name, _ in seen] == ["multiply", "gram"]


@pytest.mark.parametrize(("shape", "order"), [((40, 131), "C"), ((41, 130), "F")])
def test_rows_that_lie_beside_boundaries_are_packed(
    engine: OpenCLEngine, seen: list[tuple[str, tuple[int, ...]]], shape: tuple[int, int], order: Any
) -> None:
    X = np.asarray(np.random.default_rng(9).standard_normal(shape), order=order)
    assert right(engine.gram(X), X.T, X)
    assert [name for name, _ in seen] == ["pack", "gram"]


def test_a_tall_matrix_is_packed_in_slabs_and_each_is_added_to_the_last(
    engine: OpenCLEngine, seen: list[tuple[str, tuple[int, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "UNIT_BYTES", 1)
    monkeypatch.setattr(slices, "DEEPER", 0)
    random = np.random.default_rng(1)
    X = random.standard_normal((1100, 301))
    G = engine.gram(X)
    assert right(G, X.T, X)
    assert np.array_equal(G, G.T)
    assert [name for name, _ in seen] == ["pack", "gram"] * 3
    # one operand is packed, the other read where it lies, from the same inner indices on
    del seen[:]
    B = random.standard_normal((1100, 2))
    assert right(engine.multiply(X.T, B), X.T, B)
    assert [name for name, _ in seen] == ["pack", "multiply"] * 3


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("shape", "slabs"), [((300, 70), 1), ((1100, 131), 3)])
def test_covariances_are_made_by_the_kernel_of_the_products(
    engine: OpenCLEngine,
    seen: list[tuple[str, tuple[int, ...]]],
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, int],
    slabs: int,
    order: Any,
) -> None:
    monkeypatch.setattr(slices, "UNIT_BYTES", 1 << 30 if slabs == 1 else 1)
    monkeypatch.setattr(slices, "DEEPER", 0)
    random = np.random.default_rng(2)
    X = np.asarray(
        1000 + random.standard_normal(shape) * np.exp(random.standard_normal(shape[1])), order=order
    )
    resident: Any = engine.upload(X)
    answer: Any = engine._covariance_there(resident, 1)
    found = engine.download(answer)
    exact = np.cov(X, rowvar=False)
    deviations = np.sqrt(np.diagonal(exact))
    # the norms of the columns of deviations, as of any product
    bound = shape[0] * np.finfo(np.float64).eps * np.outer(deviations, deviations)
    assert (np.abs(found - exact) <= bound).all()
    assert np.array_equal(found, found.T)
    assert [name for name, _ in seen].count("gram") == slabs
    assert "covariance" not in [name for name, _ in seen]


@pytest.mark.parametrize("order", ["C", "F"])
def test_moments_are_centred_into_panels(engine: OpenCLEngine, order: Any) -> None:
    X = np.asarray(1000 + np.random.default_rng(2).standard_normal((333, 140)), order=order)
    found = engine.moments(X)
    assert np.abs(found.covariance() - np.cov(X, rowvar=False)).max() < 1e-12
    assert np.array_equal(found.comoment, found.comoment.T)


def test_pairs_with_missing_values_read_panels(engine: OpenCLEngine) -> None:
    random = np.random.default_rng(3)
    X = 100 + random.standard_normal((300, 131))
    X[random.random(X.shape) < 0.05] = np.nan
    # a spike that some partners do not see: such pairs are done again, from panels of another form
    X[100, 4], X[100, 6::7] = 1e9, np.nan
    found = engine.pair_moments(X).correlation()
    for i, j in [(0, 1), (4, 6), (4, 13), (4, 5), (129, 130), (7, 128)]:
        rows = ~(np.isnan(X[:, i]) | np.isnan(X[:, j]))
        assert abs(found[i, j] - np.corrcoef(X[rows, i], X[rows, j])[0, 1]) < 1e-9


def test_small_buffers_give_the_same_answer(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    A, B = random.standard_normal((300, 257)), random.standard_normal((257, 270))
    with open_opencl("cpu", largest_buffer=300_000) as engine:
        engine._forms["float64"] = FORM
        monkeypatch.setattr(engine._device, "units", 3)
        assert right(engine.multiply(A, B), A, B)
        assert right(engine.gram(B), B.T, B)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 30), (64, 64), (37, 13), (13, 200)])
def test_neighbours_are_the_same_blocks_in_another_order(rows: int, columns: int) -> None:
    grid = forms.whole_grid(rows, columns, (1, 1))
    found = forms.nearby(grid)
    assert found.flags.c_contiguous
    assert found.dtype == np.int32
    assert np.array_equal(np.unique(found, axis=0), np.unique(grid, axis=0))


def test_the_blocks_that_are_done_at_a_time_read_few_panels() -> None:
    found = forms.nearby(forms.whole_grid(64, 64, (1, 1)))
    for start in range(0, len(found) - 132, 100):
        down, across = found[start : start + 132].T
        # whole rows of blocks would read 2 or 3 panels from the left and all 64 from the right
        assert len(np.unique(down)) + len(np.unique(across)) <= 4 * forms.NEAR


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize("units", [1, 3, 40])
@pytest.mark.parametrize("odd", [0, 1])
def test_kernels_write_nothing_outside_their_matrix_and_parts(
    engine: OpenCLEngine, units: int, odd: int
) -> None:
    """The matrix lies between guards and has a stride of its own, whose rest is a guard too."""
    import pyopencl as cl

    context, queue = engine._device._context, engine._device._queue
    text = program_text((*FORM.headers, "multiply/dmma.cl"), {**FORM.defines, "REAL_BITS": 64})
    kernel = cl.Kernel(cl.Program(context, text).build(), "multiply")
    rows, inner, columns = 129, 530, 200
    stride = columns + 4 + odd
    random = np.random.default_rng(5)
    A, B = random.standard_normal((rows, inner)), random.standard_normal((inner, columns))
    table, count = pieces.pieces_of(product_quarters(rows, columns), -(-inner // 16), units=units, most=1000)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    guarded = {
        "C": np.full(2 * GUARD + rows * stride, -777.0),
        "parts": np.full(2 * GUARD + count * 128 * 128, -777.0),
        "marks": np.zeros(2 * 2 * GUARD + count, np.int32),
    }
    whole = {name: cl.Buffer(context, flags, hostbuf=array) for name, array in guarded.items()}
    inside = {name: one.get_sub_region(8 * GUARD, one.size - 16 * GUARD or 8) for name, one in whole.items()}
    # both k-major: A as its transpose
    left, right_, listed = (
        cl.Buffer(context, flags, hostbuf=array) for array in (np.ascontiguousarray(A.T), B, table)
    )
    steps = [np.int64(step) for step in (0, PANEL, rows, 0, PANEL, columns)]
    numbers = [np.int32(number) for number in (rows, columns, inner, stride)]
    shared = (listed, inside["parts"], inside["marks"], np.int32(0))
    kernel.set_args(left, right_, inside["C"], *numbers, *steps, *shared)
    cl.enqueue_nd_range_kernel(queue, kernel, (len(table) * FORM.group,), (FORM.group,))
    for name, array in guarded.items():
        cl.enqueue_copy(queue, array, whole[name])
    for name in ("C", "parts"):
        assert (guarded[name][:GUARD] == -777).all()
        assert (guarded[name][-GUARD:] == -777).all()
    assert (guarded["marks"] == 0).all(), "as they were before"
    found = guarded["C"][GUARD:-GUARD].reshape(rows, stride)
    assert (found[:, columns:] == -777).all()
    assert right(found[:, :columns], A, B)


def test_the_check_finds_a_kernel_that_reads_other_columns(
    engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvidia, "SHAPES", ((129, 37, 130),))
    wrong = replace(FORM, right=32)
    assert nvidia.fault_of(engine._device, FORM) == ""
    assert nvidia.fault_of(engine._device, wrong) == "a product of (129, 37) by (37, 130) is wrong"


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e-3])
def test_the_check_sees_one_wrong_element(value: float) -> None:
    random = np.random.default_rng(6)
    A, B = random.standard_normal((9, 30)), random.standard_normal((30, 7))
    A[2, 3] = np.inf
    # some kernels of OpenBLAS raise the flag of an invalid operation on the way to an infinity
    with np.errstate(invalid="ignore"):
        C = A @ B
    right = C[8, 6]
    assert nvidia.right_answer(C, A, B)
    C[8, 6] += value
    assert not nvidia.right_answer(C, A, B)
    C[8, 6] = right
    C[2, 0] = -C[2, 0]
    assert not nvidia.right_answer(C, A, B)


@pytest.fixture
def said_to_be_nvidia(
    verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenCLEngine]:
    """An engine on the processor that takes it for a GPU with tensor cores; the verdicts are its own."""
    for module in (nvidia, devices):
        monkeypatch.setattr(module, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(nvidia, "writable_cache", lambda: tmp_path)
    with open_opencl("cpu") as found:
        monkeypatch.setattr(found._device, "capability", 90)
        found._untried = {"float64"}
        yield found


def test_a_device_that_refuses_the_instructions_is_found_in_a_child_and_computes_on(
    said_to_be_nvidia: OpenCLEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = said_to_be_nvidia
    X = np.random.default_rng(7).standard_normal((50, 33))
    assert right(engine.gram(X), X.T, X)
    assert engine.form_in_use("float64") == engine.form("float64")
    said = capsys.readouterr().err
    assert said.count("mtbridge: ") == 1
    assert "the portable kernels are used" in said
    (fault,) = msgspec.json.decode((tmp_path / devices.TENSOR_CORES).read_bytes()).values()
    assert fault in said
    # the verdict is kept: the next engine neither asks nor says anything
    engine._untried = {"float64"}
    assert right(engine.multiply(X, X.T), X, X.T)
    assert capsys.readouterr().err == ""


def test_kernels_that_cannot_be_built_after_a_good_verdict_are_replaced(
    said_to_be_nvidia: OpenCLEngine,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = said_to_be_nvidia
    good = {nvidia.mark_of(engine._key, 90, "dmma"): ""}
    (tmp_path / devices.TENSOR_CORES).write_bytes(msgspec.json.encode(good))
    monkeypatch.delattr(runtimes, "child")
    X = np.random.default_rng(8).standard_normal((50, 33))
    assert right(engine.gram(X), X.T, X)
    assert engine.form_in_use("float64") == engine.form("float64")
    assert capsys.readouterr().err.count("mtbridge: the tensor cores of") == 1


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"a": 1}', b"\xff"])
def test_a_damaged_file_of_verdicts_is_made_again(
    said_to_be_nvidia: OpenCLEngine, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / devices.TENSOR_CORES).write_bytes(content)
    assert said_to_be_nvidia.form_in_use("float64").file != "dmma"
    assert len(msgspec.json.decode((tmp_path / devices.TENSOR_CORES).read_bytes())) == 1


def test_settings_that_are_asked_for_are_not_replaced_by_tensor_cores(
    said_to_be_nvidia: OpenCLEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = said_to_be_nvidia
    engine.use("float64", engine.form("float64").defines)
    assert engine.form_in_use("float64") == engine.form("float64")
    assert engine.form_in_use("float32") == engine.form("float32")
    assert capsys.readouterr().err == ""


def test_only_nvidias_own_driver_is_asked_for_a_capability(verdict: Verdict) -> None:
    class Handle:
        extensions = "cl_khr_fp64 cl_nv_device_attribute_query"
        compute_capability_major_nv, compute_capability_minor_nv = 9, 0

    class Silent:
        extensions = "cl_khr_fp64"

    assert nvidia.capability("NVIDIA CUDA", Handle()) == 90
    assert nvidia.capability("Portable Computing Language", Handle()) == 0
    assert nvidia.capability("NVIDIA CUDA", Silent()) == 0
