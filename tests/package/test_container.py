"""The container, run for real where podman is.

It needs root and the Debian packages `podman buildah podman-compose runc mmdebstrap catatonit iptables
containernetworking-plugins`. The base image is made from Debian's packages, so no image registry is asked;
only the package index is. pip's configuration of this machine is mounted while the image is built and is not
part of it.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from container_files import REPOSITORY, STOP_WITHIN, compose, the

from mtbridge.client import Client, Ping
from mtbridge.errors import NoReplyError

BASE = "localhost/mtbridge-test-base:bookworm"
COMMANDS = ("podman", "buildah", "podman-compose", "runc", "mmdebstrap", "catatonit", "iptables")

pytestmark = pytest.mark.timeout(900)


def run(
    *command: str | Path,
    environment: dict[str, str] | None = None,
    limit: float = 120.0,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a command within `limit` seconds; when it fails and `check` holds, fail with what it printed."""
    finished = subprocess.run(
        [str(word) for word in command],
        env=environment,
        text=True,
        capture_output=True,
        timeout=limit,
        check=False,
    )
    if check and finished.returncode:
        said = f"{finished.stdout}\n{finished.stderr}"[-4000:]
        pytest.fail(f"{command[0]} ended with {finished.returncode}: {said}")
    return finished


def pip_settings() -> dict[str, str]:
    """Return this machine's pip configuration by option name, from files and variables alike."""
    for python in (sys.executable, shutil.which("python3")):
        if python is None:
            continue
        listed = run(python, "-m", "pip", "config", "list", check=False)
        if listed.returncode == 0:
            break
    else:
        return {}
    settings = {}
    for line in listed.stdout.splitlines():
        name, _, value = line.partition("=")
        settings[name.rpartition(".")[2]] = str(ast.literal_eval(value))
    for variable in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        if os.environ.get(variable):
            settings.setdefault("cert", os.environ[variable])
    return settings


def pip_volumes(folder: Path) -> list[str]:
    """Return the options that show a build this machine's pip configuration and what it points to."""
    settings = pip_settings()
    text = "".join(f"{name} = {' '.join(value.split())}\n" for name, value in settings.items())
    configuration = folder / "pip.conf"
    configuration.write_text("[global]\n" + text)
    volumes = ["--volume", f"{configuration}:/etc/pip.conf:ro"]
    words = {word for value in settings.values() for word in value.split()}
    paths = {Path(word) for word in words if word.startswith("/")}
    # the pages of an index in a folder point to files beside it
    paths |= {Path(word.removeprefix("file://")).parent for word in words if word.startswith("file:///")}
    for path in sorted(paths - {Path("/")}):
        if path.exists():
            volumes += ["--volume", f"{path}:{path}:ro"]
    return volumes


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which podman runs containers by runc, with limits that most hosts allow."""
    missing = [command for command in COMMANDS if shutil.which(command) is None]
    if missing:
        pytest.skip(f"running the container needs {', '.join(missing)}")
    if os.geteuid() != 0:
        pytest.skip("running the container needs root: the test makes a root file system and a bridge")
    configuration = tmp_path_factory.mktemp("podman") / "containers.conf"
    configuration.write_text(
        '[engine]\nruntime = "runc"\n[containers]\ndefault_ulimits = ["nofile=1000:1000", "nproc=500:500"]\n'
    )
    return {**os.environ, "CONTAINERS_CONF": str(configuration)}


@pytest.fixture(scope="module")
def base(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A slim Debian with python3, venv and pip; made once on a machine and then kept in podman's storage."""
    if run("podman", "image", "exists", BASE, environment=engine, check=False).returncode == 0:
        return BASE
    archive = tmp_path_factory.mktemp("base") / "bookworm.tar"
    packages = "ca-certificates,python3,python3-venv,python3-pip"
    made = run(
        "mmdebstrap", "--variant=apt", f"--include={packages}", "bookworm", archive, limit=400, check=False
    )
    if made.returncode:
        pytest.skip(f"mmdebstrap cannot make a Debian here: {made.stderr.strip().splitlines()[-1]}")
    run("podman", "import", archive, BASE, environment=engine)
    archive.unlink()
    return BASE


@pytest.fixture(scope="module")
def image(base: str, engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tag = f"localhost/mtbridge-test:{os.getpid()}"
    volumes = pip_volumes(tmp_path_factory.mktemp("pip"))
    build = ["buildah", "bud", "--isolation", "chroot", "--format", "docker", "--build-arg", f"BASE={base}"]
    run(*build, *volumes, "--tag", tag, REPOSITORY, environment=engine, limit=600)
    yield tag
    run("podman", "image", "rm", "--force", tag, environment=engine)


@dataclass(frozen=True)
class Composed:
    """A running service `worker` of docker-compose.yml."""

    container: str
    port: int
    environment: dict[str, str]

    @property
    def endpoint(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def podman(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return run("podman", *words, environment=self.environment, check=check)

    def inside(self, *command: str) -> str:
        return self.podman("exec", self.container, *command).stdout.strip()

    def inspect(self, template: str) -> str:
        return self.podman("inspect", "--format", template, self.container).stdout.strip()


@contextlib.contextmanager
def composed(image: str, engine: dict[str, str], folder: Path, name: str) -> Iterator[Composed]:
    """Start docker-compose.yml as it is but for the host's port, which is a free one, and the image's tag."""
    yaml = pytest.importorskip("yaml", reason="PyYAML reads docker-compose.yml")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    document = compose()
    worker = document["services"]["worker"]
    (published,) = worker["ports"]
    worker["ports"] = [published.replace(":5555:", f":{port}:")]
    worker["image"] = image
    file = folder / "docker-compose.yml"
    file.write_text(yaml.safe_dump(document))
    project = f"mtbridge-test-{os.getpid()}-{name}"
    command = ("podman-compose", "--project-name", project, "--file", file)
    label = f"label=io.podman.compose.project={project}"
    try:
        run(*command, "up", "--detach", "--no-build", environment=engine)
        listed = run("podman", "ps", "--quiet", "--no-trunc", "--filter", label, environment=engine)
        container = listed.stdout.strip()
        assert container, "podman-compose started no container that is still running"
        yield Composed(container, port, engine)
    finally:
        run(*command, "down", environment=engine, check=False)
        run("podman", "network", "rm", "--force", f"{project}_default", environment=engine, check=False)


@pytest.fixture(scope="module")
def worker(
    image: str, engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Composed]:
    with composed(image, engine, tmp_path_factory.mktemp("compose"), "shared") as started:
        yield started


def wait_for_answer(client: Client, *, seconds: float = 90.0) -> Ping:
    """Return the answer to a ping of a worker that may still be starting."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return client.ping()
        except NoReplyError:
            if time.monotonic() > deadline:
                raise


class TestComposedWorker:
    def test_it_answers_a_client_on_the_published_port(self, worker: Composed) -> None:
        bars = np.random.default_rng(7).normal(size=(500, 12)).cumsum(axis=0)
        with Client(worker.endpoint, timeout=60) as client:
            assert wait_for_answer(client).worker.startswith("mtbridge ")
            covariance = client.covariance(bars)
        # centred first, so the error grows with the rows and the epsilon, not with the level of the data
        deviations = bars.std(axis=0)
        bound = 2 * len(bars) * np.finfo(np.float64).eps * np.outer(deviations, deviations)
        assert np.all(np.abs(covariance - np.cov(bars, rowvar=False)) <= bound)

    def test_it_is_healthy_by_its_own_health_check(self, worker: Composed) -> None:
        with Client(worker.endpoint) as client:
            wait_for_answer(client)
        checked = worker.podman("healthcheck", "run", worker.container, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr

    @pytest.mark.skipif(platform.machine() != "x86_64", reason="PoCL's wheel is for x86-64")
    def test_it_computes_on_opencl_without_a_linker_or_a_driver(self, worker: Composed) -> None:
        with Client(worker.endpoint) as client:
            pong = wait_for_answer(client)
        # small requests are numpy's; that the device is there, and works, is what auto says
        assert pong.engine == "auto", worker.podman("logs", worker.container).stderr
        assert "(opencl)" in pong.device
        assert not worker.inside("sh", "-c", "command -v ld || command -v gcc || command -v cc || true")

    def test_it_runs_without_root_or_capabilities_on_a_read_only_root(self, worker: Composed) -> None:
        assert worker.inside("id", "-u") == "10001"
        status = dict(line.split(":", 1) for line in worker.inside("cat", "/proc/self/status").splitlines())
        assert int(status["CapBnd"], 16) == 0
        assert status["NoNewPrivs"].strip() == "1"
        assert worker.podman("exec", worker.container, "touch", "/opt/mtbridge/x", check=False).returncode
        worker.inside("sh", "-c", "touch /tmp/x /var/cache/mtbridge/x")

    def test_the_port_is_closed_on_every_other_address_of_the_host(self, worker: Composed) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing; picks the address of the way out
            except OSError:
                pytest.skip("this host has no address but loopback")
            address = probe.getsockname()[0]
        with (
            pytest.raises(ConnectionRefusedError),
            socket.create_connection((address, worker.port), timeout=5),
        ):
            pass

    def test_sigterm_ends_it_before_it_would_be_killed(
        self, image: str, engine: dict[str, str], tmp_path: Path
    ) -> None:
        with composed(image, engine, tmp_path, "stopped") as started:
            with Client(started.endpoint) as client:
                wait_for_answer(client)
            begin = time.monotonic()
            started.podman("stop", "--time", str(STOP_WITHIN), started.container)
            assert time.monotonic() - begin < STOP_WITHIN
            assert started.inspect("{{.State.ExitCode}}") == "0"
            assert started.inspect("{{.State.OOMKilled}}") == "false"


class TestImage:
    def test_the_ping_of_the_health_check_fails_where_no_worker_is(
        self, image: str, engine: dict[str, str]
    ) -> None:
        begin = time.monotonic()
        _, _, words = the("HEALTHCHECK").partition("CMD")
        asked = run("podman", "run", "--rm", image, *json.loads(words), environment=engine, check=False)
        assert asked.returncode == 1
        assert "Traceback" not in asked.stderr
        assert time.monotonic() - begin < 10, "the health check gives up after 10 s"

    def test_nothing_of_the_machine_that_built_it_is_inside(self, image: str, engine: dict[str, str]) -> None:
        script = "cat /etc/pip.conf 2>/dev/null; ls -A /home/mtbridge/.cache ~root/.cache /source 2>/dev/null"
        seen = run(
            "podman", "run", "--rm", "--user", "0", image, "sh", "-c", script + "; true", environment=engine
        )
        assert seen.stdout == ""
        variables = json.loads(
            run(
                "podman", "image", "inspect", "--format", "{{json .Config.Env}}", image, environment=engine
            ).stdout
        )
        assert not [variable for variable in variables if variable.startswith("PIP_")]

    def test_it_adds_less_than_800_megabytes_to_its_base(
        self, image: str, base: str, engine: dict[str, str]
    ) -> None:
        sizes = [
            int(run("podman", "image", "inspect", "--format", "{{.Size}}", name, environment=engine).stdout)
            for name in (image, base)
        ]
        assert sizes[0] - sizes[1] < 800e6
