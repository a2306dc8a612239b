"""The kernels themselves: what their text promises, and that they stay inside their matrices."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtbridge.compute import forms
from mtbridge.compute.devices import Verdict
from mtbridge.matrix import DTYPES
from mtbridge.sources import data_folder, program_text

FOLDER = data_folder("kernels")
TEXTS = sorted(path for path in FOLDER.rglob("*.cl*") if path.is_file())
KERNELS = sorted(FOLDER.rglob("*.cl"))
GUARD = 64
"""Elements before and after a matrix that nothing may write to."""

# Built-ins that take or return vectors, which PoCL 3.0 of PyPI computes wrongly for 512 bits, or aborts on;
# min and max of whole numbers, and the calls that ask for an index, are fine; so are roots, which kernels
# take of numbers and of short vectors only.
FORBIDDEN = re.compile(
    r"\b(v(?:load|store)a?(?:_half)?\d+|fma|mad|convert_\w+|as_(?:float|double|u?int|u?long|u?short|u?char)\d+"
    r"|dot|cross|fmin|fmax|fabs|native_\w+|half_\w+|select|shuffle2?|clamp|mix|step|smoothstep"
    r"|any|all|isnan|isinf|pow|exp|log|async_work_group_copy)\s*\("
)


def named(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix()


def code(path: Path) -> str:
    """The text without its comments."""
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"//[^\n]*", " ", text)


def headers(path: Path) -> tuple[str, ...]:
    """The headers that a kernel needs before itself: that of its own form, and those that its head names."""
    named_there = re.findall(r"\b(\w+\.clh)\b", path.read_text(encoding="utf-8").partition("*/")[0])
    names = dict.fromkeys((f"{path.stem}.clh", *named_there))
    found = (folder / name for name in names for folder in (FOLDER, path.parent) if (folder / name).exists())
    return tuple(named(header) for header in found if header.name != "common.clh")


@pytest.fixture(scope="module")
def context(verdict: Verdict) -> Any:
    import pyopencl as cl

    from mtbridge.compute.opencl import Device, enumerate_devices

    found = next(found for found in enumerate_devices() if found.key == verdict.key)
    # Device writes a processor's name into PoCL's record, without which its compiler refuses
    device = Device(found)
    context = cl.Context([found.handle])
    yield context, cl.CommandQueue(context)
    device.close()


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize("defines", [{}, {"REAL_BITS": 64}, {"SUM_BITS": 64}], ids=str)
@pytest.mark.parametrize("path", KERNELS, ids=named)
def test_a_kernel_compiles_with_its_defaults(context: Any, path: Path, defines: dict[str, int]) -> None:
    import pyopencl as cl

    program = cl.Program(context[0], program_text((*headers(path), named(path)), defines)).build()
    assert program.all_kernels()


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("registers", [64, 32, 0])
@pytest.mark.parametrize("name", ["gram", "multiply"])
def test_a_packed_kernel_compiles_with_every_tuned_setting(
    context: Any, name: str, registers: int, dtype: str
) -> None:
    """A machine with registers of another width than ours must not be the first to find out."""
    import pyopencl as cl

    form = forms.packed_form(dtype, registers)
    size = 32 if dtype == "float32" else 64
    defines = {**form.defines, "REAL_BITS": size, "SUM_BITS": size}
    if name == "multiply":
        defines["RIGHT_LOCAL"] = 1
    cl.Program(context[0], program_text((*form.headers, f"{name}/packed.cl"), defines)).build()


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_no_kernel_calls_a_built_in_that_takes_vectors(path: Path) -> None:
    # what is written for graphics cards has numbers where others have vectors
    of_numbers = {"fma"} if path.stem.endswith("_gpu") else set()
    assert not set(FORBIDDEN.findall(code(path))) - of_numbers


def test_the_search_for_built_ins_finds_them() -> None:
    for bad in ("vload16(0, p)", "vstore8 (v, 0, p)", "fma(a, b, c)", "convert_double8(x)", "mad(a,b,c)"):
        assert FORBIDDEN.search(bad)
    assert not FORBIDDEN.search("min(a, b) + get_group_id(0)")


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_a_kernel_starts_with_what_it_computes_and_guards_its_settings(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"/* {path.name} - "), "the head names the file and says what it computes"
    assert len(text.splitlines()) <= 250
    body = code(path)
    for name in re.findall(r"#ifndef (\w+)", body):
        assert re.search(rf"#ifndef {name}\s+#define {name}\b", body), f"{name} has no default"


@pytest.mark.parametrize("path", TEXTS, ids=named)
def test_one_text_serves_float_and_double(path: Path) -> None:
    if path.name == "common.clh":
        return
    assert not re.findall(r"\b(?:float|double)\d*\b", code(path))


def packed(X: np.ndarray[Any, Any], panel: int, multiple: int) -> np.ndarray[Any, Any]:
    """Panels by numpy, from the formula at the head of multiply/pack.cl."""
    inner, strips = X.shape
    depth = -(-inner // multiple) * multiple
    out = np.zeros((-(-strips // panel), depth, panel), X.dtype)
    for p in range(len(out)):
        part = X[:, p * panel : (p + 1) * panel]
        out[p, :inner, : part.shape[1]] = part
    return out


def around(form: forms.Form) -> list[int]:
    """Sizes beside every edge of a form: the panel, the block, one and two."""
    edges = {form.left, form.right, form.rows, form.columns}
    return sorted({1, 2, *(edge + step for edge in edges for step in (-1, 0, 1) if 1 < edge <= 200)})


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize(
    ("dtype", "total", "slices"),
    [
        ("float32", "float32", 0),
        ("float64", "float64", 0),
        ("float32", "float32", 2),
        ("float64", "float64", 2),
        ("float32", "float64", 3),
        ("float64", "float64", 1),
    ],
)
@pytest.mark.parametrize("kind", ["packed 64", "packed 32", "packed 0", "tiled"])
@pytest.mark.parametrize("name", ["gram", "multiply"])
def test_a_kernel_writes_nothing_outside_its_matrix(
    context: Any, name: str, kind: str, dtype: str, total: str, slices: int
) -> None:
    """Its matrix lies between guards and has a stride of its own, whose rest is a guard too.

    Of `slices` slices, each has such a matrix, one after the other; 0 is the kernel that knows none.
    """
    import pyopencl as cl

    form = (
        forms.tiled_form(dtype, 64)
        if kind == "tiled"
        else forms.packed_form(dtype, int(kind.removeprefix("packed ")))
    )
    bits = {key: 8 * np.dtype(of).itemsize for key, of in (("REAL_BITS", dtype), ("SUM_BITS", total))}
    defines = {**form.defines, **bits}
    if slices:
        deep = 8 if total != dtype or kind != "tiled" else 0
        defines |= {"SLICED": 1, "BLOCK_INNER": deep, "STRIP_INNER": deep}
    if name == "multiply" and kind != "tiled":
        defines["RIGHT_LOCAL"] = 1
    ctx, queue = context
    text = program_text((*form.headers, f"{name}/{form.file}.cl"), defines)
    kernel = next(k for k in cl.Program(ctx, text).build().all_kernels() if k.function_name == name)
    random = np.random.default_rng(1)
    read, write = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, cl.mem_flags.READ_WRITE
    inner = 19
    for edge in around(form):
        rows, columns = (edge, edge) if name == "gram" else (edge, max(edge - 1, 1))
        stride = columns + 5
        B = random.standard_normal((inner, columns)).astype(dtype)
        A = B if name == "gram" else random.standard_normal((inner, rows)).astype(dtype)
        right = packed(B, form.right, form.inner)
        depth = right.shape[1]
        block = (form.rows, form.columns)
        if name == "gram":
            grid, lead = forms.upper_triangle(columns, block), (right,)
            sizes = (np.int32(columns), np.int32(depth), np.int32(stride))
        elif kind != "tiled":
            # read where they lie, A column by column and B row by row, by groups of two micro-tiles of rows
            chunk, lead = 2 * form.left, (A, B)
            grid = np.zeros(-(-rows // chunk) * -(-columns // form.right), np.int32)
            lengths = (rows, columns, inner, stride, chunk)
            sizes = (*np.array(lengths, np.int32), *np.array((1, rows, columns, 1), np.int64))
        else:
            grid, lead = forms.whole_grid(rows, columns, block), (packed(A, form.left, form.inner), right)
            sizes = (np.int32(rows), np.int32(columns), np.int32(depth), np.int32(stride))
        results = max(slices, 1)
        whole = np.full(GUARD + results * rows * stride + GUARD, -777, total)
        target = cl.Buffer(ctx, write | cl.mem_flags.COPY_HOST_PTR, hostbuf=whole)
        # a sub-buffer must start on a boundary of the device, so the guard is one
        inside = target.get_sub_region(GUARD * whole.itemsize, results * rows * stride * whole.itemsize)
        operands = [cl.Buffer(ctx, read, hostbuf=panels) for panels in lead]
        blocks = cl.Buffer(ctx, read, hostbuf=grid)
        if len(sizes) > 4:
            strip = cl.LocalMemory(inner * form.right * B.itemsize)
            kernel.set_args(*operands, strip, inside, *sizes)
        else:
            kernel.set_args(*operands, inside, *sizes, blocks)
        groups, local = (len(grid) * form.group, slices), (form.group, 1)
        dimensions = 2 if slices else 1
        cl.enqueue_nd_range_kernel(queue, kernel, groups[:dimensions], local[:dimensions])
        cl.enqueue_copy(queue, whole, target)
        assert (whole[:GUARD] == -777).all(), f"wrote before a matrix of {rows} x {columns}"
        assert (whole[-GUARD:] == -777).all(), f"wrote behind a matrix of {rows} x {columns}"
        C = whole[GUARD:-GUARD].reshape(results, rows, stride)
        assert (C[:, :, columns:] == -777).all(), f"wrote between the rows of {rows} x {columns}"
        exact = A.astype(np.longdouble).T @ B.astype(np.longdouble)
        error = np.abs(C[:, :, :columns].sum(axis=0) - exact)
        bound = inner * np.finfo(dtype).eps * (np.abs(A).astype(float).T @ np.abs(B).astype(float))
        upper = np.triu(np.ones(error.shape, bool)) if name == "gram" and kind == "tiled" else slice(None)
        assert (error <= bound)[upper].all(), f"wrong at {rows} x {columns}"


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize(("inner", "strips"), [(1, 1), (127, 7), (128, 8), (129, 9), (300, 17), (33, 65)])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("before", [0, 45])
def test_pack_writes_its_panels_and_nothing_else(
    context: Any, inner: int, strips: int, turned: bool, squares: bool, before: int
) -> None:
    """Also where the slab to pack begins `before` inner indices into the source, and ends 3 early."""
    import pyopencl as cl

    ctx, queue = context
    panel = 64 if squares else 8
    file = "multiply/pack_squares.cl" if squares else "multiply/pack.cl"
    defines = {"PANEL": panel, **({"SQUARE": 32, "DOWN": 4} if squares else {"INNER_STEP": 128})}
    (kernel,) = cl.Program(ctx, program_text((file,), defines)).build().all_kernels()
    behind = 3 if before else 0
    X = np.random.default_rng(2).standard_normal((before + inner + behind, strips)).astype(np.float32)
    lying = np.ascontiguousarray(X.T if turned else X)
    steps = (1, len(X)) if turned else (strips, 1)
    depth = -(-inner // 4) * 4
    expected = packed(X[before : before + inner], panel, 4)
    whole = np.full(GUARD + expected.size + GUARD, -777, np.float32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    target = cl.Buffer(ctx, flags, hostbuf=whole)
    inside = target.get_sub_region(GUARD * 4, expected.nbytes)
    source = cl.Buffer(ctx, flags, hostbuf=lying)
    sizes = (np.int32(strips), np.int32(inner), np.int32(depth), np.int64(steps[0]), np.int64(steps[1]))
    kernel.set_args(source, inside, *sizes)
    groups, local = (len(expected), -(-depth // 128)), (1, 1)
    if squares:
        groups, local = (len(expected) * panel // 32, -(-depth // 32)), (32, 4)
    sizes_in_items = (groups[0] * local[0], groups[1] * local[1])
    cl.enqueue_nd_range_kernel(queue, kernel, sizes_in_items, local, (0, before))
    cl.enqueue_copy(queue, whole, target)
    assert (whole[:GUARD] == -777).all()
    assert (whole[-GUARD:] == -777).all()
    assert np.array_equal(whole[GUARD:-GUARD].reshape(expected.shape), expected)


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize(("size", "count"), [(1, 1), (1, 7), (63, 2), (64, 3), (65, 5), (300, 8)])
def test_slices_are_added_in_their_order_and_nothing_else_is_written(
    context: Any, size: int, count: int, more: int, dtype: str
) -> None:
    import pyopencl as cl

    ctx, queue = context
    defines = {"REAL_BITS": 8 * np.dtype(dtype).itemsize}
    (kernel,) = cl.Program(ctx, program_text(("multiply/add_slices.cl",), defines)).build().all_kernels()
    slices = np.random.default_rng(4).standard_normal((count, size)).astype(dtype)
    whole = np.full(2 * GUARD + size, -777, dtype)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    target = cl.Buffer(ctx, flags, hostbuf=whole)
    inside = target.get_sub_region(GUARD * whole.itemsize, size * whole.itemsize)
    source = cl.Buffer(ctx, flags, hostbuf=slices)
    kernel.set_args(source, inside, np.int32(size), np.int32(count), np.int32(more))
    cl.enqueue_nd_range_kernel(queue, kernel, (-(-size // 64) * 64,), (64,))
    cl.enqueue_copy(queue, whole, target)
    expected = slices[0].copy()
    for part in slices[1:]:
        expected += part
    assert np.array_equal(whole[GUARD:-GUARD], expected - whole.dtype.type(777) if more else expected)
    assert (whole[:GUARD] == -777).all()
    assert (whole[-GUARD:] == -777).all()


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize("columns", [1, 2, 31, 32, 33, 65])
def test_mirror_copies_the_upper_triangle_and_touches_nothing_else(context: Any, columns: int) -> None:
    import pyopencl as cl

    ctx, queue = context
    (kernel,) = cl.Program(ctx, program_text(("gram/mirror.cl",), {})).build().all_kernels()
    stride = columns + 3
    whole = np.full(2 * GUARD + columns * stride, -777, np.float32)
    C = whole[GUARD:-GUARD].reshape(columns, stride)
    C[:, :columns] = np.random.default_rng(3).standard_normal((columns, columns))
    before = C.copy()
    target = cl.Buffer(ctx, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=whole)
    inside = target.get_sub_region(GUARD * 4, columns * stride * 4)
    grid = forms.upper_triangle(columns, (32, 32))
    blocks = cl.Buffer(ctx, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=grid)
    kernel.set_args(inside, np.int32(columns), np.int32(stride), blocks)
    cl.enqueue_nd_range_kernel(queue, kernel, (len(grid) * 32, 8), (32, 8))
    cl.enqueue_copy(queue, whole, target)
    upper = np.triu(before[:, :columns])
    assert np.array_equal(C[:, :columns], upper + np.triu(upper, 1).T)
    assert (C[:, columns:] == -777).all()
    assert (whole[:GUARD] == -777).all()
    assert (whole[-GUARD:] == -777).all()
