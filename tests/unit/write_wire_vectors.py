"""Write requests.json, replies.json and refused.json: `PYTHONPATH=. python tests/unit/write_wire_vectors.py`.

Run it only when the protocol gains something. What is written is a promise: old vectors never change,
but for the refusal of a number that has a meaning by now.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pandas as pd
from wire_vectors import FOLDER, meaning_of

from mtbridge.wire import Array, Head, Kind, Message, Operation, Role, Status, encode, error, request, result

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
B = np.array([[1.0, 0.5], [-2.0, 0.25], [3.0, 1e-300]])
BARS = np.array([[1.25, 2.5], [1.5, 2.0], [1.0, 3.5]])
NAMES = "EURUSD.£\nЗолото"
TIMES = np.array([1767225600000, 1767229200000, 1767232800000], np.int64)


def text(words: str) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.frombuffer(words.encode(), np.uint8)


REQUESTS = {
    "ping": ("The smallest request.", request(Operation.PING, 1)),
    "ping with a deadline": (
        "The largest id, and JSON without keys for options.",
        request(Operation.PING, 2**64 - 1, options=b"{}", deadline_ms=1500),
    ),
    "multiply": (
        "Two float64 matrices in C order: (2, 3) times (3, 2).",
        request(Operation.MULTIPLY, 2, [Array(Role.A, A), Array(Role.B, B)]),
    ),
    "gram in Fortran order": (
        "One float32 matrix, column after column: order is 1, the shape is still (rows, columns).",
        request(Operation.GRAM, 3, [Array(Role.DATA, np.asfortranarray(BARS.astype(np.float32)))]),
    ),
    "covariance": (
        "Three bars of two symbols, their names, and an option.",
        request(
            Operation.COVARIANCE,
            0x0123456789ABCDEF,
            [Array(Role.DATA, BARS), Array(Role.SYMBOLS, text(NAMES))],
            options=b'{"ddof":0}',
        ),
    ),
    "correlation": (
        "Without names and options.",
        request(Operation.CORRELATION, 5, [Array(Role.DATA, BARS)], deadline_ms=30000),
    ),
    "covariance with weights": (
        "Frequencies of the rows as whole numbers, and the scalars are asked for.",
        request(
            Operation.COVARIANCE,
            6,
            [Array(Role.DATA, BARS), Array(Role.WEIGHTS, np.array([2, 1, 1], np.int64))],
            options=b'{"weight_kind":"frequency","scalars":true}',
        ),
    ),
    "spearman": (
        "Ranks, at least 3 rows a pair.",
        request(
            Operation.CORRELATION,
            8,
            [Array(Role.DATA, BARS)],
            options=b'{"method":"spearman","min_periods":3}',
        ),
    ),
    "rolling": (
        "The covariances of the newest window of 2 rows.",
        request(
            Operation.ROLLING,
            9,
            [Array(Role.DATA, BARS)],
            options=b'{"window":2,"last":true}',
        ),
    ),
    "rolling over a span of time": (
        "Windows of one hour and a millisecond, and the mean correlation of each; times in milliseconds.",
        request(
            Operation.ROLLING,
            10,
            [Array(Role.TIMES, TIMES), Array(Role.DATA, BARS)],
            options=b'{"span_ms":3600001,"statistic":"correlation","min_periods":2,"reduce":"mean"}',
        ),
    ),
    "expanding": (
        "The variance of a portfolio, half of each symbol, by all rows up to each.",
        request(
            Operation.EXPANDING,
            11,
            [Array(Role.DATA, BARS), Array(Role.WEIGHTS, np.array([0.5, 0.5]))],
            options=b'{"reduce":"variance"}',
        ),
    ),
    "ewm": (
        "The largest pair by absolute value, old rows fading with a span of 3 rows.",
        request(
            Operation.EWM,
            12,
            [Array(Role.DATA, BARS), Array(Role.SYMBOLS, text(NAMES))],
            options=b'{"span":3,"reduce":"top","top":1,"dtype":"float32"}',
        ),
    ),
    "lagged": (
        "Covariances of the lags -1, 0 and 1.",
        request(Operation.LAGGED, 13, [Array(Role.DATA, BARS)], options=b'{"lags":1}'),
    ),
    "cancel": (
        "Takes request 5 back where it still waits. Operation and arrays are 0.",
        Message(Head(Kind.CANCEL, request=5)),
    ),
}


def answered(operation: Operation, number: int) -> Head:
    return Head(Kind.REQUEST, operation=operation, request=number)


def lagged(X: Any, lag: int) -> Any:
    """Covariances of the column at row t - lag with the column at row t."""
    early, late = (X[: len(X) - lag], X[lag:]) if lag >= 0 else (X[-lag:], X[:lag])
    columns = X.shape[1]
    return np.cov(early, late, rowvar=False)[:columns, columns:]


WEIGHTED = np.cov(BARS, rowvar=False, fweights=[2, 1, 1])
EIGENVALUES = np.linalg.eigvalsh(WEIGHTED)
PORTFOLIO = pd.Series(BARS @ [0.5, 0.5])
FADING = pd.DataFrame(BARS).ewm(span=3).cov().xs(0, level=1)[1].to_numpy()

PAIR = Head(Kind.REQUEST, operation=Operation.COVARIANCE, request=0x0123456789ABCDEF)
REPLIES = {
    "pong": (
        "Versions 1 to 1, frames of 2^30 bytes, 8 arrays, 2^31 - 1 rows, 2^20 columns; operations 1 to 5.",
        result(
            Head(Kind.REQUEST, operation=Operation.PING, request=1),
            [
                Array(Role.RESULT, np.array([1, 1, 2**30, 8, 2**31 - 1, 2**20], np.int64)),
                Array(Role.COUNTS, np.array([1, 2, 3, 4, 5], np.int64)),
                Array(Role.NAMES, text("mtbridge 0.1.0\nopencl\ncpu-znver3")),
            ],
            text="mtbridge 0.1.0, opencl on cpu-znver3",
        ),
    ),
    "pong of a later worker": (
        "The same with all operations of this page.",
        result(
            Head(Kind.REQUEST, operation=Operation.PING, request=1),
            [
                Array(Role.RESULT, np.array([1, 1, 2**30, 8, 2**31 - 1, 2**20], np.int64)),
                Array(Role.COUNTS, np.array(list(Operation), np.int64)),
                Array(Role.NAMES, text("mtbridge 0.2.0\nopencl\ncpu-znver3")),
            ],
            text="mtbridge 0.2.0, opencl on cpu-znver3",
        ),
    ),
    "product": (
        "The answer to the request `multiply`.",
        result(Head(Kind.REQUEST, operation=Operation.MULTIPLY, request=2), [Array(Role.RESULT, A @ B)]),
    ),
    "covariance": (
        "The answer to `covariance`: the matrix, the rows behind each element, the names as they came.",
        result(
            PAIR,
            [
                Array(Role.RESULT, np.cov(BARS, rowvar=False, ddof=0)),
                Array(Role.COUNTS, np.full((2, 2), 3, np.int64)),
                Array(Role.SYMBOLS, text(NAMES)),
            ],
        ),
    ),
    "covariance with scalars": (
        "The answer to `covariance with weights`: smallest eigenvalue, condition number, effective rows.",
        result(
            answered(Operation.COVARIANCE, 6),
            [
                Array(Role.RESULT, WEIGHTED),
                Array(Role.COUNTS, np.full((2, 2), 3, np.int64)),
                Array(Role.SCALARS, np.array([EIGENVALUES[0], EIGENVALUES[1] / EIGENVALUES[0], 4.0])),
            ],
        ),
    ),
    "rolling": (
        "The answer to `rolling`: one window, and still three dimensions.",
        result(
            answered(Operation.ROLLING, 9), [Array(Role.RESULT, np.cov(BARS[1:], rowvar=False)[np.newaxis])]
        ),
    ),
    "rolling mean": (
        "The answer to `rolling over a span of time`: one number a window, NaN where it has too few rows.",
        result(
            answered(Operation.ROLLING, 10),
            [Array(Role.RESULT, np.array([np.nan, -1.0, -1.0]))],
            text="A sentence for people may come with a result.",
        ),
    ),
    "expanding": (
        "The answer to `expanding`.",
        result(
            answered(Operation.EXPANDING, 11), [Array(Role.RESULT, PORTFOLIO.expanding().var().to_numpy())]
        ),
    ),
    "ewm": (
        "The answer to `ewm`: the largest pair of each window and its columns; where none is, NaN and -1.",
        result(
            answered(Operation.EWM, 12),
            [
                Array(Role.RESULT, FADING[:, np.newaxis].astype(np.float32)),
                Array(Role.INDICES, np.array([[[-1, -1]], [[0, 1]], [[0, 1]]], np.int64)),
                Array(Role.SYMBOLS, text(NAMES)),
            ],
        ),
    ),
    "lagged": (
        "The answer to `lagged`: three matrices, and the rows behind each element.",
        result(
            answered(Operation.LAGGED, 13),
            [
                Array(Role.RESULT, np.array([lagged(BARS, lag) for lag in (-1, 0, 1)])),
                Array(Role.COUNTS, np.repeat(np.array([2, 3, 2], np.int64), 4).reshape(3, 2, 2)),
            ],
        ),
    ),
    "error": (
        "A sentence for people, a status for programs.",
        error(
            2, Operation.MULTIPLY, Status.BAD_SHAPE, "a has 3 columns but b has 2 rows; they must be equal."
        ),
    ),
    "error without an id": (
        "Where the head could not be read, id and operation are 0.",
        error(0, 0, Status.MALFORMED, "The head frame has 3 bytes; a head has at least 64."),
    ),
}


def changed(frames: list[bytes], frame: int, offset: int, code: str, value: int) -> list[bytes]:
    """Return the frames with one number of one frame overwritten."""
    changed = bytearray(frames[frame])
    struct.pack_into(f"<{code}", changed, offset, value)
    return [*frames[:frame], bytes(changed), *frames[frame + 1 :]]


def shaped(frames: list[bytes], shape: tuple[int, ...]) -> list[bytes]:
    """Return the frames of a message of one array, with another shape claimed."""
    frames = changed(frames, 0, 68, "B", len(shape))
    for index, entry in enumerate(shape):
        frames = changed(frames, 0, 72 + 8 * index, "Q", entry)
    return frames


def refused() -> dict[str, tuple[str, list[bytes], Status, int]]:
    ping = [bytes(frame) for frame in encode(request(Operation.PING, 7))]
    gram = [bytes(frame) for frame in encode(request(Operation.GRAM, 7, [Array(Role.DATA, BARS)]))]
    return {
        "no frames": ("Nothing after the delimiter.", [], Status.MALFORMED, 0),
        "head alone": ("The options frame is missing.", ping[:1], Status.MALFORMED, 7),
        "head cut": ("A head of 63 bytes.", [ping[0][:63], b""], Status.MALFORMED, 0),
        "another magic": ("", changed(ping, 0, 0, "I", 0x4D544231), Status.MALFORMED, 0),
        "version 2": ("Its id can be read all the same.", changed(ping, 0, 4, "H", 2), Status.UNSUPPORTED, 7),
        "head_bytes differs": ("", changed(ping, 0, 6, "H", 112), Status.MALFORMED, 7),
        "kind 6": ("", changed(ping, 0, 8, "H", 6), Status.UNSUPPORTED, 7),
        "operation 0": ("", changed(ping, 0, 10, "H", 0), Status.UNSUPPORTED, 7),
        "operation 99": ("", changed(ping, 0, 10, "H", 99), Status.UNSUPPORTED, 7),
        "request with a status": ("", changed(ping, 0, 12, "I", 1), Status.UNSUPPORTED, 7),
        "session 1": ("", changed(ping, 0, 24, "Q", 1), Status.UNSUPPORTED, 7),
        "parts 0": (
            "A message has one part: parts is 1.",
            changed(ping, 0, 46, "H", 0),
            Status.UNSUPPORTED,
            7,
        ),
        "flag 1": ("Kept for authentication.", changed(ping, 0, 50, "H", 1), Status.UNSUPPORTED, 7),
        "last byte set": ("", changed(ping, 0, 63, "B", 1), Status.UNSUPPORTED, 7),
        "array missing": ("", gram[:2], Status.MALFORMED, 7),
        "array too many": ("", [*gram, b""], Status.MALFORMED, 7),
        "array cut": ("47 of 48 bytes.", [*gram[:2], gram[2][:-1]], Status.MALFORMED, 7),
        "array lengthened": ("49 of 48 bytes.", [*gram[:2], gram[2] + b"x"], Status.MALFORMED, 7),
        "role 99": ("", changed(gram, 0, 64, "H", 99), Status.UNSUPPORTED, 7),
        "dtype 5": ("", changed(gram, 0, 66, "H", 5), Status.UNSUPPORTED, 7),
        "no dimensions": ("", changed(gram, 0, 68, "B", 0), Status.UNSUPPORTED, 7),
        "five dimensions": ("", changed(gram, 0, 68, "B", 5), Status.UNSUPPORTED, 7),
        "order 2": ("", changed(gram, 0, 69, "B", 2), Status.UNSUPPORTED, 7),
        "unused shape entry": ("", changed(gram, 0, 96, "Q", 1), Status.UNSUPPORTED, 7),
        "shape too small": (
            "(2, 2) has 32 bytes, not 48.",
            changed(gram, 0, 72, "Q", 2),
            Status.BAD_SHAPE,
            7,
        ),
        "nothing at all": (
            "(0, 2) has 0 bytes, and so has its frame.",
            [changed(shaped(gram, (0, 2)), 0, 104, "Q", 0)[0], b"", b""],
            Status.BAD_SHAPE,
            7,
        ),
        "no rows": ("", changed(gram, 0, 72, "Q", 0), Status.BAD_SHAPE, 7),
        "product 2^64": (
            "(2^24, 2^20, 2^16, 2^4): the number of elements is 2^64, which is 0 in 64 bits.",
            shaped(gram, (2**24, 2**20, 2**16, 2**4)),
            Status.BAD_SHAPE,
            7,
        ),
        "2^63 rows": ("", changed(gram, 0, 72, "Q", 2**63), Status.TOO_LARGE, 7),
        "2^62 bytes": ("", changed(gram, 0, 104, "Q", 2**62), Status.TOO_LARGE, 7),
        "bytes differ from the frame": (
            "Shape and bytes agree with each other, the frame does not.",
            changed(changed(gram, 0, 72, "Q", 4), 0, 104, "Q", 64),
            Status.MALFORMED,
            7,
        ),
    }


def main() -> None:
    for name, table in (("requests", REQUESTS), ("replies", REPLIES)):
        vectors = [
            {
                "name": title,
                "about": about,
                "frames": [bytes(frame).hex() for frame in encode(message)],
                "message": meaning_of(message),
            }
            for title, (about, message) in table.items()
        ]
        write(name, vectors)
    write(
        "refused",
        [
            {
                "name": title,
                "about": about,
                "frames": [frame.hex() for frame in frames],
                "status": int(status),
                "request": number,
            }
            for title, (about, frames, status, number) in refused().items()
        ],
    )


def write(name: str, vectors: list[dict[str, Any]]) -> None:
    about = (
        "mtbridge protocol version 1. Frames in hex: head, options, arrays; the empty delimiter before them "
        "is not shown. Values run along the rows, whatever the order on the wire; null is NaN."
    )
    content = json.dumps({"about": about, "vectors": vectors}, indent=1, ensure_ascii=False)
    (FOLDER / f"{name}.json").write_text(content + "\n", "utf-8")


if __name__ == "__main__":
    main()
