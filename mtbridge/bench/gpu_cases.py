"""Cases of `mtbridge bench gpu` by name: which there are, and which of them are meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mtbridge.errors import OptionError

Shape = tuple[int, ...]

OPERATIONS = (
    "gram",
    "multiply",
    "covariance",
    "rolling corr",
    "pairwise cov",
    "covariance host",
    "batch",
    "several",
)
GAPS = ("scattered", "leading")
"""Where values are missing: anywhere, or at the begin of a column, as of a symbol that is younger."""

SIZES: tuple[int, ...] = (8192, 4096, 2048)
QUICK = (1024,)
FURTHER = ((2_500, 20_000), (1_000_000, 200))
"""Rows and columns of further X'X and covariances: many columns, and many rows."""

HOST = (2_000, 1_000)
"""Rows and columns of a covariance from array to array: most of its time are the copies."""

BATCH = (10_000, 60, 50)
"""Matrices, rows and columns of covariances of a batch."""

SEVERAL = ((2_500, 20_000), (20_000, 20_000))
"""Rows and columns of covariances that several devices share."""

LEAST = 8
"""Side of a matrix: in a smaller one a pair of columns with gaps may have no row in common."""

WINDOW = 60
ROLLING = (500, 5_000, WINDOW)
"""Symbols, rows and rows of a window."""


@dataclass(frozen=True, slots=True)
class Named:
    """A case by its name.

    Attributes
    ----------
    operation : one of OPERATIONS
    shape : (rows, columns); (rows, inner, columns) for multiply; (symbols, rows, window) for rolling corr;
        (matrices, rows, columns) for batch
    gaps : one of GAPS for pairwise cov, else empty
    """

    operation: str
    shape: Shape
    gaps: str = ""

    @property
    def title(self) -> str:
        """What rows call it."""
        return f"{self.operation} {'x'.join(map(str, self.shape))} {self.gaps}".rstrip()


def listed(sizes: Sequence[int] | None = None) -> tuple[Named, ...]:
    """Return every case: of the usual sizes, or of squares of `sizes` and histories that grow with them.

    Raises
    ------
    OptionError
        If one of `sizes` is below LEAST.
    """
    if sizes is not None and min(sizes) < LEAST:
        raise OptionError(f"--sizes has {min(sizes)}; matrices of this benchmark have {LEAST} rows or more.")
    sides, further, rolling, host, batches = SIZES, list(FURTHER), [ROLLING], [HOST], [BATCH]
    several = list(SEVERAL)
    if sizes is not None:
        sides, further = tuple(sizes), []
        several = [(side, side) for side in sides]
        host = [(2 * side, side) for side in sides]
        batches = [(side, WINDOW, max(side // 16, 2)) for side in sides]
        rolling = [(max(side // 16, 2), side // 2 + WINDOW, WINDOW) for side in sides]
    squares = [(side, side) for side in sides]
    return (
        *(Named("gram", shape) for shape in (*squares, *further)),
        *(Named("multiply", (side, side, side)) for side in sides),
        *(Named("covariance", shape) for shape in (*squares, *further)),
        *(Named("rolling corr", shape) for shape in rolling),
        *(Named("pairwise cov", shape, gaps) for shape in squares for gaps in GAPS),
        *(Named("covariance host", shape) for shape in host),
        *(Named("batch", shape) for shape in batches),
        *(Named("several", shape) for shape in several),
    )


def chosen(cases: Sequence[Named], names: Sequence[str]) -> tuple[Named, ...]:
    """Return the cases whose titles begin with the words of one of `names`, in their order.

    Raises
    ------
    OptionError
        If there is none for one of `names`.
    """
    found: set[Named] = set()
    for name in names:
        words = name.split()
        fitting = [case for case in cases if words and case.title.split()[: len(words)] == words]
        if not fitting:
            raise OptionError(
                f"--cases has {name!r}; there are {', '.join(OPERATIONS)}, or with a size, such as "
                f"'{cases[0].title}'."
            )
        found.update(fitting)
    return tuple(case for case in cases if case in found)
