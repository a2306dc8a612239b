"""The notebook, run from first cell to last by a kernel of this interpreter, and computed again beside it."""

# nbformat has no types
# mypy: allow-untyped-calls

from __future__ import annotations

import copy
import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
import pytest
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from mtbridge.compute.devices import choose, survey

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
FIRST_MATRIX = NOTEBOOKS / "first_matrix.ipynb"

pytestmark = pytest.mark.timeout(300)

# What the kernel computed, for the tests to look at.
SAVE = """
np.savez(
    "computed.npz",
    log_returns=log_returns, simple_returns=simple_returns, times=simple_returns.index.asi8,
    correlation=baseline_correlation, covariance=baseline_covariance, window=WINDOW, cost=COST,
    starts=starts, weights=weights, variances=variances, equal_variances=equal_variances,
    minimum=minimum, equal=equal, minimum_traded=minimum_traded, equal_traded=equal_traded,
)
"""


class ThisInterpreter(KernelSpecManager):
    """Starts kernels with the interpreter of the tests, whatever kernels are registered on the machine."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        return KernelSpec(
            argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            display_name=kernel_name,
            language="python",
        )


def forgiven_cell(source: str, identity: str) -> Any:
    cell = nbformat.v4.new_code_cell(source, id=identity)
    # an error in it is an output like any other, and does not end the run
    cell.metadata.tags = ["raises-exception"]
    return cell


def run(notebook: Any, folder: Path, **variables: str) -> dict[str, Any]:
    """Run all cells in `folder`, warnings being errors, and return them by their ids."""
    notebook = copy.deepcopy(notebook)
    strict = "import warnings; warnings.simplefilter('error')"
    notebook.cells.insert(0, nbformat.v4.new_code_cell(strict, id="strict"))
    kernel = AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=ThisInterpreter(),
        connection_file=str(folder / "kernel.json"),
    )
    client = NotebookClient(notebook, km=kernel, timeout=240, resources={"metadata": {"path": str(folder)}})
    environment = {"IPYTHONDIR": str(folder / "ipython"), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    client.execute(cleanup_kc=True, env=dict(os.environ) | environment | variables)
    return {cell.id: cell for cell in notebook.cells}


def text(cell: Any, stream: str = "stdout") -> str:
    return "".join(
        output.text for output in cell.outputs if output.output_type == "stream" and output.name == stream
    )


def row(cell: Any, label: str) -> list[str]:
    """Return the words after `label` on the one line of the cell's text that begins with it."""
    (found,) = [line for line in text(cell).splitlines() if line.startswith(label)]
    return found.removeprefix(label).split()


@pytest.fixture(scope="module")
def source() -> Any:
    return nbformat.read(FIRST_MATRIX, as_version=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def cells(source: Any, folder: Path) -> dict[str, Any]:
    """The notebook's cells with their outputs, and after them a week's choice that sees one bar too many."""
    notebook = copy.deepcopy(source)
    sources = {cell.id: cell.source for cell in notebook.cells}
    peeking = sources["decide"].replace("start - WINDOW : start]", "start - WINDOW + 1 : start + 1]")
    assert peeking != sources["decide"]
    notebook.cells.append(nbformat.v4.new_code_cell(SAVE, id="save"))
    notebook.cells.append(nbformat.v4.new_code_cell(peeking, id="peeking-decide"))
    for again in ("backtest", "look-ahead", "checks"):
        notebook.cells.append(forgiven_cell(sources[again], f"peeking-{again}"))
    return run(notebook, folder)


@pytest.fixture(scope="module")
def computed(cells: dict[str, Any], folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "computed.npz") as arrays:
        return dict(arrays)


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    for cell in code:
        assert cell.outputs == []
        assert cell.execution_count is None


def test_its_cells_are_short(source: Any) -> None:
    assert max(len(cell.source.splitlines()) for cell in source.cells) <= 30


def test_every_cell_runs_without_an_error_a_warning_or_a_word_on_stderr(
    source: Any, cells: dict[str, Any]
) -> None:
    for cell in source.cells:
        if cell.cell_type != "code":
            continue
        ran = cells[cell.id]
        assert ran.execution_count is not None
        assert [output for output in ran.outputs if output.output_type == "error"] == []
        assert text(ran, "stderr") == ""


def test_it_leaves_no_file_behind(cells: dict[str, Any], folder: Path) -> None:
    left = {path.name for path in folder.iterdir()}
    assert left <= {"computed.npz", "ipython", "kernel.json"}


def test_it_says_how_many_rows_the_join_kept(cells: dict[str, Any], computed: dict[str, np.ndarray]) -> None:
    kept = len(computed["log_returns"]) + 1
    assert f"{kept:,} of 6,000 times have a price of every symbol" in text(cells["prices"])
    assert f"{6000 - kept:,} were dropped" in text(cells["prices"])


def test_each_engine_and_the_worker_agree_with_serial_within_the_bound(
    cells: dict[str, Any], computed: dict[str, np.ndarray]
) -> None:
    bound = 2 * len(computed["log_returns"]) * np.finfo(np.float64).eps
    assert text(cells["comparison"]).startswith(f"allowed difference: {bound:.1e}\n")
    names = ["serial", "numpy", "worker"]
    if any(verdict.ok for verdict in survey().verdicts) and choose().fp64:
        names.append("opencl")
    for name in names:
        covariance_ms, correlation_ms, covariance_off, correlation_off = map(
            float, row(cells["comparison"], name)[:4]
        )
        assert covariance_ms > 0
        assert correlation_ms > 0
        assert max(covariance_off, correlation_off) <= bound
        assert (max(covariance_off, correlation_off) == 0) == (name == "serial")


def test_its_matrices_are_those_of_numpy(computed: dict[str, np.ndarray]) -> None:
    returns = computed["log_returns"]
    np.testing.assert_allclose(computed["correlation"], np.corrcoef(returns.T), rtol=0, atol=1e-12)
    np.testing.assert_allclose(computed["covariance"], np.cov(returns.T), rtol=1e-9, atol=1e-18)
    np.testing.assert_allclose(np.expm1(returns), computed["simple_returns"], rtol=0, atol=1e-14)


@pytest.mark.parametrize("identity", ["heatmap", "curve"])
def test_it_draws(cells: dict[str, Any], identity: str) -> None:
    images = [output.data for output in cells[identity].outputs if output.output_type == "display_data"]
    assert ["image/png" in image for image in images] == [True]


def test_weights_are_chosen_at_the_end_of_each_week_from_the_window_before(
    computed: dict[str, np.ndarray],
) -> None:
    times = pd.DatetimeIndex(computed["times"])
    week = times.isocalendar()[["year", "week"]].to_numpy()
    first = [bar for bar in range(1, len(times)) if tuple(week[bar]) != tuple(week[bar - 1])]
    assert computed["starts"].tolist() == [bar for bar in first if bar >= computed["window"]]
    assert len(computed["starts"]) > 20
    for start, weights in zip(computed["starts"], computed["weights"], strict=True):
        covariance = np.cov(computed["simple_returns"][start - computed["window"] : start].T)
        # least variance under a budget: the gradient is the same for every symbol
        gradient = covariance @ weights
        assert weights.sum() == pytest.approx(1, abs=1e-12)
        np.testing.assert_allclose(gradient, gradient.mean(), rtol=1e-9)


def test_in_sample_minimum_variance_varies_no_more_than_equal_weight(
    computed: dict[str, np.ndarray],
) -> None:
    symbols = computed["weights"].shape[1]
    for start, weights, least, equal in zip(
        computed["starts"],
        computed["weights"],
        computed["variances"],
        computed["equal_variances"],
        strict=True,
    ):
        window = computed["simple_returns"][start - computed["window"] : start]
        assert (window @ weights).var(ddof=1) == pytest.approx(least, rel=1e-9)
        assert (window @ np.full(symbols, 1 / symbols)).var(ddof=1) == pytest.approx(equal, rel=1e-9)
        assert least <= equal


def walked(returns: np.ndarray, starts: np.ndarray, weights: np.ndarray, cost: float) -> np.ndarray:
    """Return the money after each bar, kept as an amount in each symbol and paid for in money."""
    money, amounts, path = 1.0, np.zeros(returns.shape[1]), []
    for bar in range(starts[0], len(returns)):
        if bar in starts:
            target = money * weights[int(np.flatnonzero(starts == bar)[0])]
            money -= cost * np.abs(target - amounts).sum()
            amounts = money * weights[int(np.flatnonzero(starts == bar)[0])]
        amounts = amounts * (1 + returns[bar])
        money = amounts.sum()
        path.append(money)
    return np.array(path)


@pytest.mark.parametrize("which", ["minimum", "equal"])
def test_the_value_is_that_of_amounts_carried_from_bar_to_bar(
    computed: dict[str, np.ndarray], which: str
) -> None:
    weights = computed["weights"]
    if which == "equal":
        weights = np.full_like(weights, 1 / weights.shape[1])
    path = walked(computed["simple_returns"], computed["starts"], weights, float(computed["cost"]))
    np.testing.assert_allclose(computed[which], path, rtol=1e-10)
    assert computed[f"{which}_traded"][0] == pytest.approx(np.abs(weights[0]).sum())


def test_the_figures_shown_are_those_of_the_run(
    cells: dict[str, Any], computed: dict[str, np.ndarray]
) -> None:
    times = pd.DatetimeIndex(computed["times"])
    first = computed["starts"][0]
    bars = len(times) - first
    bars_a_year = bars / ((times[-1] - times[first - 1]).total_seconds() / (365.25 * 86400))
    shown = re.search(r"([\d,]+) bars in [\d.]+ years: ([\d,]+) bars a year", text(cells["figures"]))
    assert shown is not None
    assert shown.groups() == (f"{bars:,}", f"{bars_a_year:,.0f}")
    # a week has 120 hourly bars here, less those that the join dropped
    assert 5000 < bars_a_year < 120 * 365.25 / 7
    paths = [computed["minimum"], computed["equal"]]
    volatilities = [np.std(path / np.r_[1.0, path[:-1]] - 1, ddof=1) * np.sqrt(bars_a_year) for path in paths]
    assert row(cells["figures"], "volatility a year, out of sample") == [f"{one:.4f}" for one in volatilities]
    assert row(cells["figures"], "value of 1 at the end, costs paid") == [f"{path[-1]:.4f}" for path in paths]


def test_its_own_checks_hold(cells: dict[str, Any]) -> None:
    lines = text(cells["checks"]).splitlines()
    assert len(lines) == 5
    assert all(line.startswith("holds ") for line in lines)


def test_its_checks_fail_when_a_choice_sees_one_bar_of_the_week_to_come(cells: dict[str, Any]) -> None:
    outputs = cells["peeking-checks"].outputs
    assert [output.ename for output in outputs if output.output_type == "error"] == ["AssertionError"]
    failed = [line for line in text(cells["peeking-checks"]).splitlines() if line.startswith("FAILS ")]
    assert failed == ["FAILS  later returns change no earlier choice"]


def test_without_a_device_it_runs_on_numpy_and_says_so(source: Any, tmp_path: Path) -> None:
    cells = run(source, tmp_path, MTBRIDGE_DEVICE="a device that is not there")
    assert text(cells["engines"]).startswith("opencl is left out: ")
    assert "covariances by numpy on " in text(cells["backtest"])
    assert row(cells["comparison"], "worker")[4] == "numpy"
    assert "opencl" not in text(cells["comparison"])
    assert all(line.startswith("holds ") for line in text(cells["checks"]).splitlines())
