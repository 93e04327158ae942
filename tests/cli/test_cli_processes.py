"""Real processes: start, standard input and output, interruption, a full disk, closed doors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from cli_cases import one_real_line, real, rows, written

import toprank
from toprank import metrics

pytestmark = pytest.mark.flaky(reruns=1)  # real processes and clocks on a busy machine
unix = pytest.mark.skipif(os.name == "nt", reason="as on Unix")


def test_version_help_and_errors(tmp_path):
    version = real("--version")
    assert (version.returncode, version.stdout) == (0, f"toprank {toprank.__version__}\n")
    refused = real("evaluate", tmp_path / "none.csv", "--label", "y", "--score", "s")
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr == f"toprank: error: {tmp_path / 'none.csv'}: no such file\n"
    assert "Missing option" in one_real_line(real("evaluate"))
    assert "No such command 'compere'. Did you mean 'compare'" in one_real_line(real("compere"))
    usage = real()
    assert "Commands" in usage.stdout + usage.stderr


def test_standard_input(tmp_path):
    rng = np.random.default_rng(0)
    y = (rng.random(300) < 0.2).astype(int)
    frame = pd.DataFrame({"y": y, "s": rng.normal(size=300) + y})
    result = real("evaluate", "-", "--label", "y", "--score", "s", "--json", "--resamples", 0,
                  input=frame.to_csv(index=False))  # fmt: skip
    assert result.returncode == 0
    value = json.loads(result.stdout)["metrics"]["roc_auc"]["value"]
    assert value == pytest.approx(metrics.roc_auc(frame["y"], frame["s"]), abs=1e-12)


def test_the_command_line_starts_without_the_heavy_libraries():
    code = (
        "import sys, toprank.__main__\n"
        "heavy = {'sklearn', 'numba', 'pandas', 'numpy', 'duckdb', 'xgboost', 'scipy', 'plotly'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (found.stdout, found.stderr) == ("\n", "")


def test_scoring_imports_only_what_it_needs(tmp_path):
    """Of one row, nearly all the time is imports: what learning, measuring and drawing need stays out."""
    fitted = real("fit", written(rows(200), tmp_path / "early.csv"), "--target", "is_fraud", "--model",
                  "logistic", "--folds", 2, "--out", "m.toprank", cwd=tmp_path)  # fmt: skip
    assert fitted.returncode == 0, fitted.stderr
    one = written(rows(1, seed=3).drop(columns="is_fraud"), tmp_path / "one.csv")
    idle = ["numba", "plotly", "jinja2", "dask", "lightgbm", "catboost", "imblearn", "polars", "matplotlib",
            "sklearn.linear_model", "sklearn.ensemble", "sklearn.isotonic", "sklearn.model_selection",
            "scipy.stats.distributions", "toprank.metrics",
            "toprank.objectives", "toprank.boosting.engine", "toprank.automatic", "toprank.selection",
            "toprank.report"]  # fmt: skip
    code = (
        "import sys; from toprank.cli.app import main\n"
        "sys.argv = ['toprank', 'score', 'm.toprank', 'one.csv', '--budget', '1']\n"
        "try: main()\n"
        f"except SystemExit: print('imported:', *[name for name in {idle} if name in sys.modules])"
    )
    scored = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert one.exists()
    assert "1 of 1 rows are on the list" in scored.stdout, scored.stderr
    assert scored.stdout.splitlines()[-1] == "imported:"


def test_what_is_put_off_is_there_when_it_is_asked_for():
    code = (
        "from toprank.cli.app import _start_sooner; _start_sooner()\n"
        "import scipy.stats, sklearn.utils.fixes; before = type(scipy.stats).__name__\n"
        "from scipy.stats import rankdata; from sklearn.model_selection import KFold\n"
        "import scipy.stats as stats\n"
        "print(before, rankdata([3, 1]), type(stats).__name__, stats.rankdata is rankdata)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.stdout == "_Deferred [2. 1.] module True\n", found.stderr


def test_the_whole_way_in_real_processes(tmp_path):
    """Compare, fit, score from a pipe: the real yardstick, the real page, one after the other."""
    early = written(rows(200).drop(columns="day"), tmp_path / "early.parquet")
    columns = ["--target", "is_fraud", "--id", "payment"]
    compared = real("compare", early, *columns, "--models", "linear", "--splits", 2, "--repeats", 1,
                    "--out", tmp_path / "page.html")  # fmt: skip
    assert compared.returncode == 0, compared.stderr
    assert "yardstick" in compared.stdout
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    query = f"SELECT * FROM '{early}' WHERE amount > 0"
    fitted = real("fit", "--sql", query, *columns, "--model", "linear", "--out", "m.toprank",
                  cwd=tmp_path)  # fmt: skip
    assert fitted.returncode == 0, fitted.stderr
    new = rows(100, seed=3).to_csv(index=False)
    scored = real("score", "m.toprank", "-", "--budget", 5, "--id", "payment", "--out", "a.csv",
                  cwd=tmp_path, input=new)  # fmt: skip
    assert scored.returncode == 0, scored.stderr
    assert "raises the " in scored.stdout
    alerts = pd.read_csv(tmp_path / "a.csv")
    assert alerts["rank"].tolist() == [1, 2, 3, 4, 5]
    assert (alerts["probability_low"] <= alerts["probability"]).all()


# -- interruption ---------------------------------------------------------------------------------

INTERRUPTED_WHILE_WRITING = """
import os, signal, sys, time
import pandas as pd
import toprank.cli

def half(self, path, **options):
    with open(path, "w") as file:
        file.write("half of")
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

pd.DataFrame.to_csv = half
toprank.cli.main()
"""


@unix
def test_an_interrupted_process_leaves_no_half_written_file(folder, tmp_path):
    (tmp_path / "alerts.csv").write_text("of yesterday")
    arguments = ["score", folder / "linear.toprank", folder / "late.csv", "--budget", "3", "--out",
                 "alerts.csv"]  # fmt: skip
    command = [sys.executable, "-c", INTERRUPTED_WHILE_WRITING, *map(str, arguments)]
    result = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (result.returncode, result.stdout) == (130, "")
    assert result.stderr.splitlines()[-1] == "toprank: interrupted"
    assert os.listdir(tmp_path) == ["alerts.csv"]
    assert (tmp_path / "alerts.csv").read_text() == "of yesterday"


# -- places that take nothing -----------------------------------------------------------------------


def small_files_only():
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


@unix
@pytest.mark.parametrize("command", ["fit", "score", "report"])
def test_a_full_disk(folder, tmp_path, command):
    arguments = {
        "fit": ["fit", folder / "early.csv", "--target", "is_fraud", "--drop", "payment,day",
                "--model", "linear", "--no-calibration", "--out", "m.toprank"],
        "score": ["score", folder / "linear.toprank", folder / "late.csv", "--budget", 300, "--out",
                  "alerts.csv"],
        "report": ["report", folder / "linear.toprank", folder / "late.csv", "--target", "is_fraud",
                   "--resamples", 50, "--out", "page.html"],
    }[command]  # fmt: skip
    result = real(*arguments, cwd=tmp_path, preexec_fn=small_files_only)
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert "File too large" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    assert os.listdir(tmp_path) == []


@unix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_an_output_that_is_full(folder):
    with open("/dev/full", "w") as full:
        result = real("models", "--json", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 2
    assert result.stderr == "toprank: error: [Errno 28] No space left on device\n"


@unix
def test_a_reader_that_goes_away(folder):
    command = f"{sys.executable} -m toprank models --json | head -n 1"
    result = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=120, check=False
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "[\n", "")


@unix
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc here")
def test_no_permission_to_write(folder):
    arguments = ["score", folder / "linear.toprank", folder / "late.csv", "--budget", 3, "--out"]
    line = one_real_line_of_last(real(*arguments, "/proc/alerts.csv"))  # not even for root
    assert "/proc" in line


def one_real_line_of_last(result):
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return next(line for line in result.stderr.splitlines() if line.startswith("toprank: error: "))
