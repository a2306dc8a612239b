"""Timing of contenders beside each other."""

from __future__ import annotations

import threading
import time

import pytest

from mtbridge.bench import measure
from mtbridge.bench.measure import interleaved, spread


def test_contenders_are_timed_in_turn_after_a_warm_up() -> None:
    order: list[str] = []

    def work(name: str, seconds: float) -> None:
        order.append(name)
        time.sleep(seconds)

    seconds = interleaved(
        {"quick": lambda: work("quick", 0.005), "slow": lambda: work("slow", 0.05)}, rounds=3
    )
    assert order[:2] == ["quick", "slow"]
    assert [name for name, before in zip(order[2:], order[1:-1], strict=True) if name != before] == [
        "quick",
        "slow",
    ] * 3
    assert {name: len(found) for name, found in seconds.items()} == {"quick": 3, "slow": 3}
    assert min(seconds["quick"]) >= 0.005
    assert min(seconds["slow"]) >= 0.05


def test_the_spread_is_half_the_distance_between_the_quartiles() -> None:
    assert spread([1.0, 2.0, 3.0]) == 1
    assert spread([5.0]) == 0
    assert spread([float(n) for n in range(1, 12)]) == pytest.approx(3)


def test_a_rest_ends_when_no_other_thread_works(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measure.rest() < 0.5

    def spin(seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    spinning = threading.Thread(target=spin, args=(0.4,))
    spinning.start()
    assert measure.rest() > 0.3
    spinning.join()

    monkeypatch.setattr(measure, "LONGEST_REST", 0.1)
    spinning = threading.Thread(target=spin, args=(0.6,))
    spinning.start()
    assert measure.rest() < 0.5, "it does not wait for ever"
    spinning.join()
