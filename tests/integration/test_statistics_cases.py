"""Every case of ../shared/cases/statistics.json: through Python on each engine, and through a real worker.

A case is an input with its exact answer; most are answered wrongly by some tool in use today.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mtbridge
from mtbridge import Client
from mtbridge.compute import Engine
from mtbridge.errors import InputError, MtbridgeError
from mtbridge.frame.joined import gathered
from mtbridge.server import WorkerProcess

FILE = Path(__file__).resolve().parents[2].parent / "shared" / "cases" / "statistics.json"
CASES: list[dict[str, Any]] = json.loads(FILE.read_text())["cases"] if FILE.is_file() else []
WAITING = {"hayashi_yoshida": "the covariation of series observed at different times is to come"}

Answer = Any
Run = Callable[[Any, dict[str, Any], Any], Answer]
"""From a table, the options of a case, and an engine or a client."""


def column(name: str, described: dict[str, Any], case: dict[str, Any]) -> Any:
    """The values of one column, with its index where it has one."""
    dtype = described["dtype"]
    if "generator" in described:
        # the file is ours, and its about says that these are expressions
        values = eval(described["generator"], {"np": np})  # noqa: S307
    elif dtype == "decimal":
        values = np.array([Decimal(value) for value in described["values"]], object)
    elif dtype == "object":
        values = np.array(described["values"], object)
    elif dtype.startswith("int"):
        values = np.array([int(value) for value in described["values"]], dtype)
    else:
        values = np.array(
            [math.nan if value is None else float(value) for value in described["values"]], dtype
        )
    if case["index"] is None:
        return values
    stamps = pd.DatetimeIndex(pd.to_datetime(case["index"][name]))
    zone = case["options"].get("zones", {}).get(name)
    return pd.Series(values, index=stamps.tz_convert(zone) if zone else stamps, name=name)


def data_of(case: dict[str, Any]) -> Any:
    """The table of a case: a DataFrame, or a dict of Series with indexes of their own."""
    columns = {name: column(name, described, case) for name, described in case["columns"].items()}
    if case["index"] is not None:
        return columns
    frame = pd.DataFrame(columns)
    if case["options"].get("returns") == "simple":
        frame = frame.pct_change(fill_method=None)
    return frame


def moments(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("ddof", "min_periods") if name in options}


def decay(options: dict[str, Any]) -> dict[str, Any]:
    return {name: options[name] for name in ("alpha", "adjust", "ignore_na")}


def windows(data: Any, options: dict[str, Any], engine: Any) -> Any:
    return mtbridge.rolling(data, options["window"], min_periods=options["min_periods"], engine=engine)


def picked(answer: pd.DataFrame, options: dict[str, Any]) -> Answer:
    """What a case asks of one matrix."""
    if "pair" not in options:
        return answer.to_numpy()
    left, right = options["pair"]
    return answer.loc[left, right]


def stepped(answer: pd.DataFrame, options: dict[str, Any]) -> Answer:
    """What a case asks of a matrix at each row."""
    first, last = answer.columns[0], answer.columns[-1]
    left, right = options.get("pair", (first, last))
    values = answer.xs(left, level=-1)[right]
    if "row" in options:
        return values.iloc[options["row"]]
    return values.loc[options["at"]] if "at" in options else values.to_numpy()


def each_count(function: Callable[..., pd.DataFrame], data: Any, options: dict[str, Any]) -> Answer:
    """What a case asks of the covariance of all rows, or of the first so many."""
    given = moments(options)
    if "first_rows" in options:
        return [picked(function(data.iloc[:rows], **given), options) for rows in options["first_rows"]]
    return picked(function(data, **given), options)


def covariance(data: Any, options: dict[str, Any], engine: Any) -> Answer:
    return each_count(partial(mtbridge.covariance, engine=engine), data, options)


def correlation(data: Any, options: dict[str, Any], engine: Any) -> Answer:
    return picked(mtbridge.correlation(data, engine=engine), options)


def lagged_correlation(data: Any, options: dict[str, Any], engine: Any) -> Answer:
    found = mtbridge.lagged_correlation(data, options["lag"], engine=engine)
    return picked(found.loc[options["lag"]], options)


def weighted_covariance(data: Any, options: dict[str, Any], engine: Any) -> Answer:
    given = {name: options[name] for name in ("weights", "weight_kind", "ddof")}
    return picked(mtbridge.covariance(data, engine=engine, **given), options)


def spearman(data: Any, options: dict[str, Any], engine: Any) -> Answer:
    return picked(mtbridge.correlation(data, method="spearman", engine=engine), options)


def whole(data: Any, options: dict[str, Any], engine: Any) -> mtbridge.Result:
    function = {"covariance": mtbridge.covariance, "correlation": mtbridge.correlation}[options["of"]]
    found = function(data, engine=engine, full=True)
    assert isinstance(found, mtbridge.Result)
    return found


PYTHON: dict[str, Run] = {
    "covariance": covariance,
    "correlation": correlation,
    "rolling_covariance": lambda X, o, e: stepped(windows(X, o, e).covariance(), o),
    "rolling_correlation": lambda X, o, e: stepped(windows(X, o, e).correlation(), o),
    "rolling_std": lambda X, o, e: np.sqrt(stepped(windows(X, o, e).covariance(), o)),
    "ewm_covariance": lambda X, o, e: stepped(
        mtbridge.ewm(X, engine=e, **decay(o)).covariance(bias=o["bias"]), o
    ),
    "ewm_correlation": lambda X, o, e: stepped(mtbridge.ewm(X, engine=e, **decay(o)).correlation(), o),
    "spearman": spearman,
    "lagged_correlation": lagged_correlation,
    "weighted_covariance": weighted_covariance,
    "annualised_covariance": lambda X, o, e: picked(mtbridge.covariance(X, annualise=True, engine=e), o),
    "smallest_eigenvalue": lambda X, o, e: whole(X, o, e).smallest_eigenvalue,
    "shape": lambda X, o, e: list(whole(X, o, e).matrix.shape),
    "ndim": lambda X, o, e: whole(X, o, e).matrix.ndim,
}


def rolled(data: Any, options: dict[str, Any], client: Any, statistic: str = "covariance") -> Answer:
    found = client.rolling(data, options["window"], min_periods=options["min_periods"], statistic=statistic)
    return stepped(found, options)


def annualised(data: Any, options: dict[str, Any], client: Any) -> Answer:
    joined = gathered(data)
    return picked(client.covariance(joined) * mtbridge.bars_per_year(joined.index)[0], options)


def answered(data: Any, options: dict[str, Any], client: Any) -> mtbridge.Result:
    found = getattr(client, options["of"])(data, full=True)
    assert isinstance(found, mtbridge.Result)
    return found


WIRE: dict[str, Run] = {
    "covariance": lambda X, o, c: each_count(c.covariance, X, o),
    "correlation": lambda X, o, c: picked(c.correlation(X), o),
    "rolling_covariance": rolled,
    "rolling_correlation": lambda X, o, c: rolled(X, o, c, "correlation"),
    "rolling_std": lambda X, o, c: np.sqrt(rolled(X, o, c)),
    "ewm_covariance": lambda X, o, c: stepped(c.ewm(X, bias=o["bias"], **decay(o)), o),
    "ewm_correlation": lambda X, o, c: stepped(c.ewm(X, statistic="correlation", **decay(o)), o),
    "spearman": lambda X, o, c: picked(c.correlation(X, method="spearman"), o),
    "lagged_correlation": lambda X, o, c: picked(c.lagged(X, o["lag"]).loc[o["lag"]], o),
    "weighted_covariance": lambda X, o, c: picked(
        c.covariance(X, **{name: o[name] for name in ("weights", "weight_kind", "ddof")}), o
    ),
    "annualised_covariance": annualised,
    "smallest_eigenvalue": lambda X, o, c: answered(X, o, c).smallest_eigenvalue,
    "shape": lambda X, o, c: list(answered(X, o, c).matrix.shape),
    "ndim": lambda X, o, c: answered(X, o, c).matrix.ndim,
}
REFUSED_BY_WIRE = {"empty"}
"""The wire carries no array without elements."""


def check(case: dict[str, Any], run: Run, where: Any) -> None:
    """Compare what `run` answers with what the case expects."""
    expected, options = case["expect"], case["options"]
    if expected == "error":
        with pytest.raises(MtbridgeError):
            run(data_of(case), options, where)
        return
    answer = np.asarray(run(data_of(case), options, where), np.float64)
    wanted = np.array(numbers(expected), np.float64)
    assert answer.shape == wanted.shape
    tolerance = case["tolerance"] or {"absolute": 0.0}
    for found, right in zip(answer.flat, wanted.flat, strict=True):
        if math.isnan(right):
            assert math.isnan(found), f"{found} is not NaN"
        elif "relative" in tolerance:
            assert abs(found - right) <= tolerance["relative"] * abs(right), f"{found} is not {right}"
        else:
            assert abs(found - right) <= tolerance["absolute"], f"{found} is not {right}"


def numbers(expected: Any) -> Any:
    if isinstance(expected, list):
        return [numbers(one) for one in expected]
    return math.nan if expected == "NaN" else float(expected)


def known(case: dict[str, Any]) -> Any:
    reason = WAITING.get(case["operation"])
    return pytest.param(case, id=case["name"], marks=[pytest.mark.skip(reason=reason)] if reason else [])


absent = pytest.mark.skipif(
    not CASES, reason="there is no ../shared/cases/statistics.json beside the checkout"
)


@pytest.fixture(scope="module", params=["numpy", "opencl"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    if request.param == "opencl":
        request.getfixturevalue("verdict")
    with (
        WorkerProcess(engine_name=request.param) as worker,
        Client(worker.endpoint, timeout=60) as client,
    ):
        yield client


@absent
@pytest.mark.parametrize("case", [known(case) for case in CASES])
def test_the_answer_is_the_exact_one(case: dict[str, Any], engine: Engine) -> None:
    check(case, PYTHON[case["operation"]], engine)


@absent
@pytest.mark.parametrize("case", [known(case) for case in CASES])
def test_the_worker_answers_the_exact_one(case: dict[str, Any], client: Client) -> None:
    run = WIRE[case["operation"]]
    if case["name"] in REFUSED_BY_WIRE:
        with pytest.raises(InputError, match="nothing to compute"):
            run(data_of(case), case["options"], client)
    else:
        check(case, run, client)


@absent
def test_every_operation_of_the_file_is_known() -> None:
    operations = {case["operation"] for case in CASES}
    assert operations == PYTHON.keys() | WAITING.keys()
    assert operations == WIRE.keys() | WAITING.keys()
