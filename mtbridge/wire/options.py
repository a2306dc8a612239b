"""The options frame of a request: a JSON object, read strictly.

A key that is not known is refused, not skipped: a misspelt `ddof` must not give another covariance.
What a value may be is said here as far as it needs no data; the service holds the rest against the arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
import numpy as np

from mtbridge.errors import OptionError, ProtocolError
from mtbridge.wire.codes import Operation, Status

MOST: Final = 2**31 - 1
"""The largest whole number of an option, but for `span_ms`."""

MOST_SPAN_MS: Final = 2**53
MOST_PAIRS: Final = 4096
MOST_LAGS: Final = 4096

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=MOST)]
Missing: TypeAlias = Literal["pairwise", "drop", "error"]
WeightKind: TypeAlias = Literal["frequency", "reliability"]
Method: TypeAlias = Literal["pearson", "spearman", "kendall"]
StatisticName: TypeAlias = Literal["covariance", "correlation", "beta"]
DtypeName: TypeAlias = Literal["float32", "float64"]
Reduce: TypeAlias = Literal["none", "mean", "row", "pairs", "top", "eigenvalue", "variance"]
By: TypeAlias = Literal["absolute", "value"]
Pair: TypeAlias = tuple[Count, Count]
Pairs: TypeAlias = Annotated[tuple[Pair, ...], msgspec.Meta(min_length=1, max_length=MOST_PAIRS)]


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """For operations that have none."""


class CovarianceOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Of one covariance matrix.

    Attributes
    ----------
    ddof : taken from the rows in the divisor, 1 by default as in pandas
    missing : "pairwise" takes for each pair the rows where both are present, "drop" the rows without any
        NaN, "error" refuses NaN
    min_periods : rows that a pair must have, else it is NaN
    weight_kind : what an array of weights means; needed with one
    scalars : send smallest eigenvalue, condition number and effective rows too
    """

    ddof: Count = 1
    missing: Missing = "pairwise"
    min_periods: Positive = 1
    weight_kind: WeightKind | None = None
    scalars: bool = False


class CorrelationOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Of one correlation matrix: as of a covariance, and the `method`."""

    method: Method = "pearson"
    missing: Missing = "pairwise"
    min_periods: Positive = 1
    weight_kind: WeightKind | None = None
    scalars: bool = False


class MovingOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What rolling, expanding and exponentially weighted matrices have in common.

    Attributes
    ----------
    statistic : "beta" is the covariance of (i, j) through the variance of i
    min_periods : rows that a pair must have in a window, else it is NaN; by default `window` where windows
        are counted in rows, else 1
    last : only the newest window
    packed : only the elements on and above the diagonal, row after row
    dtype : of the answer; by default that of the data
    reduce : what is sent of each matrix
    column : the row of "row", or the benchmark of betas
    pairs : the elements of "pairs"
    top : how many pairs "top" sends
    by : what "top" sorts by
    """

    statistic: StatisticName = "covariance"
    min_periods: Positive | None = None
    last: bool = False
    packed: bool = False
    dtype: DtypeName | None = None
    reduce: Reduce = "none"
    column: Count | None = None
    pairs: Pairs | None = None
    top: Positive | None = None
    by: By | None = None

    def __post_init__(self) -> None:
        for name, value, users in (
            ("pairs", self.pairs, ("pairs",)),
            ("top", self.top, ("top",)),
            ("by", self.by, ("top",)),
        ):
            if value is not None and self.reduce not in users:
                raise OptionError(f"{name} belongs to reduce {users[0]!r}, but reduce is {self.reduce!r}.")
        if self.column is not None and self.reduce != "row" and not self._one_benchmark:
            raise OptionError("column belongs to reduce 'row' or to betas of one benchmark.")
        for name, value in (("row", self.column), ("pairs", self.pairs), ("top", self.top)):
            if self.reduce == name and value is None:
                needed = "column" if name == "row" else name
                raise OptionError(f"reduce {name!r} needs {needed}.")
        if self.packed and (self.reduce != "none" or self.statistic == "beta"):
            raise OptionError("packed is for whole symmetric matrices: leave out packed, reduce or beta.")
        if self.statistic == "beta" and self.reduce not in ("none", "row", "pairs"):
            raise OptionError(f"reduce {self.reduce!r} is for covariances and correlations, not for betas.")
        if self.reduce == "variance" and self.statistic != "covariance":
            raise OptionError(f"reduce 'variance' is of a covariance, but statistic is {self.statistic!r}.")

    @property
    def _one_benchmark(self) -> bool:
        return self.statistic == "beta" and self.reduce == "none"


class RollingOptions(MovingOptions, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Of rolling matrices.

    Attributes
    ----------
    window : rows of a window; or
    span_ms : its length in milliseconds of the array `times`; a row just so old is outside
    step : rows from one window's end to the next
    ddof : as of a covariance
    """

    window: Positive | None = None
    span_ms: Annotated[int, msgspec.Meta(ge=1, le=MOST_SPAN_MS)] | None = None
    step: Positive = 1
    ddof: Count = 1

    def __post_init__(self) -> None:
        MovingOptions.__post_init__(self)
        if (self.window is None) == (self.span_ms is None):
            raise OptionError("a rolling window has exactly one of window and span_ms.")
        if self.window is not None and self.min_periods is not None and self.min_periods > self.window:
            raise OptionError(
                f"min_periods is {self.min_periods}, but the window has only {self.window} rows."
            )


class ExpandingOptions(MovingOptions, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Of matrices from the first row on; `ddof` as of a covariance."""

    ddof: Count = 1


class EwmOptions(MovingOptions, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Of exponentially weighted matrices, as pandas has them.

    Attributes
    ----------
    alpha, span, halflife, com : how fast old rows fade, in rows; or
    halflife_ms : in milliseconds of the array `times`
    adjust : divide by the sum of the weights; always so with `halflife_ms`
    ignore_na : count only the rows that a pair has
    bias : do not correct the covariance for its few effective rows
    """

    alpha: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    span: Annotated[float, msgspec.Meta(ge=1)] | None = None
    halflife: Annotated[float, msgspec.Meta(gt=0)] | None = None
    com: Annotated[float, msgspec.Meta(ge=0)] | None = None
    halflife_ms: Annotated[float, msgspec.Meta(gt=0)] | None = None
    adjust: bool = True
    ignore_na: bool = False
    bias: bool = False

    def __post_init__(self) -> None:
        MovingOptions.__post_init__(self)
        decays = (self.alpha, self.span, self.halflife, self.com, self.halflife_ms)
        if sum(decay is not None for decay in decays) != 1:
            raise OptionError("exactly one of alpha, span, halflife, com and halflife_ms says how rows fade.")
        if not all(decay is None or math.isfinite(decay) for decay in decays):
            raise OptionError("what says how rows fade must be finite.")
        if self.halflife_ms is not None and not self.adjust:
            raise OptionError("with halflife_ms rows are always adjusted: leave out adjust.")


class LaggedOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Of lagged matrices: `lags` L gives those of the lags -L to L."""

    lags: Annotated[int, msgspec.Meta(ge=0, le=MOST_LAGS)]
    statistic: Literal["covariance", "correlation"] = "covariance"
    ddof: Count = 1
    min_periods: Positive = 1


Options: TypeAlias = (
    NoOptions
    | CovarianceOptions
    | CorrelationOptions
    | RollingOptions
    | ExpandingOptions
    | EwmOptions
    | LaggedOptions
)

OPTIONS: Final[dict[int, type[Options]]] = {
    Operation.PING: NoOptions,
    Operation.MULTIPLY: NoOptions,
    Operation.GRAM: NoOptions,
    Operation.COVARIANCE: CovarianceOptions,
    Operation.CORRELATION: CorrelationOptions,
    Operation.ROLLING: RollingOptions,
    Operation.EXPANDING: ExpandingOptions,
    Operation.EWM: EwmOptions,
    Operation.LAGGED: LaggedOptions,
}
_DECODERS: Final = {operation: msgspec.json.Decoder(options) for operation, options in OPTIONS.items()}
# An operation that needs an option has no defaults.
_DEFAULTS: Final[dict[int, Options]] = {
    Operation.PING: NoOptions(),
    Operation.MULTIPLY: NoOptions(),
    Operation.GRAM: NoOptions(),
    Operation.COVARIANCE: CovarianceOptions(),
    Operation.CORRELATION: CorrelationOptions(),
    Operation.EXPANDING: ExpandingOptions(),
}


def decode_options(operation: int, frame: bytes) -> Options:
    """Return the options of a request, of the type that its operation has; an empty frame means the defaults.

    Raises
    ------
    ProtocolError
        With status bad_options: no JSON object, or a key or a value that is not allowed.
    """
    if not frame and operation in _DEFAULTS:
        return _DEFAULTS[operation]
    try:
        options: Options = _DECODERS[operation].decode(frame or b"{}")
    except RecursionError:
        raise ProtocolError("The options are nested too deeply.", Status.BAD_OPTIONS) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        known = ", ".join(OPTIONS[operation].__struct_fields__) or "none"
        raise ProtocolError(
            f"The options cannot be used: {str(error).rstrip('.')}. Options of this operation: {known}.",
            Status.BAD_OPTIONS,
        ) from None
    return options


def make_options(operation: int, values: Mapping[str, Any]) -> Any:
    """Return options of these values, of the type that the operation has, held to the same rules as a frame.

    Raises
    ------
    OptionError
        If a key or a value is not allowed.
    """
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
    try:
        return msgspec.convert(plain, OPTIONS[operation])
    except (msgspec.ValidationError, TypeError) as error:
        known = ", ".join(OPTIONS[operation].__struct_fields__)
        raise OptionError(
            f"{str(error).rstrip('.')}; options of {Operation(operation).name.lower()}: {known}."
        ) from None


def encode_options(options: Options) -> bytes:
    """Return the options frame for `options`: those that are not at their defaults; empty where all are."""
    frame = msgspec.json.encode(options)
    return b"" if frame == b"{}" else frame
