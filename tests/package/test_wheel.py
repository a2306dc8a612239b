"""The built wheel, installed away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the sdist, so that both are known to hold what is needed."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True, capture_output=True)
    assert list(folder.glob("*.tar.gz"))
    return next(folder.glob("*.whl"))


def test_the_wheel_carries_kernels_and_mql5_files(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        carried = set(archive.namelist())
    for folder in ("kernels", "mql5"):
        for path in (ROOT / folder).rglob("*"):
            if path.is_file():
                assert f"mtbridge/_data/{path.relative_to(ROOT).as_posix()}" in carried
    assert not [name for name in carried if name.startswith(("kernels/", "mql5/", "tests/"))]


def test_the_wheel_works_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    """Installed in a new environment that sees this one's dependencies, but not the checkout."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", wheel], check=True, cwd=tmp_path)
    # the dependencies themselves, but not the editable install, which a .pth file or a finder brings
    site = Path(sys.prefix) / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PYTHONPATH"] = str(site)
    code = (
        "import pathlib, numpy, mtbridge, mtbridge.sources as s;"
        "home = pathlib.Path(mtbridge.__file__).parent;"
        "assert s.data_folder('kernels') == home / '_data' / 'kernels', s.data_folder('kernels');"
        "X = numpy.random.default_rng(1).standard_normal((40, 7));"
        "found = mtbridge.covariance(X, engine='opencl');"
        "assert numpy.allclose(found, numpy.cov(X, rowvar=False), rtol=1e-13);"
        "print(home)"
    )
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(home) in done.stdout
