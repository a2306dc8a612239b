"""A kernel by itself: run on arrays, with marked memory around what it may write."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.sources import program_text

GUARD = 64


def launched(
    engine: OpenCLEngine,
    files: tuple[str, ...],
    defines: dict[str, int],
    groups: tuple[int, ...],
    local: tuple[int, ...],
    arguments: list[Any],
    targets: tuple[int, ...],
) -> list[np.ndarray[Any, Any]]:
    """Return what the kernel leaves in the arguments numbered `targets`, arrays that it starts from."""
    import pyopencl as cl

    context, queue = engine._device._context, engine._device._queue
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    (kernel,) = cl.Program(context, program_text(files, defines)).build().all_kernels()
    given, wholes = list(arguments), {}
    for target in targets:
        before = arguments[target]
        around = np.full(2 * GUARD * before.itemsize + before.nbytes, 77, np.uint8)
        around[GUARD * before.itemsize : -GUARD * before.itemsize] = before.view(np.uint8).ravel()
        whole = cl.Buffer(context, flags, hostbuf=around)
        given[target] = whole.get_sub_region(GUARD * before.itemsize, before.nbytes)
        wholes[target] = whole, around
    given = [
        cl.Buffer(context, flags, hostbuf=np.ascontiguousarray(one)) if isinstance(one, np.ndarray) else one
        for one in given
    ]
    kernel.set_args(*given)
    cl.enqueue_nd_range_kernel(queue, kernel, tuple(g * n for g, n in zip(groups, local, strict=True)), local)
    found = []
    for target in targets:
        (whole, around), before = wholes[target], arguments[target]
        cl.enqueue_copy(queue, around, whole)
        edge = GUARD * before.itemsize
        assert (around[:edge] == 77).all()
        assert (around[-edge:] == 77).all()
        found.append(around[edge:-edge].view(before.dtype).reshape(before.shape))
    return found
