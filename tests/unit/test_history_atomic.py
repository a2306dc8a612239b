"""A file is written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mtbridge.errors import InputError
from mtbridge.history.atomic import replace_file


def test_the_destination_is_the_old_file_until_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text("old")
    with replace_file(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert (temporary.parent, temporary.suffix) == (path.parent, ".csv")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def write_half(path: Path) -> None:
    with replace_file(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError):
        write_half(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_no_file_where_there_was_none(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        write_half(tmp_path / "matrix.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_and_a_folder_are_errors_that_name_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"), replace_file(tmp_path / "no" / "matrix.csv"):
        pass
    with pytest.raises(InputError, match="is a folder"), replace_file(tmp_path):
        pass


@pytest.mark.skipif(os.name != "posix", reason="symbolic links need rights on Windows")
def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    with replace_file(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.skipif(os.name != "posix", reason="there are no named pipes in folders on Windows")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with replace_file(pipe) as temporary:
        assert temporary == pipe
    assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "matrix.csv").symlink_to("/dev/full")
    with (
        pytest.raises(InputError, match="make room"),
        replace_file(tmp_path / "matrix.csv") as temporary,
    ):
        temporary.write_text("numbers")


def test_a_name_that_no_file_can_have_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="another name"), replace_file(tmp_path / ("a" * 300 + ".csv")):
        pass


def test_another_error_of_the_block_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(ConnectionResetError), replace_file(tmp_path / "matrix.csv"):
        raise ConnectionResetError
