"""When float64 is taken in digits of 8 bits: products of dense factors, devices that have little of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_digits import EPS, Bench, within

from mtbridge.compute import int8_mma, opencl_engine, opencl_int8
from mtbridge.compute.forms import Form
from mtbridge.compute.int8_mma import CAPABILITIES, SETTINGS, SMALL_GROUP, int8_form
from mtbridge.compute.int8_products import DENSE
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl

DENSE_SHAPES = [(1, 700, 1), (33, 1100, 40), (5, 2081, 65)]


@pytest.mark.parametrize("shape", DENSE_SHAPES, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_dense_products_keep_the_bound_of_each_element(
    bench: Bench, shape: tuple[int, int, int], order: Any
) -> None:
    rows, inner, columns = shape
    random = np.random.default_rng(6)
    turned = np.asarray(random.standard_normal((inner, rows)) * 10.0 ** np.arange(rows), order=order)
    B = np.asarray(random.standard_normal((inner, columns)) + 3, order=order)
    product, gram = bench.dense(turned, B), bench.dense(B)
    assert product is not None
    assert gram is not None
    assert within(product, turned, B)
    assert within(gram, B, B)
    assert np.array_equal(gram, gram.T)


def test_factors_just_dense_keep_the_bound_and_others_are_refused(bench: Bench) -> None:
    """Columns that are large in turns but for 2 * DENSE rows, all that lies there as small as may be."""
    inner = 1200
    # what two dense factors have in common outweighs what is dropped
    assert 2 * DENSE / 32**2 >= 1.01 / 2
    random = np.random.default_rng(7)
    X = 1e-9 * random.standard_normal((inner, 2))
    half = inner // 2 + DENSE
    X[:half, 0], X[-half:, 1] = 1 / 32 + 1e-6, 1 / 32 + 1e-6
    X[0, 0], X[-1, 1] = 0.98, 0.98
    found = bench.dense(X)
    assert found is not None
    assert within(found, X, X)
    # one large element too few
    X[half - 1, 0] = 1 / 32 - 1e-6
    assert bench.dense(X) is None


@pytest.mark.parametrize("bad", ["nan", "inf", "short", "zero", "sparse"])
def test_what_is_not_dense_is_refused(bench: Bench, bad: str) -> None:
    X = np.random.default_rng(8).standard_normal((1000, 3))
    if bad == "short":
        X = X[: 2 * DENSE - 1]
    elif bad == "sparse":
        X[::2, 1] = 0
    else:
        X[:, 1] = {"nan": np.nan, "inf": np.inf, "zero": 0.0}[bad]
    assert bench.dense(X) is None


def test_an_engine_takes_large_dense_products_in_digits_and_others_as_before(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    kernel = bench.device.kernel

    def noted(name: str, files: tuple[str, ...], *rest: Any) -> Any:
        seen.append(files[-1])
        return kernel(name, files, *rest)

    monkeypatch.setattr(bench.device, "kernel", noted)
    random = np.random.default_rng(10)
    A, B, thin = random.standard_normal((40, 900)), random.standard_normal((900, 33)), np.eye(900)[:, :33]
    right_by, left_by = bench.engine.upload(B), bench.engine.upload(A)
    found: list[Any] = [bench.engine.multiply(A, B), bench.engine.multiply(left_by, right_by)]
    assert "multiply/int8_mma.cl" in seen
    assert found[0].tobytes() == bench.engine.download(found[1]).tobytes()
    assert within(found[0], A.T, B)
    found = [bench.engine.gram(B), bench.engine.gram(right_by)]
    assert "gram/int8_mma.cl" in seen
    assert found[0].tobytes() == bench.engine.download(found[1]).tobytes()
    assert within(found[0], B, B)
    seen.clear()
    # counted, refused, and done as without digits
    assert np.array_equal(bench.engine.multiply(A, thin), A[:, :33])
    assert seen[-1] != "multiply/int8_mma.cl"
    seen.clear()
    assert bench.engine.multiply(A.astype(np.float32), B.astype(np.float32)).dtype == np.float32
    assert "multiply/int8_mma.cl" not in seen


def test_covariances_of_other_ways_are_taken_in_digits(bench: Bench) -> None:
    """A matrix that stays on the device, and one whose complete columns are told before."""
    X = np.random.default_rng(11).standard_normal((200, 40))
    resident: Any = bench.engine.upload(X)
    exact = np.cov(X, rowvar=False)
    close = 200 * EPS * np.sqrt(np.outer(np.diagonal(exact), np.diagonal(exact)))
    there = bench.engine.download(bench.engine.covariance_on_device(resident))
    assert (np.abs(there - exact) <= 4 * close).all()
    paired = bench.engine.pair_moments(X).covariance()
    assert (np.abs(paired - exact) <= 4 * close).all()
    X[3, 7] = np.nan
    there = bench.engine.download(bench.engine.covariance_on_device(bench.engine.upload(X)))
    others = np.arange(40) != 7
    assert np.isnan(there[7]).all()
    assert (np.abs(there - exact) <= 4 * close)[np.ix_(others, others)].all()


def test_digits_are_left_off_again(plain_bench: Bench) -> None:
    with open_opencl("cpu", tiled=SMALL_GROUP) as engine:
        engine.use_int8(0)
        engine.use_int8(None)
        assert engine._digits is None
        assert np.array_equal(engine.gram(np.eye(3)), np.eye(3))


def chosen(monkeypatch: pytest.MonkeyPatch, trusted: tuple[bool, str], capability: int) -> OpenCLEngine:
    """An engine as on a device of this capability, whose digits were found to be so."""
    asked: list[str] = []

    def verdict(key: str, number: int, *, family: str = "dmma") -> tuple[bool, str]:
        asked.append(family)
        return trusted if family == "int8_mma" else (False, "")

    monkeypatch.setattr(opencl_engine, "trusted", verdict)
    monkeypatch.setattr(opencl_int8, "trusted", verdict)
    engine = open_opencl("cpu", tiled=SMALL_GROUP)
    engine.kernels_device.capability = capability
    engine._untried = {"float64"}
    engine.centred_from = 0
    assert engine.moments(np.eye(3)).covariance()[0, 0] == pytest.approx(1 / 3)
    assert ("int8_mma" in asked) == (capability in CAPABILITIES)
    return engine


def test_a_device_with_little_float64_is_given_digits_once_they_are_right(
    plain_bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # their instructions are not for this device
    monkeypatch.setattr(int8_mma, "int8_form", lambda *_: plain_bench.form)
    with chosen(monkeypatch, (True, ""), 89) as engine:
        assert engine._digits == plain_bench.form
        assert engine.form_in_use("float64").file != "int8_mma"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("trusted", [(False, "the moments of 1 x 1 are wrong"), (True, "")])
def test_digits_that_are_wrong_or_cannot_be_built_are_left_out_with_a_word(
    plain_bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    trusted: tuple[bool, str],
) -> None:
    with chosen(monkeypatch, trusted, 89) as engine:
        assert engine._digits is None
    said = capsys.readouterr().err
    assert "int8_mma kernels" in said
    assert (trusted[1] or "building") in said


def test_devices_of_other_capabilities_are_not_asked(
    plain_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with chosen(monkeypatch, (True, ""), 75) as engine:
        assert engine._digits is None


def test_a_tile_that_does_not_fit_is_followed_by_a_narrower_one(
    plain_bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def form(capability: int, settings: Any = None) -> Form:
        tile = (settings or SETTINGS)["TILE"]
        tried.append(tile)
        return plain_bench.form if tile == 32 else int8_form(89)

    monkeypatch.setattr(int8_mma, "int8_form", form)
    assert int8_mma.built_form(plain_bench.device, 89) == plain_bench.form
    assert tried == [64, 32]
