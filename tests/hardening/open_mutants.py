"""Open mutated model files in a process of their own; one line of JSON for each.

    python open_mutants.py FOLDER FIRST LAST

FOLDER holds `<model>.toprank` and `rows.parquet`; the seeds run from FIRST to LAST, the last left out. The
process has a limit of memory, and of time for each file, and may die: whoever started it sees at which seed.
The file is written before it is opened, so that it is there to look at after a crash.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from model_cases import rows_of
from model_mutations import mutant

import toprank
from toprank.persistence import ModelFileError, describe
from toprank.shortlisting import global_importance, reasons

MEMORY = 8 * 2**30  # of address space; compiled libraries map a few GB and use little
RESIDENT = 1.5 * 2**30  # what a small file may make the process use
SECONDS = 30  # of computing for each file; whoever started the process notices if it waits


def limit() -> None:
    """Limit the memory of this process where the system can."""
    with contextlib.suppress(ImportError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def resident() -> float:
    """The most memory that this process has used so far, in bytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def outcome(path: Path, rows: Any, explain: bool) -> str:
    """What opening a file, describing it and using the model leads to."""
    with contextlib.suppress(ModelFileError, MemoryError):
        describe(path)
    try:
        model = toprank.load(path)
    except ModelFileError as error:
        return "refused" if "\n" not in str(error) else f"refused in several lines: {error}"
    except MemoryError:
        return "refused"
    except BaseException as error:
        return f"load raised {error!r}"
    if not hasattr(model, "decision_function") and not hasattr(model, "predict_proba"):
        return used("transforming", lambda: model.transform(rows))
    score = getattr(model, "decision_function", None) or model.predict_proba
    found = used("scoring", lambda: score(rows))
    return explained(model, rows) if found == "used" and explain else found


def used(what: str, work: Any) -> str:
    try:
        work()
    except BaseException as error:
        return f"{what} raised {error!r}"
    return "used"


def explained(model: Any, rows: Any) -> str:
    """Explain a model whose numbers may be nonsense: a refusal is fine, a crash is not."""
    for work in (
        lambda: reasons(model, rows[:3]),
        lambda: global_importance(model, rows),
        lambda: model.to_sql(),
        lambda: str(model.rules_),
        lambda: model.explain(rows[:3]),
    ):
        with contextlib.suppress(Exception):
            work()
    return "used"


def main() -> None:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    limit()
    folder, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rows = pd.read_parquet(folder / "rows.parquet")
    files = [path for path in folder.glob("*.toprank") if not path.name.startswith("mutant")]
    models = {path.stem: path.read_bytes() for path in files}
    tables = {name: rows_of(name, rows) for name in models}
    path = folder / f"mutant-{first}.toprank"
    for seed in range(first, last):
        model, kind, data = mutant(seed, models)
        path.write_bytes(data)
        before = resident()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        with contextlib.redirect_stdout(io.StringIO()):
            found = outcome(path, tables[model], explain=seed % 4 == 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        if max(before, RESIDENT) < resident():
            found = f"{found}, and used {resident() / 2**30:.1f} GiB"
        sys.stdout.write(
            json.dumps({"seed": seed, "model": model, "kind": kind, "outcome": found}) + "\n"
        )
        sys.stdout.flush()
    path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
