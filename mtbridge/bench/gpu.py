"""`mtbridge bench gpu`: products, covariances and windows whose input and answer lie on the device.

Every contender is checked against a wider reference before it is timed, into memory full of NaN. Then all are
timed in turn by the clocks of their devices, on copies of the input that no cache holds together.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from mtbridge.bench.gpu_cases import Named, listed
from mtbridge.bench.gpu_ceilings import blank_row, copy_row, fma_row
from mtbridge.bench.gpu_data import Case, case_of
from mtbridge.bench.gpu_peers import PEERS, release
from mtbridge.bench.gpu_trial import Checked, Trial, checked, in_turn
from mtbridge.bench.measure import ROUNDS, spread
from mtbridge.bench.memory_rows import reason
from mtbridge.compute import devices
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES

if TYPE_CHECKING:
    from mtbridge.bench.gpu_contenders import Bed

Row = dict[str, Any]
Say = Callable[[str], None]


def measure_gpu(
    say: Say,
    *,
    cases: Sequence[Named] | None = None,
    device: str | None = None,
    peers: Sequence[str] = PEERS,
    rounds: int = ROUNDS,
) -> Iterator[list[Row]]:
    """Yield the rows of the ceilings of a device, then those of each case in one type after the other.

    Parameters
    ----------
    say : called with a line when something begins
    cases : which; by default all of `listed()`
    device : which device, as `devices.choose` takes it
    peers : those of PEERS to put beside it
    rounds : windows of a contender

    Yields
    ------
    list of rows
        As in `mtbridge.bench`, and more keys (see `blank_row`). A contender that could not run, or whose
        answer is wrong, has no `median_s`, and a note that says why.

    Raises
    ------
    DeviceError
        If no device is usable. What a usable one cannot do is a row whose note says why.
    """
    verdict = devices.choose(device)
    # before pyopencl is imported
    devices.load(verdict)
    from mtbridge.bench.gpu_contenders import Bed
    from mtbridge.bench.gpu_device import open_resident
    from mtbridge.bench.gpu_several import ALL

    with open_resident(verdict) as there, closing(Bed(there, verdict.key, tuple(peers))) as bed:
        if there.kind == "cpu":
            say(f"{there.name} is a processor: the usual sizes take it hours, --sizes 256 seconds")
        say("ceilings")
        types = [dtype for dtype in DTYPES if dtype in bed.families.chosen.dtypes]
        ceilings = [*(fma_row(there, dtype, rounds=rounds) for dtype in types), copy_row(there)]
        yield ceilings
        limits = {(row["case"], row["dtype"]): row for row in ceilings}
        for named in listed() if cases is None else cases:
            for dtype in DTYPES:
                say(f"{named.title}, {dtype}")
                if lacking := bed.cards.lacking(named):
                    yield [blank_row(named.title, dtype, ALL, there.name, lacking)]
                    continue
                found = _measured(case_of(named, dtype), bed, rounds, say)
                yield [_with_shares(row, limits) for row in found]
                # what is kept for repeated calls; some of it hangs in cycles
                gc.collect()
                bed.release()
                release()


def wrong(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence for each row whose answer was wrong."""
    for row in rows:
        if row["note"].startswith("wrong"):
            yield f"{row['contender']} of {row['case']} in {row['dtype']} is {row['note']}"


def _measured(case: Case, bed: Bed, rounds: int, say: Say) -> list[Row]:
    contenders = bed.contenders(case)
    trials: dict[str, Trial] = {}
    passed: dict[str, Checked] = {}
    notes = {one.name: one.note for one in contenders}
    for one in contenders:
        if one.make is None:
            continue
        say(f"  {one.name} is checked")
        try:
            trial = one.make()
            if one.answers:
                passed[one.name] = checked(trial, one.case or case)
            else:
                trial.run(0)
        except (ArithmeticError, DeviceError, MemoryError) as fault:
            notes[one.name] = reason(fault).removesuffix(".")
            continue
        trials[one.name] = trial
    say("  all are timed in turn")
    seconds = in_turn(trials, rounds=rounds)
    medians = {name: statistics.median(spent) for name, (spent, _) in seconds.items()}
    rows = []
    for one in contenders:
        row = blank_row(case.named.title, case.dtype.name, one.name, one.device, notes[one.name])
        if one.name in medians:
            spent, walls = seconds[one.name]
            row |= _figures(one.case or case, passed.get(one.name), spent, walls)
            row["versus"] = {
                peer: medians[peer] / medians[one.name] for peer in one.against if peer in medians
            }
        rows.append(row)
    return rows


def _figures(case: Case, passed: Checked | None, spent: list[float], walls: list[float]) -> Row:
    median = statistics.median(spent)
    return {
        "median_s": median,
        "spread_s": spread(spent),
        "fastest_s": min(spent),
        "slowest_s": max(spent),
        "wall_s": statistics.median(walls),
        "gflops": None if case.flops is None else case.flops / median / 1e9,
        "gb_per_s": None if case.written is None else case.written / median / 1e9,
        **(
            {}
            if passed is None
            else {"error": passed.error, "bias": passed.bias, "same_bits": passed.same_bits}
        ),
    }


def _with_shares(row: Row, limits: dict[tuple[str, str], Row]) -> Row:
    """Return the row with the part of each ceiling that it reached; those are the device's, not a peer's."""
    for ceiling, dtype, unit in (("fma", row["dtype"], "gflops"), ("copy", "float32", "gb_per_s")):
        limit = limits.get((f"ceiling {ceiling}", dtype))
        if row[unit] is not None and limit is not None and limit[unit] and row["device"] == limit["device"]:
            row["shares"][ceiling] = row[unit] / limit[unit]
    return row
