"""Where tuned settings are kept: what counts, what is ignored, and that neither makes a wrong answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from mtbridge.compute import tuned
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.parameters import SPACES, Limits
from mtbridge.compute.tuned import LARGEST_FILE, Target, TunedSet, keep, kept_sets, tuned_for
from mtbridge.compute.tuning_check import every_error
from mtbridge.matrix import DTYPES
from mtbridge.sources import kernels_hash
from mtbridge.sources import tuned as shipped

LIMITS = Limits(vector_bytes=64, largest_group=4096, local_bytes=1 << 15)
TARGET = Target("Platform | 1 | Device | driver 1", 64, "packed", "float32")
FOUND = TunedSet(TARGET, {**shipped("cpu")["64"]["float32"], "UNROLL": 4}, 0.3, 1.1)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of its own, empty; the machine's is left alone."""
    monkeypatch.setattr(tuned, "cache_folder", lambda: tmp_path)
    return tmp_path / "tuned.json"


@pytest.fixture
def engine(verdict: Verdict, kept: Path) -> Iterator[OpenCLEngine]:
    with open_opencl("cpu") as found:
        yield found


def neighbour(engine: OpenCLEngine, dtype: str) -> dict[str, int]:
    """A candidate that is not the shipped set."""
    space = SPACES[engine.target(dtype).form]
    start = engine.form(dtype).defines
    return next(s for s in space.outwards(start, dtype, engine.limits) if s != start)


def right(engine: OpenCLEngine, dtype: str) -> bool:
    return every_error(engine, dtype, np.random.default_rng(3)) <= 1


def test_what_was_kept_is_found_again(kept: Path) -> None:
    assert tuned_for(TARGET, LIMITS) == (None, "")
    keep(FOUND)
    assert tuned_for(TARGET, LIMITS) == (FOUND, "")
    assert [path.name for path in kept.parent.iterdir()] == ["tuned.json"], "no draft is left"


@pytest.mark.parametrize(
    "change",
    [
        {"device": "Platform | 1 | Device | driver 2"},
        {"vector_bytes": 32},
        {"form": "register_tiled"},
        {"dtype": "float64"},
        {"kernels": "of other kernels"},
    ],
    ids=str,
)
def test_a_set_counts_for_nothing_else(kept: Path, change: dict[str, object]) -> None:
    keep(FOUND)
    assert tuned_for(msgspec.structs.replace(TARGET, **change), LIMITS) == (None, "")


def test_a_newer_set_replaces_the_older_and_leaves_others(kept: Path) -> None:
    other = msgspec.structs.replace(FOUND, target=msgspec.structs.replace(TARGET, dtype="float64"))
    newer = msgspec.structs.replace(FOUND, speedup=1.2)
    for found in (FOUND, other, newer):
        keep(found)
    assert sorted(kept_sets()[0], key=lambda s: s.target.dtype) == [newer, other]


def test_sets_of_other_kernels_are_dropped_from_the_file(kept: Path) -> None:
    old = msgspec.structs.replace(FOUND, target=msgspec.structs.replace(TARGET, kernels="old"))
    kept.write_bytes(msgspec.json.encode([old]))
    keep(FOUND)
    assert kept_sets()[0] == [FOUND]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff",
        b"null",
        b"{}",
        b"[1]",
        b'[{"target": null}]',
        b"[" * 100_000,
        b"[" + b" " * LARGEST_FILE + b"]",
        msgspec.json.encode([FOUND]).replace(b"0.3", b"NaN"),
        msgspec.json.encode([FOUND]).replace(b":4", b":4.5"),
        msgspec.json.encode([FOUND]).replace(b":4", b":1" + b"0" * 5000),
        msgspec.json.encode([FOUND]).replace(b'"error"', b'"errors"'),
    ],
    ids=range(12),
)
def test_a_damaged_file_is_ignored_with_one_sentence_and_written_anew(kept: Path, content: bytes) -> None:
    kept.write_bytes(content)
    found, note = tuned_for(TARGET, LIMITS)
    assert found is None
    assert str(kept) in note
    assert "ignored" in note
    assert note.count("\n") == 0
    keep(FOUND)
    assert tuned_for(TARGET, LIMITS) == (FOUND, "")


def test_a_folder_in_place_of_the_file_is_ignored(kept: Path) -> None:
    kept.mkdir()
    found, note = tuned_for(TARGET, LIMITS)
    assert found is None
    assert "ignored" in note


@pytest.mark.parametrize(
    "change",
    [
        {"settings": {}},
        {"settings": {**FOUND.settings, "WIDTH": 3}},
        {"settings": {**FOUND.settings, "BLOCK_ROWS": 4}},
        {"settings": {**FOUND.settings, "BLOCK_INNER": -256}},
        {"settings": {**FOUND.settings, "UNROLL) system(1": 1}},
        {"error": 1.5},
        {"error": -1.0},
    ],
    ids=str,
)
def test_a_set_that_breaks_a_rule_or_failed_its_check_is_ignored(
    kept: Path, change: dict[str, object]
) -> None:
    kept.write_bytes(msgspec.json.encode([msgspec.structs.replace(FOUND, **change)]))
    found, note = tuned_for(TARGET, LIMITS)
    assert found is None
    assert "float32 settings" in note
    assert "`mtbridge tune` measures again" in note


def test_the_hash_of_the_kernels_does_not_change_by_itself() -> None:
    before = kernels_hash()
    kernels_hash.cache_clear()
    assert kernels_hash() == before
    assert len(before) == 64


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_engine_takes_what_was_kept_for_its_device_and_stays_right(
    engine: OpenCLEngine, dtype: str, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = neighbour(engine, dtype)
    keep(TunedSet(engine.target(dtype), settings, 0.2, 1.3))
    random = np.random.default_rng(4)
    A, B = random.standard_normal((97, 300)).astype(dtype), random.standard_normal((300, 145)).astype(dtype)
    bound = 2 * 300 * np.finfo(dtype).eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))
    with open_opencl("cpu") as other:
        assert other.form_in_use(dtype).defines == settings
        assert other.form_in_use("float64" if dtype == "float32" else "float32").defines != settings
        assert (np.abs(other.multiply(A, B).astype(float) - engine.multiply(A, B)) <= bound).all()
        assert right(other, dtype)
    assert capsys.readouterr().err == ""


def test_a_hostile_file_is_named_once_and_changes_no_answer(
    engine: OpenCLEngine, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.write_bytes(b"[{}]")
    with open_opencl("cpu") as other:
        for dtype in DTYPES:
            assert other.form_in_use(dtype) == engine.form_in_use(dtype) == engine.form(dtype)
    assert capsys.readouterr().err.count("mtbridge: ") == 1


def test_a_set_that_the_compiler_refuses_is_replaced_by_the_shipped_one(
    engine: OpenCLEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    # a rule that only the compiler knows: nothing that the store lets through is refused on this device
    engine._forms["float32"] = engine.form("float32", {**engine.form("float32").defines, "WIDTH": 5})
    engine._unproven.add("float32")
    assert right(engine, "float32")
    assert engine.form_in_use("float32") == engine.form("float32")
    said = capsys.readouterr().err
    assert said.count("mtbridge: the tuned float32 settings") == 1


def test_a_set_for_the_gpu_kernels_is_not_taken_by_the_cpu_kernels(engine: OpenCLEngine) -> None:
    target = msgspec.structs.replace(engine.target("float32"), form="register_tiled")
    keep(TunedSet(target, shipped("gpu")["small"]["float32"], 0.2, 1.0))
    with open_opencl("cpu") as other:
        assert other.form_in_use("float32") == engine.form("float32")
