"""CMtbClient against the real worker."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from harness.programs import Runner, Served

from mtbridge.server import WorkerProcess
from mtbridge.wire import Limits

Start = Callable[..., subprocess.Popen[str]]
OPERATIONS = ("multiply", "gram", "covariance", "correlation", "ddof")


def data(rows: int = 40, cols: int = 3) -> np.ndarray:
    """The matrix that ClientProbe makes."""
    i = np.arange(rows * cols)
    return (((i * 7919) % 1009) / 1009.0 + ((i * 31) % 17) * 0.25).reshape(rows, cols)


def expected(operation: str, X: np.ndarray) -> np.ndarray:
    """What numpy says; multiply takes the same numbers in two shapes."""
    answers: dict[str, np.ndarray] = {
        "multiply": X @ X.reshape(X.shape[1], X.shape[0]),
        "gram": X.T @ X,
        "covariance": np.cov(X, rowvar=False),
        "ddof": np.cov(X, rowvar=False, ddof=0),
        "correlation": np.corrcoef(X, rowvar=False),
    }
    return answers[operation]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_agrees_with_numpy(run: Runner, worker_port: int, operation: str) -> None:
    answer = run("ClientProbe", InpPort=worker_port, InpActions=f"connect,{operation}").numbers(operation)
    np.testing.assert_allclose(answer, expected(operation, data()).ravel(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("operation", ["gram", "covariance", "correlation"])
def test_the_type_matrix_gives_the_numbers_of_the_array(
    run: Runner, worker_port: int, operation: str
) -> None:
    done = run("ClientProbe", InpPort=worker_port, InpActions=f"connect,{operation},matrix_{operation}")
    assert np.array_equal(done.numbers(operation), done.numbers(f"matrix_{operation}"))


def test_matrices_are_multiplied(run: Runner, worker_port: int) -> None:
    answer = run("ClientProbe", InpPort=worker_port, InpActions="connect,matrix_multiply").numbers(
        "matrix_multiply"
    )
    np.testing.assert_allclose(answer, expected("gram", data()).ravel(), rtol=1e-12)


def test_a_call_connects_again_by_itself(run: Runner, worker_port: int) -> None:
    assert (
        len(
            run("ClientProbe", InpPort=worker_port, InpActions="connect,close,covariance").numbers(
                "covariance"
            )
        )
        == 9
    )


def test_ping_tells_program_engine_device_and_limits(run: Runner, worker_port: int) -> None:
    told = run("ClientProbe", InpPort=worker_port, InpActions="connect,ping").line("worker:").split(", ")
    assert told[0].startswith("mtbridge ")
    assert told[1] == "numpy"
    assert told[-1] == f"{Limits().rows} rows"


@pytest.mark.parametrize("model", ["whole", "first"])
@pytest.mark.parametrize("seed", range(6))
def test_short_reads_and_sends_change_nothing(run: Runner, worker_port: int, seed: int, model: str) -> None:
    done = run(
        "ClientProbe",
        InpPort=worker_port,
        InpActions="connect,multiply,covariance,correlation,ping",
        InpRows=150,
        FUZZ=1,
        SEED=seed,
        READ=model,
    )
    X = data(150)
    for operation in ("multiply", "covariance", "correlation"):
        np.testing.assert_allclose(
            done.numbers(operation), expected(operation, X).ravel(), rtol=1e-12, atol=1e-14
        )


@pytest.mark.parametrize("model", ["whole", "first"])
def test_frames_of_megabytes_pass_whole(run: Runner, worker_port: int, model: str) -> None:
    done = run(
        "ClientProbe",
        InpPort=worker_port,
        InpActions="connect,multiply",
        InpRows=600,
        InpCols=200,
        READ=model,
        InpTimeout=20000,
    )
    np.testing.assert_allclose(
        done.numbers("multiply"), expected("multiply", data(600, 200)).ravel(), rtol=1e-12
    )


def test_the_workers_error_reply_is_shown_as_a_sentence(run: Runner, worker_port: int) -> None:
    done = run("ClientProbe", InpPort=worker_port, InpActions="connect,rolling,covariance", InpWindow=0)
    assert done.line("rolling:").startswith("error 10 status 6: The worker refused (status 6): ")
    assert "`$.window`" in done.line("rolling:")
    # a refusal is an answer: the connection goes on
    assert len(done.numbers("covariance")) == 9


def test_an_option_that_the_worker_refuses_has_its_own_status(run: Runner, worker_port: int) -> None:
    assert (
        run("ClientProbe", InpPort=worker_port, InpActions="connect,badddof")
        .line("badddof:")
        .startswith("error 10 status 6: ")
    )


def test_sizes_that_disagree_are_refused_before_anything_is_sent(run: Runner) -> None:
    done = run("ClientProbe", InpActions="wrong,matrix_wrong")
    assert done.line("wrong:") == "error 1 status 0: 120 numbers are no matrix of 41 rows and 3 columns."
    assert done.line("matrix_wrong:") == "error 1 status 0: A has 3 columns but B has 40 rows."


def test_more_than_the_worker_takes_is_refused_before_it_is_sent(run: Runner) -> None:
    with WorkerProcess(engine_name="numpy", limits=Limits(rows=30)) as worker:
        port = worker.endpoint.rsplit(":", 1)[1]
        done = run("ClientProbe", InpPort=port, InpActions="connect,covariance")
    assert done.line("covariance:").startswith(
        "error 9 status 0: A matrix of 40 rows, 3 columns and 960 bytes is more than"
    )
    assert "(30 rows, " in done.line("covariance:")


def talked_through(program: subprocess.Popen[str]) -> None:
    """Read what a program says until it waits."""
    assert program.stdout is not None
    while program.stdout.readline().strip() != "waiting":
        assert program.poll() is None


def last_line(program: subprocess.Popen[str], folder: Path) -> str:
    """Let a program that waits go on, and return the last that it says."""
    (folder / "GO.csv").touch()
    return program.communicate(timeout=30)[0].splitlines()[-1]


OVER_THE_LIMIT = (
    "covariance: error 9 status 0: A matrix of 5000 rows, 3 columns and 120000 bytes "
    f"is more than the worker takes ({Limits().rows} rows, {Limits().columns} columns, 100000 bytes): "
    "send fewer bars or symbols."
)


def test_the_limits_are_asked_for_before_the_first_request(start: Start, tmp_path: Path) -> None:
    """ZeroMQ would cut the connection without a word, and the terminal would compute for a wrong reason."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
    # the clock runs so fast that the 5 s until a client may try again are over when the worker has started
    program = start(
        "ClientProbe",
        InpPort=port,
        InpActions="connect,wait,covariance",
        InpRows=5000,
        InpFallback=True,
        InpTimeout=1000000,
        CLOCK_SPEED=100,
    )
    talked_through(program)
    with WorkerProcess(f"tcp://127.0.0.1:{port}", engine_name="numpy", limits=Limits(frame_bytes=100000)):
        assert last_line(program, tmp_path) == OVER_THE_LIMIT


@pytest.mark.parametrize("closed", ["", "close,"], ids=["open", "closed"])
def test_the_limits_of_a_worker_that_was_restarted_count(
    start: Start, serve: Callable[..., Served], tmp_path: Path, closed: str
) -> None:
    first = serve()
    program = start(
        "ClientProbe",
        InpPort=first.port,
        InpActions=f"connect,{closed}wait,covariance",
        InpRows=5000,
        InpFallback=True,
    )
    talked_through(program)
    first.stop()
    with WorkerProcess(
        f"tcp://127.0.0.1:{first.port}", engine_name="numpy", limits=Limits(frame_bytes=100000)
    ):
        assert last_line(program, tmp_path) == OVER_THE_LIMIT


def test_limits_that_were_raised_meanwhile_are_asked_for_before_a_refusal(
    start: Start, serve: Callable[..., Served], tmp_path: Path
) -> None:
    with WorkerProcess(engine_name="numpy", limits=Limits(frame_bytes=100000)) as small:
        port = int(small.endpoint.rsplit(":", 1)[1])
        program = start("ClientProbe", InpPort=port, InpActions="connect,wait,covariance", InpRows=5000)
        talked_through(program)
    serve(port=port)
    np.testing.assert_allclose(
        [float(word) for word in last_line(program, tmp_path).split()[2:]],
        expected("covariance", data(5000)).ravel(),
        rtol=1e-12,
        atol=1e-14,
    )


def test_a_worker_that_was_restarted_is_found_again_in_the_same_call(
    start: Start, serve: Callable[..., Served], tmp_path: Path
) -> None:
    first = serve()
    program = start("ClientProbe", InpPort=first.port, InpActions="connect,covariance,wait,correlation")
    talked_through(program)
    first.stop()
    serve(port=first.port)
    np.testing.assert_allclose(
        [float(word) for word in last_line(program, tmp_path).split()[2:]],
        expected("correlation", data()).ravel(),
        rtol=1e-12,
    )


@pytest.mark.parametrize("operation", OPERATIONS)
def test_without_a_worker_the_terminal_computes_and_says_so(
    run: Runner, operation: str, unused_port: int
) -> None:
    done = run("ClientProbe", InpPort=unused_port, InpActions=f"connect,{operation}", InpFallback=True)
    np.testing.assert_allclose(
        done.numbers(operation, how="local"), expected(operation, data()).ravel(), rtol=1e-12
    )
    (said,) = [line for line in done.lines if line.startswith("mtbridge: the terminal computes by itself.")]
    assert "mtbridge serve" in said


def test_in_the_strategy_tester_the_terminal_computes_and_says_so(run: Runner, worker_port: int) -> None:
    done = run(
        "ClientProbe",
        InpPort=worker_port,
        InpActions="connect,correlation,covariance",
        InpFallback=True,
        TESTER=1,
    )
    np.testing.assert_allclose(
        done.numbers("covariance", how="local"), expected("covariance", data()).ravel(), rtol=1e-12
    )
    (said,) = [line for line in done.lines if line.startswith("mtbridge: the terminal computes by itself.")]
    assert "strategy tester has no sockets" in said


def test_missing_values_are_left_out_pair_by_pair(run: Runner, worker_port: int) -> None:
    holed = pd.DataFrame(data())
    holed.iloc[1, 1] = np.nan
    answer = run("ClientProbe", InpPort=worker_port, InpActions="connect,nan").numbers("nan")
    np.testing.assert_allclose(answer, holed.cov().to_numpy().ravel(), rtol=1e-12)


def test_the_terminal_alone_refuses_missing_values(run: Runner, unused_port: int) -> None:
    done = run("ClientProbe", InpPort=unused_port, InpActions="connect,nan", InpFallback=True)
    sentence = (
        "Row 1, column 1 is not a number, which only a worker leaves out: start one, or remove such rows"
    )
    assert done.line("nan:").startswith(f"error 1 status 0: {sentence}")


def test_a_refusal_of_the_worker_is_not_answered_by_the_terminal(run: Runner, worker_port: int) -> None:
    assert "error 10" in run(
        "ClientProbe", InpPort=worker_port, InpActions="connect,badddof", InpFallback=True
    ).line("badddof:")


def moved(run: Runner, port: int, action: str, **settings: object) -> np.ndarray:
    return run("ClientProbe", InpPort=port, InpActions=f"connect,{action}", **settings).numbers(action)


BARS = pd.DataFrame(data())
MOVING: dict[str, Callable[[], object]] = {
    "rolling": lambda: BARS.rolling(5).cov(),
    "rolling_biased": lambda: BARS.rolling(5).cov(ddof=0),
    "rolling_few_correlation": lambda: BARS.rolling(5, min_periods=3).corr(),
    "rolling_hole_correlation": lambda: (
        BARS.mask((BARS.index.to_numpy() == 1)[:, None] & (np.arange(3) == 1)).rolling(5).corr()
    ),
    "rolling_last": lambda: BARS.tail(5).cov(),
    "rolling_step": lambda: BARS.rolling(5).cov().unstack().iloc[::7],
    "rolling_row_column": lambda: BARS.rolling(5).cov().xs(2, level=1),
    "rolling_mean_correlation": lambda: (
        BARS.rolling(5).corr().unstack()[[(0, 1), (0, 2), (1, 2)]].mean(axis=1)
    ),
    "rolling_eigenvalue": lambda: np.linalg.eigvalsh(
        BARS.rolling(5).cov().to_numpy().reshape(-1, 3, 3)[4:]
    ).max(axis=1),
    "rolling_beta": lambda: BARS.rolling(5).cov().xs(0, level=1).div(BARS.rolling(5).var()[0], axis=0),
    "rolling_variance": lambda: (BARS @ [0.5, 0.25, 0.0]).rolling(5).var(),
    "expanding": lambda: BARS.expanding().cov(),
    "ewm": lambda: BARS.ewm(span=7).cov(),
    "ewm_biased": lambda: BARS.ewm(span=7).cov(bias=True),
    "ewm_last_correlation": lambda: BARS.ewm(span=7).corr().tail(3),
}


@pytest.mark.parametrize("action", MOVING)
def test_windows_agree_with_pandas(run: Runner, worker_port: int, action: str) -> None:
    answer, wanted = moved(run, worker_port, action), np.ravel(np.asarray(MOVING[action]()))
    if action == "rolling_eigenvalue":
        assert np.isnan(answer[:4]).all()
        answer = answer[4:]
    np.testing.assert_allclose(answer, wanted, rtol=1e-9, atol=1e-12)


def test_lags_agree_with_pandas(run: Runner, worker_port: int) -> None:
    answer = moved(run, worker_port, "lagged_correlation", InpWindow=2).reshape(5, 3, 3)
    for lag in range(-2, 3):
        expected = [[BARS[i].shift(lag).corr(BARS[j]) for j in range(3)] for i in range(3)]
        np.testing.assert_allclose(answer[2 + lag], expected, rtol=1e-9)


def test_the_newest_matrix_comes_as_the_type_matrix(run: Runner, worker_port: int) -> None:
    answer = moved(run, worker_port, "matrix_rolling")
    np.testing.assert_allclose(answer, np.ravel(BARS.tail(5).corr()), rtol=1e-9)
    answer = moved(run, worker_port, "matrix_ewm")
    np.testing.assert_allclose(answer, np.ravel(BARS.ewm(span=7).cov().tail(3)), rtol=1e-9)


def test_what_moves_needs_a_worker(run: Runner, unused_port: int) -> None:
    done = run("ClientProbe", InpPort=unused_port, InpActions="connect,rolling,lagged", InpFallback=True)
    assert "mtbridge serve" in done.line("rolling:")
    assert done.line("lagged:").startswith("error ")


@pytest.mark.parametrize(
    ("action", "settings", "words"),
    [
        ("rolling_few", {"InpWindow": 2}, "error 10 status 6: "),
        ("ewm", {"InpDecay": 0.5}, "error 10 status 6: "),
        ("rolling_variance_wrong", {}, "error 1 status 0: 4 weights are no portfolio of 3 symbols"),
        ("ewm", {"InpDecay": "nan"}, "error 1 status 0: The decay is not a number"),
        ("lagged", {"InpWindow": -1}, "error 1 status 0: -1 lags are not possible"),
        ("lagged", {"InpWindow": 40}, "error 10 status 6: "),
        (
            "expanding",
            {"InpRows": 3000, "InpCols": 300},
            "error 9 status 0: 3000 windows of 300 x 300 numbers",
        ),
        ("lagged", {"InpRows": 2000, "InpCols": 300, "InpWindow": 1500}, "error 9 status 0: 3001 matrices"),
    ],
)
def test_what_windows_and_lags_cannot_be_has_its_sentence(
    run: Runner, worker_port: int, action: str, settings: dict[str, object], words: str
) -> None:
    done = run("ClientProbe", InpPort=worker_port, InpActions=f"connect,{action}", **settings)
    assert done.line(f"{action}:").startswith(words)


@pytest.mark.parametrize("model", ["whole", "first"])
def test_windows_of_megabytes_pass_whole(run: Runner, worker_port: int, model: str) -> None:
    settings = {"InpRows": 1000, "InpCols": 20, "READ": model, "InpTimeout": 20000}
    answer = moved(run, worker_port, "rolling", **settings)
    expected = pd.DataFrame(data(1000, 20)).rolling(5).cov().to_numpy().ravel()
    np.testing.assert_allclose(answer, expected, rtol=1e-9, atol=1e-12)


def test_an_indicator_is_told_that_it_has_no_sockets(run: Runner, worker_port: int) -> None:
    done = run("ClientProbe", InpPort=worker_port, InpActions="connect", PROGRAM="indicator")
    assert "no sockets for indicators" in done.line("connect:")
