"""The package itself: import, versions, the wheel that a stranger installs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import toprank

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_public_name_can_be_had() -> None:
    for name in toprank.__all__:
        assert getattr(toprank, name) is not None
    assert set(toprank.__all__) <= set(dir(toprank))
    with pytest.raises(AttributeError, match="nothing"):
        _ = toprank.nothing


def test_sub_packages_load_on_first_access() -> None:
    code = (
        "import sys, toprank; print(toprank.trees.TreeRank.__name__, "
        "toprank.shortlisting.choose_cut.__name__, toprank.distributed.fit_distributed.__name__)"
    )
    assert run(sys.executable, "-c", code).split() == ["TreeRank", "choose_cut", "fit_distributed"]
    folders = {path.parent.name for path in Path(toprank.__file__).parent.glob("*/__init__.py")}
    for name in sorted(folders | {"distributed"}):  # each by itself, whatever is loaded already
        assert toprank.__getattr__(name).__name__ == f"toprank.{name}"


def test_import_is_light() -> None:
    heavy = ("sklearn", "numba", "pandas", "xgboost", "duckdb", "plotly", "matplotlib", "typer")
    code = f"import sys, toprank; print([m for m in {heavy!r} if m in sys.modules])"
    assert run(sys.executable, "-c", code).strip() == "[]"


def test_show_versions_names_what_is_installed(capsys) -> None:
    toprank.show_versions()
    shown = capsys.readouterr().out
    for name in ("toprank", "python", "numpy", "scikit-learn"):
        assert name in shown


def test_the_built_wheel_installs_and_works(tmp_path: Path) -> None:
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", str(ROOT), "--no-deps", "--no-build-isolation", "-q", "-w", str(tmp_path))
    (wheel,) = tmp_path.glob("toprank-*.whl")
    target = tmp_path / "site"
    run(*pip, "install", "--no-deps", "-q", "--target", str(target), str(wheel))
    assert (target / "toprank" / "py.typed").exists()
    code = (
        "import toprank; from toprank import metrics; print(toprank.__file__);"
        "print(metrics.average_precision([0, 1, 1], [0.1, 0.2, 0.3]))"
    )
    where, value = run(
        sys.executable, "-P", "-c", code, PYTHONPATH=str(target), NUMBA_CACHE_DIR=str(tmp_path)
    ).split()
    assert Path(where).is_relative_to(target)
    assert float(value) == 1.0
