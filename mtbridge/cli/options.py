"""Options that mean the same in every command."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mtbridge.errors import OptionError


class EngineName(StrEnum):
    auto = "auto"
    opencl = "opencl"
    numpy = "numpy"
    serial = "serial"


class Dtype(StrEnum):
    float64 = "float64"
    float32 = "float32"


class Precision(StrEnum):
    # in capitals, since a string has a method `split`
    FULL = "full"
    SPLIT = "split"
    SINGLE = "single"


class Returns(StrEnum):
    log = "log"
    simple = "simple"
    difference = "difference"
    none = "none"


EngineOption = Annotated[
    EngineName,
    typer.Option("--engine", help="What computes; auto takes the faster of numpy and opencl."),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(
        "--device",
        help="OpenCL device: an index of `mtbridge devices`, a part of a name, gpu or cpu; several of one "
        "kind, which share big matrices, as 0+1, or all for every GPU.",
        envvar="MTBRIDGE_DEVICE",
    ),
]
PrecisionOption = Annotated[
    Precision,
    typer.Option(
        "--precision",
        help="Of float32 products: split and single are for some NVIDIA GPUs and several times as fast; "
        "their error is a few 2**-22, or 2**-11, of the norms of a row and a column.",
    ),
]
DtypeOption = Annotated[Dtype, typer.Option("--dtype", help="In which type products are taken.")]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", help="Write to this .csv, .parquet, .npz or .json file, not the terminal."
    ),
]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but errors.")]
VerboseOption = Annotated[bool, typer.Option("-v", "--verbose", help="Say more about what was decided.")]
EndpointOption = Annotated[str, typer.Option("--endpoint", help="Where the worker listens.")]


def check_precision(precision: Precision, dtype: Dtype) -> None:
    """Refuse a precision of float32 products for float64, before any work is done."""
    if precision is not Precision.FULL and dtype is Dtype.float64:
        raise OptionError(
            f"--precision {precision} is for products of float32; add --dtype float32, or leave it out."
        )
