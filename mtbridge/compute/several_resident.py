"""What several devices do with a matrix that lies on each of them: the answer stays there, a stripe on each.

The stripes are dealt out beforehand, with as many blocks for each device: cards of one kind are equally fast,
and nothing is brought in between. One thread queues the kernels of all devices, those that centre and pack
first, so that no device waits for what the host does for another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.launches import contiguous
from mtbridge.compute.pages import Pages
from mtbridge.compute.several_devices import Member, host_threads
from mtbridge.compute.several_stripes import equal_stripes
from mtbridge.compute.several_work import Triangle, brought, triangle_unit
from mtbridge.compute.shared_matrix import Part, SharedAnswer, SharedMatrix
from mtbridge.errors import DeviceError, InputError, ShapeError
from mtbridge.matrix import Matrix
from mtbridge.shared_work import Parts, share

Found = TypeVar("Found")


def uploaded(members: Sequence[Member], X: Matrix) -> SharedMatrix:
    """Return copies of `X`, (rows, columns), on all devices, sent to all of them at the same time."""
    held = contiguous(X)
    # what an engine of a device uploads is a DeviceMatrix
    return SharedMatrix.of(at_once(members, lambda member: member.engine.upload(held)))


def shared_answer(
    members: Sequence[Member], works: Sequence[Triangle], out: SharedAnswer | None
) -> SharedAnswer | None:
    """Queue X'X, or covariances, on all devices; return the answer, which is there when they are done.

    Parameters
    ----------
    works : what each of `members` does, of the same matrix on its device
    out : an answer of the same shape and dtype by the same devices, whose memory is used again

    Returns
    -------
    SharedAnswer or None
        None where the host had to centre the columns.

    Raises
    ------
    DeviceError
        If a device fails, or has too little memory.
    ShapeError
        If `out` does not fit.
    """
    form, columns = works[0].form, works[0].X.shape[1]
    block, units = (form.rows, form.columns), works[0].engine.kernels_device.units
    stripes = equal_stripes(columns, triangle_unit(form), block, len(members), units)
    # a matrix of few columns has fewer stripes than there are devices
    shares = list(zip(members, works, stripes, strict=False))
    if out is not None:
        check_answer(out, columns, works[0].kind, [member.engine.kernels_device for member, *_ in shares])
    try:
        return _queued(shares, out)
    except DeviceError as error:
        if not isinstance(error.__cause__, MemoryError):
            raise
    # what is kept of other matrices may be the very memory that is missing
    for member in members:
        member.release()
    return _queued(shares, out)


def _queued(
    shares: Sequence[tuple[Member, Triangle, slice]], out: SharedAnswer | None
) -> SharedAnswer | None:
    from mtbridge.compute.opencl_conveyor import mark

    parts: list[Part] = []
    member = shares[0][0]
    try:
        for member, work, _ in shares:
            if not work.pack():
                return None
            work.packed = mark(member.engine.kernels_device)
        for at, (member, work, stripe) in enumerate(shares):
            matrix = room_for(work) if out is None else out.parts[at].matrix
            work.compute(stripe, matrix.buffer)
            member.engine.kernels_device.queue.flush()
            parts.append(Part(stripe, matrix))
        for member, *_ in shares:
            # what a processor measures of columns lies in arrays that nobody keeps
            if member.engine.kernels_device.host_memory:
                member.engine.finish()
    except BaseException:
        # they may work on buffers about to be freed
        for other, *_ in shares:
            with suppress(DeviceError, MemoryError):
                other.engine.finish()
        # an error keeps the frames that it came through, and those what they hold
        parts.clear()
        with member.failures_named():
            raise
    return SharedAnswer(tuple(parts))


def room_for(work: Triangle) -> DeviceMatrix:
    """Return memory for a whole answer on the device of `work`."""
    columns, device = work.X.shape[1], work.engine.kernels_device
    buffer = device.allocate(columns * columns * work.kind.itemsize)
    return DeviceMatrix(buffer, (columns, columns), work.kind, (columns, 1), device)


def check_answer(out: SharedAnswer, columns: int, dtype: np.dtype[Any], devices: list[Any]) -> None:
    """Refuse an answer whose memory does not fit one of so many columns by these devices."""
    if out.shape != (columns, columns) or out.dtype != dtype:
        raise ShapeError(f"out is {out!r}; it must be {dtype} of {(columns, columns)}.")
    if out.devices != devices:
        raise InputError(f"{out!r} is of other devices; take one that this engine returned.")


def downloaded(members: Sequence[Member], answer: SharedAnswer, out: Matrix | None) -> Matrix:
    """Return an answer in one array, a new one or `out`, which fits; each device brings its part.

    Raises
    ------
    InputError
        If it was computed by another engine.
    DeviceError
        If a device fails, as what is queued there may.
    """
    owners = {id(member.engine.kernels_device): member for member in members}
    if any(id(device) not in owners for device in answer.devices):
        raise InputError(f"{answer!r} was computed by another engine; download it there.")
    matrix = aligned_empty(answer.shape, answer.dtype) if out is None else out
    pages, threads = Pages(matrix if out is None else None), host_threads(len(answer.parts))
    mine = {id(part.matrix.device): part for part in answer.parts}

    def bring(member: Member) -> None:
        from mtbridge.compute.opencl_conveyor import Conveyor

        device = member.engine.kernels_device
        part = mine[id(device)]
        member.prepare(threads)
        with Conveyor(device, member.pieces, threads, pages) as conveyor:
            answers = brought(part.matrix.buffer, part.stripe, matrix)
            conveyor.wait(conveyor.bring(answers, conveyor.mark()))

    at_once([owners[id(device)] for device in answer.devices], bring)
    return matrix


def at_once(members: Sequence[Member], work: Callable[[Member], Found]) -> list[Found]:
    """Return what `work` gives for each of the devices, in a thread each.

    Raises
    ------
    DeviceError
        If one of them fails; none is at it any more.
    """
    found: dict[int, Found] = {}

    def job(parts: Parts, _: int) -> None:
        for part in parts:
            with members[part].failures_named():
                found[part] = work(members[part])

    try:
        with ThreadPoolExecutor(len(members), thread_name_prefix="mtbridge-device") as pool:
            share(job, len(members), threads=len(members), pool=pool)
        return [found[at] for at in range(len(members))]
    except BaseException:
        # an error keeps the frames that it came through, and those what they hold
        found.clear()
        raise
