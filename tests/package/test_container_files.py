"""The container files, read as text; test_container.py runs them."""

from __future__ import annotations

import json
import re
import shlex

from container_files import REPOSITORY, STOP_WITHIN, compose, dockerfile, last_stage, the


class TestFiles:
    def test_the_image_does_not_run_as_root(self) -> None:
        user = the("USER")
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user), (
            f"USER {user} is not a numeric user and group above 0"
        )
        names = [name for name, _ in last_stage()]
        assert "RUN" not in names[names.index("USER") :], "nothing is installed after the switch to the user"

    def test_the_worker_is_started_without_a_shell_so_that_it_gets_the_signal(self) -> None:
        command = json.loads(the("CMD"))
        assert command == ["mtbridge", "serve", "--bind", "tcp://0.0.0.0:5555", "--insecure"]
        assert "ENTRYPOINT" not in [name for name, _ in last_stage()]
        assert the("STOPSIGNAL") == "SIGTERM"

    def test_the_health_check_pings_the_port_that_is_served_and_exposed(self) -> None:
        options, _, command = the("HEALTHCHECK").partition("CMD")
        assert json.loads(command) == ["mtbridge", "ping", "--endpoint", "tcp://127.0.0.1:5555"]
        assert re.search(r"--timeout=\d+s", options)
        assert the("EXPOSE") == "5555"

    def test_any_base_may_be_given_and_both_stages_use_it(self) -> None:
        instructions = dockerfile()
        assert instructions[0] == ("ARG", "BASE=python:3.12-slim-bookworm")
        assert [rest.split()[0] for name, rest in instructions if name == "FROM"] == ["${BASE}", "${BASE}"]

    def test_what_the_image_copies_is_there_and_not_ignored(self) -> None:
        allowed = {
            line[1:]
            for line in (REPOSITORY / ".dockerignore").read_text().splitlines()
            if line.startswith("!")
        }
        copied = {
            source
            for name, rest in dockerfile()
            if name == "COPY" and "--from" not in rest
            for source in rest.split()[:-1]
        }
        assert copied == allowed
        assert not [name for name in copied if not (REPOSITORY / name).exists()]

    def test_the_port_is_published_on_loopback_only(self) -> None:
        services = compose()["services"]
        assert services["worker"]["ports"] == ["127.0.0.1:5555:5555"]
        for name, service in services.items():
            assert "network_mode" not in service, f"{name} shares the host's network"
            for port in service.get("ports", []):
                assert str(port).startswith("127.0.0.1:"), f"{name} publishes {port}"

    def test_the_composed_worker_gives_up_what_it_does_not_need(self) -> None:
        worker = compose()["services"]["worker"]
        assert worker["build"] == "."
        assert worker["restart"] == "unless-stopped"
        assert worker["cap_drop"] == ["ALL"]
        assert "cap_add" not in worker
        assert worker["security_opt"] == ["no-new-privileges:true"]
        assert worker["read_only"] is True
        assert worker["init"] is True
        assert worker["mem_limit"]
        assert worker["stop_grace_period"] == f"{STOP_WITHIN}s"
        assert "privileged" not in worker
        assert "volumes" not in worker

    def test_the_kernel_cache_is_writable_and_its_files_can_be_loaded(self) -> None:
        cache = dict(word.split("=", 1) for word in shlex.split(the("ENV")))["XDG_CACHE_HOME"]
        mounts = dict(mount.split(":", 1) for mount in compose()["services"]["worker"]["tmpfs"])
        assert "exec" in mounts[cache].split(","), (
            "Docker mounts a tmpfs noexec, and built kernels are shared objects"
        )
