"""The 48 bytes of a head that describe one array frame."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from mtbridge.errors import ProtocolError
from mtbridge.wire.codes import ARRAY, ARRAY_BYTES, HEAD_BYTES, MAX_DIMENSIONS, DType, Role, Status
from mtbridge.wire.limits import Limits, readable_bytes

_ROLES: Final = {int(role): role for role in Role}
_DTYPES: Final = {int(dtype): dtype for dtype in DType}
_ZEROS: Final = bytes(2)
ITEM_BYTES: Final = {DType.FLOAT32: 4, DType.FLOAT64: 8, DType.INT64: 8, DType.UINT8: 1}


@dataclass(frozen=True, slots=True)
class ArrayHead:
    """What the head says about one array frame; `order` is "C" or "F"."""

    role: Role
    dtype: DType
    order: str
    shape: tuple[int, ...]
    bytes: int


def pack_array(array: ArrayHead) -> bytes:
    """Return the descriptor of `array`."""
    unused = (0,) * (MAX_DIMENSIONS - len(array.shape))
    order = int(array.order == "F")
    return ARRAY.pack(
        array.role, array.dtype, len(array.shape), order, _ZEROS, *array.shape, *unused, array.bytes
    )


def parse_array(frame: memoryview, index: int, length: int, limits: Limits) -> ArrayHead:
    """Read and check the descriptor number `index` of a head frame, whose array frame has `length` bytes.

    Raises
    ------
    ProtocolError
        With the status that the reply must carry.
    """
    role_code, dtype_code, ndim, order, zeros, *shape_and_size = ARRAY.unpack_from(
        frame, HEAD_BYTES + ARRAY_BYTES * index
    )
    shape, size = tuple(shape_and_size[:ndim]), shape_and_size[MAX_DIMENSIONS]
    role, dtype = _ROLES.get(role_code), _DTYPES.get(dtype_code)
    if role is None:
        raise ProtocolError(f"Array {index} has role {role_code}, which is not known.", Status.UNSUPPORTED)
    name = role.name.lower()
    if dtype is None:
        raise ProtocolError(
            f"Array {index}, {name}, has dtype {dtype_code}, which is not known.", Status.UNSUPPORTED
        )
    if not 1 <= ndim <= MAX_DIMENSIONS or order > 1 or zeros != _ZEROS:
        raise ProtocolError(
            f"Array {index}, {name}, has {ndim} dimensions, order {order} and reserved bytes "
            f"{bytes(zeros).hex()}; dimensions are 1 to {MAX_DIMENSIONS}, orders 0 and 1, reserved bytes 0.",
            Status.UNSUPPORTED,
        )
    if any(shape_and_size[ndim:MAX_DIMENSIONS]):
        raise ProtocolError(
            f"Array {index}, {name}, has {ndim} dimensions, so the last {MAX_DIMENSIONS - ndim} entries of "
            f"its shape must be 0, but the shape is {shape_and_size[:MAX_DIMENSIONS]}.",
            Status.UNSUPPORTED,
        )
    printed = "x".join(map(str, shape))
    if size > limits.frame_bytes:
        raise ProtocolError(
            f"Array {index}, {name}, takes {readable_bytes(size)}; a frame may have "
            f"{readable_bytes(limits.frame_bytes)}.",
            Status.TOO_LARGE,
        )
    if ndim == 2 and (shape[0] > limits.rows or shape[1] > limits.columns):
        raise ProtocolError(
            f"Array {index}, {name}, is {printed}; at most {limits.rows} rows and {limits.columns} columns "
            "are accepted.",
            Status.TOO_LARGE,
        )
    # Python's integers do not overflow: a shape whose product is 2^64 is not mistaken for an empty one.
    if 0 in shape or math.prod(shape) * ITEM_BYTES[dtype] != size:
        raise ProtocolError(
            f"Array {index}, {name}, is {printed} {dtype.name.lower()} but its bytes are {size}; they must "
            f"be the product of the shape, no entry of which is 0, times {ITEM_BYTES[dtype]}.",
            Status.BAD_SHAPE,
        )
    if size != length:
        raise ProtocolError(
            f"Array {index}, {name}, has {size} bytes by the head, but its frame has {length}.",
            Status.MALFORMED,
        )
    return ArrayHead(role=role, dtype=dtype, order="F" if order else "C", shape=shape, bytes=size)
