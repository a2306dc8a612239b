"""A machine with nothing but a shell: no ld, no gcc, no cc, and a home that nobody has used."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mtbridge.compute.devices import Verdict
from mtbridge.compute.embedded import has_ziglang

SCRIPT = """
import json, shutil, sys
import numpy as np
assert not any(shutil.which(name) for name in ("ld", "gcc", "cc", "clang"))
from mtbridge.compute import open_engine
X = np.arange(120.0).reshape(24, 5) % 7
with open_engine("opencl") as engine:
    print(json.dumps({"device": engine.device, "gram": engine.gram(X).tolist(),
                      "product": engine.multiply(X.T.astype("f4"), X.astype("f4")).tolist(),
                      "covariance": engine.moments(X.astype("f4")).covariance().tolist()}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only PoCL on Linux links")
@pytest.mark.skipif(not has_ziglang(), reason="ziglang is not installed")
def test_our_kernels_run_by_the_ziglang_linker_where_there_is_no_ld(tmp_path: Path, verdict: Verdict) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sh").symlink_to(shutil.which("sh") or "/bin/sh")
    environment = {"PATH": str(programs), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=115,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout)
    X = np.arange(120.0).reshape(24, 5) % 7
    assert np.array_equal(answer["gram"], X.T @ X)
    assert np.array_equal(answer["product"], X.T @ X)
    assert np.allclose(answer["covariance"], np.cov(X, rowvar=False), rtol=1e-6)
    listed = subprocess.run(
        [sys.executable, "-m", "mtbridge", "devices"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment,
    )
    assert "kernels linked by ziglang" in listed.stdout
