"""What is said of cards that nobody measured: that it is an estimate, and how it follows from their rates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mtbridge.bench import int8_estimate
from mtbridge.bench.int8_estimate import CARDS, PRODUCTS, estimates, kernel_rate, lines
from mtbridge.compute import devices
from mtbridge.compute.int8_mma import CAPABILITIES, int8_form
from mtbridge.errors import DeviceError

SHARE = 0.7


@pytest.fixture(scope="module")
def resident() -> Iterator[object]:
    try:
        verdict = devices.choose("cpu")
    except DeviceError as error:
        pytest.skip(f"no OpenCL device on a processor: {error}")
    devices.load(verdict)
    from mtbridge.bench.gpu_device import open_resident

    with open_resident(verdict) as device:
        yield device


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_a_card_does_one_operation_on_doubles_in_64_and_eight_times_as_many_on_digits(
    card: int8_estimate.Card,
) -> None:
    assert card.capability in CAPABILITIES
    assert card.double == pytest.approx(card.single / 64, rel=0.01)
    assert card.int8 == pytest.approx(8 * card.single, rel=0.01)


def test_large_matrices_run_at_the_rate_of_the_products_and_small_ones_below() -> None:
    sizes = (100, 1000, 10_000, 30_000)
    found = [[one.digits for one in estimates(SHARE, size, size)] for size in sizes]
    for card, *rates in zip(CARDS, *found, strict=True):
        limit = card.int8 * SHARE / PRODUCTS
        assert all(rate < limit for rate in rates)
        assert rates == sorted(rates)
        assert rates[-1] > 0.97 * limit
        assert rates[0] < 0.7 * limit


def test_the_rate_grows_with_the_share_but_never_past_it() -> None:
    half, whole = (next(estimates(share, 4096, 4096)).digits for share in (0.5, 1))
    assert half < whole < 2 * half


def test_an_estimate_says_that_it_is_one() -> None:
    for one in estimates(SHARE, 8192, 8192):
        assert "an estimate" in str(one)
        assert one.card.name in str(one)
        assert one.digits > 5 * one.doubles
        assert one.digits > one.pairs


def test_lines_say_what_was_measured_and_then_what_to_expect(
    resident: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the instruction itself is NVIDIA's; the kernel runs everywhere
    measured = kernel_rate(resident, int8_form(0), 64, 33)
    assert measured > 0
    monkeypatch.setattr(int8_estimate, "instruction_rate", lambda device: 2 * measured)
    monkeypatch.setattr(int8_estimate, "kernel_rate", lambda *_: measured)
    first, *others = lines(resident, int8_form(0), rows=64, columns=33)
    assert "reaches 0.50 of the rate" in first
    assert len(others) == len(CARDS)
