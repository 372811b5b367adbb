"""What `pip install` puts into an environment: every file of the packages, not their Python alone."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("engine_hooks", "collector", "queries", "dashboards")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def files_of_the_packages() -> set[str]:
    """Beside what Python and editors leave there."""
    found = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.is_file()]
    kept = [path for path in found if "__pycache__" not in path.parts and not path.name.startswith(".")]
    return {path.relative_to(ROOT).as_posix() for path in kept} | {"tachograph.py"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built in a copy of what it is made of: the build leaves files behind."""
    copy, out = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheel")
    for name in (*files_of_the_packages(), "pyproject.toml", "README.md"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    subprocess.run([sys.executable, "-c", BUILD, str(out)], cwd=copy, check=True, capture_output=True, timeout=120)
    (built,) = out.glob("tachograph-*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        packed = {name for name in opened.namelist() if ".dist-info/" not in name}
    ours = files_of_the_packages()
    assert len([name for name in ours if not name.endswith(".py")]) > 100
    assert packed == ours


def test_the_wheel_names_its_command_and_plugins(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith("entry_points.txt"))
        points = opened.read(name).decode()
    for line in ("[console_scripts]", "tachograph = tachograph:main", "[vllm.general_plugins]", "[sglang.srt.plugins]"):
        assert line in points.splitlines()
