"""The version of toprank, and those of the libraries it uses, for bug reports."""

from __future__ import annotations

import sys

__all__ = ["__version__", "show_versions", "versions"]

__version__ = "0.1.0"

_PACKAGES = (
    "numpy", "scipy", "scikit-learn", "numba", "pandas", "pyarrow", "polars", "duckdb",
    "xgboost", "xgboost-cpu", "lightgbm", "catboost", "imbalanced-learn", "dask",
    "typer", "rich", "jinja2", "plotly", "matplotlib",
)  # fmt: skip


def versions() -> dict[str, str]:
    """Return the versions of toprank, Python and the libraries it uses.

    Examples
    --------
    >>> "numpy" in versions()
    True
    """
    import os
    import platform
    from importlib import metadata

    found = {
        "toprank": __version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": str(os.cpu_count()),
    }
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def show_versions() -> None:
    """Write the versions of toprank and its libraries to standard output."""
    for name, version in versions().items():
        sys.stdout.write(f"{name:>17}: {version}\n")
