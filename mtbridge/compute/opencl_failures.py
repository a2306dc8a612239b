"""What an error of the OpenCL runtime means: too little memory, for which smaller blocks help, or a failure.

Runtimes say MEM_OBJECT_ALLOCATION_FAILURE where a buffer finds no room. OUT_OF_RESOURCES is a launch that
wants more than the device has, such as local memory. But NVIDIA's driver says it of copies, too, after a
kernel that read or wrote where nothing is, and INVALID_COMMAND_QUEUE when it is waited for (driver 580): then
nothing works any more in this process, in a new context either.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyopencl as cl

from mtbridge.errors import DeviceError

OF_FAILED_KERNELS = {cl.status_code.OUT_OF_RESOURCES, cl.status_code.INVALID_COMMAND_QUEUE}
OUT_OF_MEMORY = {
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_RESOURCES,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.INVALID_BUFFER_SIZE,
}


@contextmanager
def failures_named(what: str, queue: cl.CommandQueue | None = None) -> Iterator[None]:
    """Turn an error of the runtime into a DeviceError; no memory becomes MemoryError.

    `queue` is of the context that is worked on: whether that still works tells the two meanings apart.
    """
    try:
        yield
    except cl.MemoryError as error:
        raise MemoryError(f"{what}: {error}") from error
    except cl.Error as error:
        first = str(error).strip().splitlines()[0]
        if error.code in OF_FAILED_KERNELS and not works(queue):
            raise DeviceError(
                f"{what} failed: a kernel before it has failed, and the device does nothing more for this "
                f"program ({first}); start it again, or try --engine numpy."
            ) from error
        if error.code in OUT_OF_MEMORY:
            raise MemoryError(f"{what}: {error}") from error
        raise DeviceError(f"{what} failed: {first}; try --engine numpy.") from error


def works(queue: cl.CommandQueue | None) -> bool:
    """Return whether what is queued comes to its end; taken for granted without a queue."""
    if queue is not None:
        try:
            queue.finish()
        except cl.Error:
            return False
    return True
