"""`mtbridge multiply`: the product of two matrices in files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mtbridge.cli.options import (
    DeviceOption,
    Dtype,
    DtypeOption,
    EngineName,
    EngineOption,
    OutputOption,
    Precision,
    PrecisionOption,
    QuietOption,
    VerboseOption,
    check_precision,
)
from mtbridge.cli.say import note, reason
from mtbridge.errors import InputError, MissingValueError
from mtbridge.matrix import Matrix, as_matrix


def multiply(
    left: Annotated[
        Path, typer.Argument(help="Matrix A: .npy, or .csv of numbers without a header.", metavar="A")
    ],
    right: Annotated[Path, typer.Argument(help="Matrix B, with as many rows as A has columns.", metavar="B")],
    output: OutputOption = None,
    engine: EngineOption = EngineName.auto,
    device: DeviceOption = None,
    dtype: DtypeOption = Dtype.float64,
    precision: PrecisionOption = Precision.FULL,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Multiply two matrices from .npy files or headerless .csv files of numbers.

    Example: mtbridge multiply a.npy b.npy -o product.npz
    """
    from mtbridge import frame
    from mtbridge.cli.output import check_output, show_result, write_result

    check_output(output)
    check_precision(precision, dtype)
    opened = frame.opened(engine, device, precision)
    result = frame.multiply(read_matrix(left), read_matrix(right), engine=opened, dtype=dtype, full=True)
    if verbose:
        note(reason(opened))
    rows, columns = result.matrix.shape
    note(
        f"product of {rows} x {columns}: {result.engine} on {result.device}, {result.matrix.dtype}, "
        f"{result.seconds:.4f} s",
        quiet=quiet,
    )
    if output is None:
        show_result(result)
    else:
        write_result(result, output)
        note(f"written to {output}", quiet=quiet)


def read_matrix(path: Path) -> Matrix:
    """Return the matrix in a .npy file or in a .csv file of numbers without a header.

    Raises
    ------
    InputError
        If there is no such file or it is no matrix of numbers; MissingValueError if a cell is empty.
    """
    import numpy as np
    import pandas as pd

    binary = path.suffix.lower() == ".npy"
    try:
        held = np.load(path, allow_pickle=False) if binary else pd.read_csv(path, header=None)
    except FileNotFoundError:
        raise InputError(f"there is no file {path}.") from None
    except (OSError, ValueError, EOFError, pd.errors.EmptyDataError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is not a matrix in .npy or .csv form ({reason}).") from error
    if binary:
        if not isinstance(held, np.ndarray):
            raise InputError(
                f"{path} is an archive of several arrays (.npz); save one of them by numpy.save."
            )
        return as_matrix(held, name=str(path))
    frame: pd.DataFrame = held
    for column in frame:
        if frame[column].dtype.kind not in "iuf":
            for cell in frame[column].dropna():
                if not is_number(cell):
                    raise InputError(
                        f"{path} holds {str(cell)!r}, which is not a number; it must hold numbers only, "
                        "without a header."
                    )
            # whole numbers that no integer type holds
            frame[column] = frame[column].astype(float)
    if frame.isna().to_numpy().any():
        raise MissingValueError(f"{path} has empty cells; every row needs the same number of values.")
    return as_matrix(frame.to_numpy(), name=str(path))


def is_number(cell: object) -> bool:
    if isinstance(cell, bool):
        return False
    try:
        float(str(cell))
    except ValueError:
        return False
    return True
