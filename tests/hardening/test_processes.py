"""Signals, full disks, closed doors, forks and little memory: a clear end, and nothing left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import toprank
from toprank.cli import main

resource: Any = pytest.importorskip("resource", reason="as on Unix")
pytestmark = pytest.mark.flaky(reruns=1)  # real processes and clocks on a busy machine
COMMAND = [sys.executable, "-m", "toprank"]
# a process that has loaded everything once, of which each command is a fork
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    ["toprank.cli.inputs", "toprank.margin.logistic", "toprank.objectives", "toprank.persistence.files",
     "toprank.shortlisting", "duckdb", "pytest"]
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labelled rows and a linear model of them."""
    place = tmp_path_factory.mktemp("processes")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=["a", "b", "c"])
    y = (frame["a"] + rng.normal(size=300) > 1).astype(int)
    frame.assign(y=y).to_csv(place / "rows.csv", index=False)
    toprank.save(toprank.LogisticRanker().fit(frame, y), place / "m.toprank", frame, y)
    return place


def command(place: Path, prepare: Callable[..., None], given: Any, arguments: list[str]) -> None:
    """Run a command in the folder `here`; what it says goes into pipes beside it."""
    os.chdir(place / "here")
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(place / name, os.O_WRONLY), number)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # a runner started by nohup ignores some of them
        default = signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL
        signal.signal(getattr(signal, name), default)
    prepare(given)
    sys.argv = ["toprank", *arguments]
    main()


class Started:
    """A command in a process of its own."""

    def __init__(
        self, place: Path, prepare: Callable[..., None], given: Any, *arguments: Any
    ) -> None:
        (place / "here").mkdir(exist_ok=True)
        self.pipes, self.texts = {}, {"stdout": "", "stderr": ""}
        for name in self.texts:
            os.mkfifo(place / name)
            self.pipes[name] = os.open(place / name, os.O_RDWR | os.O_NONBLOCK)
        texts = [str(argument) for argument in arguments]
        self.process = PROCESSES.Process(target=command, args=(place, prepare, given, texts))
        self.process.start()

    def said(self, name: str) -> str:
        with suppress(BlockingIOError):
            self.texts[name] += os.read(self.pipes[name], 2**16).decode()
        return self.texts[name]

    def wait_for(self, text: str) -> None:
        end = time.monotonic() + 60
        while text not in self.said("stderr"):
            assert self.process.is_alive(), self.said("stderr")
            assert time.monotonic() < end
            time.sleep(0.01)

    def ended(self) -> tuple[int | None, str, str]:
        self.process.join(60)
        said = self.said("stdout"), self.said("stderr")
        for pipe in self.pipes.values():
            os.close(pipe)
        return self.process.exitcode, *said


# -- signals ------------------------------------------------------------------------------------------------


def write_slowly(wait: str) -> None:
    """Make every CSV file take a minute, half of it written."""
    import ctypes

    def half(_: Any, path: Any, **__: Any) -> None:
        Path(path).write_text("half of")
        sys.stderr.write("writing\n")
        sys.stderr.flush()
        for _ in range(2):  # a signal ends one of these
            ctypes.CDLL(None).sleep(60) if wait == "compiled" else time.sleep(60)

    pd.DataFrame.to_csv = half


@pytest.mark.parametrize("wait", ["python", "compiled"])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_leaves_no_half_written_file(
    name: str, wait: str, folder: Path, tmp_path: Path
) -> None:
    """In Python a signal arrives at once; in compiled code, never."""
    old = tmp_path / "here" / "alerts.csv"
    old.parent.mkdir()
    old.write_text("of yesterday")
    model, rows = folder / "m.toprank", folder / "rows.csv"
    arguments = ["score", model, rows, "--budget", "3", "--out", "alerts.csv"]
    process = Started(tmp_path, write_slowly, wait, *arguments)
    process.wait_for("writing")
    os.kill(process.process.pid or 0, getattr(signal, name))
    begin = time.monotonic()
    code, stdout, stderr = process.ended()
    assert time.monotonic() - begin < 20
    assert (code, stdout) == (128 + getattr(signal, name), "")
    assert "Traceback" not in stderr
    said = ["writing"] + (["toprank: interrupted"] if name == "SIGINT" else [])
    assert stderr.splitlines()[-len(said) :] == said
    assert os.listdir(old.parent) == ["alerts.csv"]
    assert old.read_text() == "of yesterday"


def stream_slowly(wait: str) -> None:
    """Make every batch of streamed rows take a minute, with temporary files in this folder."""
    import tempfile

    from toprank.cli import inputs
    from toprank.sources import OpenSource

    inputs.FIXED_BYTES = 10**9  # so few rows are streamed too
    tempfile.tempdir = os.getcwd()
    write_slowly(wait)
    # what has been copied so far is in a folder of its own
    OpenSource.batches = lambda self, *_, **__: pd.DataFrame().to_csv(Path(self.folder) / "half")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("work", ["fit", "score"])
def test_a_signal_leaves_no_copy_of_streamed_rows(
    work: str, name: str, folder: Path, tmp_path: Path
) -> None:
    rows, model = folder / "rows.csv", folder / "m.toprank"
    arguments = {
        "fit": ["fit", rows, "--target", "y", "--out", "new.toprank"],
        "score": ["score", model, rows, "--all", "--out", "scores.parquet"],
    }[work]
    process = Started(tmp_path, stream_slowly, "compiled", *arguments, "--memory", "900MB")
    process.wait_for("writing")
    os.kill(process.process.pid or 0, getattr(signal, name))
    code, stdout, stderr = process.ended()
    assert (code, stdout) == (128 + getattr(signal, name), "")
    assert "Traceback" not in stderr
    assert os.listdir(tmp_path / "here") == []


def test_an_interruption_of_the_start_is_quiet() -> None:
    code = (
        "import os, signal, sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'toprank.cli':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "import runpy; runpy.run_module('toprank', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "toprank: interrupted\n")


# -- closed doors and full disks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "closed", ["--version >&-", "--version 2>&-", "explain m.toprank >&- 2>&-"]
)
def test_closed_streams(closed: str, folder: Path) -> None:
    done = subprocess.run(
        f"{' '.join(COMMAND)} {closed}", cwd=folder, shell=True, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def limit_files(size: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("size", [0, 1, 700])
def test_a_disk_that_fills_up(size: int, folder: Path, tmp_path: Path) -> None:
    arguments = ["score", folder / "m.toprank", folder / "rows.csv", "--all", "--out", "a.csv"]
    process = Started(tmp_path, limit_files, size, *arguments)
    code, stdout, stderr = process.ended()
    assert (code, stdout) == (2, "")
    assert "File too large" in stderr.splitlines()[-1]
    assert os.listdir(tmp_path / "here") == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the address space")
@pytest.mark.parametrize("megabytes", [150, 1000, 1500])
def test_little_memory_ends_with_a_message(megabytes: int, folder: Path) -> None:
    size = megabytes * 2**20
    done = subprocess.run(
        [*COMMAND, "explain", str(folder / "m.toprank"), str(folder / "rows.csv")],
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"toprank: error: memory is limited to {megabytes} MB")


# -- forks --------------------------------------------------------------------------------------------------

FORKS = """
import os, sys, signal, warnings
import numpy as np, toprank
from sklearn.base import clone
X = np.random.default_rng(0).normal(size=(120, 3)); y = (X[:, 0] > 0.5).astype(int)
model = toprank.GradientBoostingRanker(n_estimators=2, max_depth=2, n_jobs=2, random_state=0).fit(X, y)
expected = model.decision_function(X)
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    signal.alarm(60)
    same = np.array_equal(model.decision_function(X), expected)
    model.explain(X[:3])
    same &= np.array_equal(clone(model).fit(X, y).decision_function(X), expected)
    os._exit(0 if same else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_scores_and_fits(folder: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run([sys.executable, "-c", FORKS], env=environment, check=False, timeout=300)
    assert done.returncode == 0
