"""The Dockerfile and docker-compose.yml, as tests read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
STOP_WITHIN = 20  # seconds, docker-compose.yml's stop_grace_period


def dockerfile() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions as (name, rest), lines joined and comments left out."""
    lines = [
        line for line in (REPOSITORY / "Dockerfile").read_text().splitlines() if not line.startswith("#")
    ]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def last_stage() -> list[tuple[str, str]]:
    instructions = dockerfile()
    start = max(index for index, (name, _) in enumerate(instructions) if name == "FROM")
    return instructions[start:]


def the(instruction: str) -> str:
    """Return the rest of the one instruction of that name in the stage that becomes the image."""
    (rest,) = [rest for name, rest in last_stage() if name == instruction]
    return rest


def compose() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML reads docker-compose.yml")
    document: dict[str, Any] = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())
    return document
