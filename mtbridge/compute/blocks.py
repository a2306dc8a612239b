"""How a product is cut so that its panels and its result fit a device's largest buffer."""

from __future__ import annotations

from collections.abc import Iterator

from mtbridge.compute.forms import Form

# Inner sizes are cut down to this first: a shallower block would spend its time adding up partial results.
DEEP = 1024


def block_sizes(
    form: Form, shape: tuple[int, int, int], *, size: int, total: int, limit: int, square: bool = False
) -> tuple[int, int, int] | None:
    """Return the largest block of a product that fits, or None where not even one element does.

    Parameters
    ----------
    shape : (rows, inner, columns) of the whole product
    size, total : bytes of an element of the factors, and of the result
    limit : bytes of the largest buffer
    square : cut rows and columns alike, as X'X needs it
    """
    rows, inner, columns = (max(length, 1) for length in shape)
    while True:
        depth = padded(inner, form.inner)
        left, right = padded(rows, form.left) * depth * size, padded(columns, form.right) * depth * size
        answer = rows * columns * total
        largest = max(left, right, answer)
        if largest <= limit:
            return rows, inner, columns
        cut_inner = largest > answer and inner > 1
        whole = rows <= form.left if largest == left else columns <= form.right
        if cut_inner and (inner > DEEP or whole):
            inner = -(-inner // 2)
        elif max(rows, columns) == 1:
            return None
        elif square:
            rows = columns = halved(columns, form.right)
        elif rows > 1 and (largest == left or (largest == answer and rows >= columns)):
            rows = halved(rows, form.left)
        elif columns > 1:
            columns = halved(columns, form.right)
        else:
            rows = halved(rows, form.left)


def padded(length: int, unit: int) -> int:
    return -(-length // unit) * unit


def halved(length: int, unit: int) -> int:
    """Half of `length`, in whole panels where there is more than one."""
    half = -(-length // 2)
    return half if half <= unit else half // unit * unit


def spans(length: int, step: int) -> Iterator[slice]:
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))
