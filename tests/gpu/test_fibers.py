"""Work-items as fibers (fibers.hpp): whether a barrier that is left out is seen, or one that few meet."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from given_lanes import compiled

KERNELS = r"""
#include "fibers.hpp"
#include <string>

Meeting meeting(64), second(64);
int shared[64], wrong;

void sums(bool first_barrier, bool second_barrier)
{
    for (int round = 0; round < 3; round++) {
        shared[local_id] = round;
        if (first_barrier)
            meeting.arrive_and_wait();
        // of an item before this one and of one behind it
        wrong += shared[(local_id + 1) % 64] != round || shared[(local_id + 63) % 64] != round;
        if (second_barrier)
            second.arrive_and_wait();
    }
}

int main(int, char **given)
{
    const std::string which = given[1];
    int done = 0;
    run_group(64, [&] {
        if (which == "some do not come" && local_id % 2)
            return;
        sums(which != "not written yet", which != "overwritten");
        meeting.arrive_and_wait([&] { done++; });
    });
    std::printf("%d wrong, done %d times", wrong, done);
}
"""

Run = Callable[[str], "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    program: Path = compiled(tmp_path_factory.mktemp("fibers"), [KERNELS])

    def ended(which: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, which], capture_output=True, text=True, check=False, timeout=100)

    return ended


def test_items_meet_at_barriers_and_what_is_done_last_is_done_once(run: Run) -> None:
    done = run("all is well")
    assert (done.returncode, done.stdout) == (0, "0 wrong, done 1 times")


@pytest.mark.parametrize("which", ["not written yet", "overwritten"])
def test_a_barrier_that_is_left_out_is_seen_and_always_alike(run: Run, which: str) -> None:
    done = run(which)
    assert done.returncode == 0
    assert int(done.stdout.split()[0]) > 0
    assert run(which).stdout == done.stdout


def test_items_that_wait_for_ever_end_the_program(run: Run) -> None:
    done = run("some do not come")
    assert done.returncode == 4
    assert done.stderr == "item 0 waits for ever\n"
