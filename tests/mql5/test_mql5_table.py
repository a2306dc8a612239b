"""The saved table: read back as it was, and never half there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from harness.programs import Runner

LABELS = {
    "plain": ["EURUSD", "GBPUSD.m", "#US30"],
    "commas": ["EUR,USD", ",", "a,,b"],
    "quotation marks": ['"', 'the "big" one', '""', '"quoted"'],
    "line ends": ["two\nlines", "carriage\rreturn", "both\r\n", "\nfirst"],
    "all at once": ['a,"b"\r\nc', "EURUSD", '",\n"'],
    "blanks and other alphabets": [" before", "after ", "Золото", "日経225", "\N{EURO SIGN}"],
}
OLD = b"what was there before\r\n"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file that bears the name already."""
    path = tmp_path / "table.csv"
    path.write_bytes(OLD)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("what", LABELS)
def test_pandas_reads_labels_and_numbers_back_as_they_were(run: Runner, tmp_path: Path, what: str) -> None:
    labels = LABELS[what]
    assert run("TableProbe", InpLabels="|".join(labels)).text == "saved: error 0"
    table = pd.read_csv(tmp_path / "table.csv", index_col=0, dtype=str, encoding="utf-8")
    assert list(table.columns) == labels
    assert list(table.index) == labels
    # a double with 17 digits comes back bit for bit
    expected = (np.arange(len(labels) ** 2) - 1) / 3.0
    assert [float(cell) for cell in table.to_numpy().ravel()] == list(expected)


def test_only_cells_that_need_it_are_quoted(run: Runner, tmp_path: Path) -> None:
    run("TableProbe", InpLabels='EURUSD|a,"b"')
    lines = (tmp_path / "table.csv").read_bytes().split(b"\r\n")
    assert lines[0] == b',EURUSD,"a,""b"""'
    assert lines[1].startswith(b"EURUSD,")
    assert lines[2].startswith(b'"a,""b""",')


def test_a_whole_table_takes_the_place_of_the_old_file(run: Runner, old: Path) -> None:
    assert run("TableProbe").text == "saved: error 0"
    assert old.read_bytes().startswith(b",EURUSD,GBPUSD\r\n")
    assert names(old.parent) == ["table.csv"]


@pytest.mark.parametrize("room", [0, 1, 15, 16, 40])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(run: Runner, old: Path, room: int) -> None:
    assert run("TableProbe", DISK_BYTES=room).text == "not saved: error 5026"
    assert old.read_bytes() == OLD
    assert names(old.parent) == ["table.csv"]


def test_a_file_that_another_program_holds_open_stays_as_it_was(run: Runner, old: Path) -> None:
    assert run("TableProbe", FILE_IN_USE="table.csv").text == "not saved: error 5020"
    assert old.read_bytes() == OLD
    assert names(old.parent) == ["table.csv"]


def test_the_rest_of_a_program_that_was_ended_by_force_is_no_hindrance(run: Runner, old: Path) -> None:
    (old.parent / "table.csv.tmp").write_bytes(b"half a table")
    assert run("TableProbe").text == "saved: error 0"
    assert names(old.parent) == ["table.csv"]


def test_two_programs_that_save_the_same_file_do_not_mix(run: Runner, old: Path) -> None:
    """The second finds the temporary file open: it saves nothing, and does not remove what is not its own."""
    (old.parent / "table.csv.tmp").write_bytes(b"of the other program")
    assert run("TableProbe", FILE_IN_USE="table.csv.tmp").text == "not saved: error 5004"
    assert old.read_bytes() == OLD
    assert (old.parent / "table.csv.tmp").read_bytes() == b"of the other program"
