"""A result in a file, read back bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mtbridge.cli.output import check_output, show_result, write_result
from mtbridge.errors import InputError, OptionError
from mtbridge.matrix import DTYPES, Result


def result(dtype: str = "float64", symbols: tuple[str, ...] | None = ("EURUSD", "A,B", 'quo"te')) -> Result:
    matrix = np.random.default_rng(0).standard_normal((3, 3)).astype(dtype) / 3
    matrix[1, 2] = matrix[2, 1] = np.nan
    matrix[0, 0] = np.finfo(dtype).tiny
    counts = None if symbols is None else np.full((3, 3), 9, np.int64)
    return Result(matrix, symbols, counts, 9, "numpy", "host", 0.5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_csv_has_labels_on_both_sides_and_every_bit(tmp_path: Path, dtype: str) -> None:
    given = result(dtype)
    write_result(given, tmp_path / "m.csv")
    found = pd.read_csv(tmp_path / "m.csv", index_col=0)
    assert tuple(found.columns) == tuple(found.index) == given.symbols
    assert found.to_numpy().astype(dtype).tobytes() == given.matrix.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_csv_of_a_product_is_bare_numbers(tmp_path: Path, dtype: str) -> None:
    given = result(dtype, symbols=None)
    write_result(given, tmp_path / "m.csv")
    found = pd.read_csv(tmp_path / "m.csv", header=None)
    assert found.to_numpy().astype(dtype).tobytes() == given.matrix.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("symbols", [("A", "B", "C"), None])
def test_parquet_keeps_labels_dtype_and_every_bit(
    tmp_path: Path, dtype: str, symbols: tuple[str, ...] | None
) -> None:
    given = result(dtype, symbols)
    write_result(given, tmp_path / "m.parquet")
    found = pd.read_parquet(tmp_path / "m.parquet")
    assert found.to_numpy().dtype == np.dtype(dtype)
    assert np.array_equal(found.to_numpy(), given.matrix, equal_nan=True)
    if symbols:
        assert tuple(found.columns) == tuple(found.index) == symbols


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("symbols", [("A", "B", "C"), None])
def test_npz_holds_matrix_symbols_and_counts(
    tmp_path: Path, dtype: str, symbols: tuple[str, ...] | None
) -> None:
    given = result(dtype, symbols)
    write_result(given, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as found:
        assert found["matrix"].tobytes() == given.matrix.tobytes()
        assert found["matrix"].dtype == np.dtype(dtype)
        assert ("symbols" in found) == ("counts" in found) == (symbols is not None)
        if symbols:
            assert tuple(found["symbols"]) == symbols
            assert (found["counts"] == 9).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_json_has_null_for_nan_and_every_bit(tmp_path: Path, dtype: str) -> None:
    given = result(dtype)
    write_result(given, tmp_path / "m.json")
    text = (tmp_path / "m.json").read_text()
    assert "NaN" not in text
    found = json.loads(text)
    matrix = np.array(found["matrix"], dtype=float).astype(dtype)
    assert found["matrix"][1][2] is None
    assert np.array_equal(matrix, given.matrix, equal_nan=True)
    assert tuple(found["symbols"]) == given.symbols
    assert found["counts"][0][0] == 9
    assert found["dtype"] == dtype
    assert found["engine"] == "numpy"


def test_nothing_but_the_file_is_left(tmp_path: Path) -> None:
    for suffix in (".csv", ".parquet", ".npz", ".json"):
        write_result(result(), tmp_path / f"m{suffix}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.csv", "m.json", "m.npz", "m.parquet"]


def test_a_suffix_in_capitals_is_the_same_suffix(tmp_path: Path) -> None:
    for suffix in (".CSV", ".NPZ", ".Json", ".PARQUET"):
        check_output(tmp_path / f"m{suffix}")
        write_result(result(), tmp_path / f"m{suffix}")
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.parametrize("name", ["m.xlsx", "m", "m.csv.gz", ".csv", "m.npy"])
def test_an_unknown_suffix_is_refused_with_those_that_are_known(name: str) -> None:
    with pytest.raises(OptionError, match=r"must end in .csv, .parquet, .npz or .json"):
        check_output(Path(name))


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        write_result(result(), tmp_path / "nowhere" / "m.csv")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "m.npz").write_text("old")
    monkeypatch.setattr(np, "savez", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_result(result(), tmp_path / "m.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["m.npz"]
    assert (tmp_path / "m.npz").read_text() == "old"


def test_a_table_on_the_terminal_has_every_column(capsys: pytest.CaptureFixture[str]) -> None:
    many = tuple(f"SYM{n:03}" for n in range(60))
    show_result(Result(np.eye(60), many, None, 9, "numpy", "host", 0.5), decimals=4)
    printed = capsys.readouterr().out
    assert all(name in printed for name in many)
    assert "..." not in printed
    assert "1.0000" in printed
