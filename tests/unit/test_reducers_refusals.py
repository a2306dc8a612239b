"""What no reducer takes, and sequences of which one cannot be taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_matrices import WAYS, Given, Reduce, reduce_by

from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.reducers import (
    LargestEigenvalue,
    MeanOffDiagonal,
    Pairs,
    QuadraticForm,
    Reducer,
    TopPairs,
    reduced,
)
from mtbridge.compute.sequence import Wanted
from mtbridge.errors import InputError, OptionError, ShapeError


@pytest.fixture(params=WAYS)
def reduce(request: pytest.FixtureRequest, opencl_engine: OpenCLEngine) -> Reduce:
    """Reduce whole matrices by one of the ways there are."""
    return reduce_by(request.param, opencl_engine.kernels_device)


@pytest.mark.parametrize(
    "reducer", [MeanOffDiagonal(), TopPairs(1), LargestEigenvalue(), QuadraticForm(np.ones(2))]
)
@pytest.mark.parametrize("wanted", [Wanted("beta"), Wanted(left=(0,))])
def test_what_is_of_symmetric_matrices_refuses_others(reducer: Reducer[Any], wanted: Wanted) -> None:
    with pytest.raises(OptionError, match=r"take covariances|leave left out"):
        reduced(Given(np.ones((1, 2, 2)), reducer.wanted(wanted)), reducer)


@pytest.mark.parametrize(
    ("kind", "options", "error", "text"),
    [
        (TopPairs, {"k": 0}, OptionError, "k is 0"),
        (TopPairs, {"k": True}, OptionError, "k is True"),
        (TopPairs, {"k": 1.5}, OptionError, r"k is 1\.5"),
        (TopPairs, {"k": 1, "by": "size"}, OptionError, "by is 'size'"),
        (Pairs, {"i": [0], "j": [1, 2]}, ShapeError, "1 left columns but 2"),
        (Pairs, {"i": [], "j": []}, ShapeError, "no list of column numbers"),
        (Pairs, {"i": [0.5], "j": [1]}, ShapeError, "no list of column numbers"),
        (QuadraticForm, {"weights": [np.nan, 1]}, InputError, "NaN or infinite"),
        (QuadraticForm, {"weights": ["a"]}, InputError, "real numbers"),
        (QuadraticForm, {"weights": [1j]}, InputError, "real numbers"),
        (QuadraticForm, {"weights": np.ones((1, 1, 1))}, ShapeError, "3 dimensions"),
    ],
)
def test_a_reducer_that_makes_no_sense_is_refused(
    kind: Any, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        kind(**options)


@pytest.mark.parametrize(
    ("reducer", "error", "text"),
    [
        (TopPairs(7), OptionError, "4 columns have 6 pairs"),
        (Pairs([0], [4]), OptionError, "no column 4; they are 0 to 3"),
        (Pairs([-1], [0]), OptionError, "no column -1"),
        (QuadraticForm(np.ones(3)), ShapeError, "3 weights but 4 columns"),
        (QuadraticForm(np.ones((3, 4))), ShapeError, "3 rows of weights but 2 matrices"),
    ],
    ids=repr,
)
def test_a_reducer_that_does_not_fit_is_refused(
    reduce: Reduce, reducer: Reducer[Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        reduce(np.ones((2, 4, 4)), reducer)


def test_a_row_that_the_sequence_does_not_compute_is_refused() -> None:
    sequence = Given(np.ones((2, 4, 4)), Wanted(left=(1,)))
    with pytest.raises(OptionError, match="no row 2"):
        reduced(sequence, Pairs([2], [0]))


def test_a_block_of_no_bytes_is_refused() -> None:
    with pytest.raises(OptionError, match="block_bytes is 0"):
        reduced(Given(np.ones((1, 2, 2)), Wanted(packed=True)), MeanOffDiagonal(), block_bytes=0)
