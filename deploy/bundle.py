"""Build what `spark-submit` takes: our packages as one zip, and the main file beside it.

`make bundle` runs it. A wheel is no good here: Spark puts only `.zip`, `.egg` and `.py` files on the path. The
same checkout gives the same bytes: names are sorted, times are fixed, nothing is compressed.
"""

import argparse
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
MAIN = "daybreak_submit.py"
TIME = (1980, 1, 1, 0, 0, 0)
"""The oldest time that a zip can hold."""


def members(project: dict[str, Any], root: Path = ROOT) -> Iterator[tuple[str, bytes]]:
    """(name in the zip, bytes) of our modules, of the files they read, and of the distribution's metadata."""
    setuptools = project["tool"]["setuptools"]
    for package in setuptools["packages"]:
        folder = root / package.replace(".", "/")
        for pattern in ("*.py", *setuptools["package-data"].get(package, [])):
            for file in folder.glob(pattern):
                yield file.relative_to(root).as_posix(), file.read_bytes()
    yield from metadata(project["project"], setuptools["packages"])


def metadata(project: dict[str, Any], packages: list[str]) -> Iterator[tuple[str, bytes]]:
    """What `importlib.metadata` reads: name, version, needs, and whose the packages are."""
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {need}" for need in project["dependencies"]),
    ]
    top = sorted({package.split(".")[0] for package in packages})
    folder = f"{project['name']}-{project['version']}.dist-info"
    yield f"{folder}/METADATA", ("\n".join(lines) + "\n").encode()
    yield f"{folder}/top_level.txt", ("\n".join(top) + "\n").encode()


def build(folder: Path, root: Path = ROOT) -> tuple[Path, Path]:
    """(the zip, the main file), written into `folder`."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    done, main = folder / f"{project['project']['name']}.zip", folder / MAIN
    building = done.with_suffix(".new")
    with zipfile.ZipFile(building, "w") as zipped:
        for name, content in sorted(members(project, root)):
            info = zipfile.ZipInfo(name, TIME)
            info.create_system, info.external_attr = 3, 0o644 << 16
            zipped.writestr(info, content)
    building.replace(done)
    shutil.copyfile(HERE / MAIN, main)
    return done, main


def run() -> None:
    """Build into the folder that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "build", help="where to; default: build")
    for file in build(parser.parse_args().folder):
        sys.stdout.write(f"{file}\n")


if __name__ == "__main__":
    run()
