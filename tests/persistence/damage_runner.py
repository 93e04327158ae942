"""Open damaged model files in a process of their own and report what came of it, as JSON.

Called with a folder of `<model>.toprank` and `rows.parquet`, and the number of trials for each member. The
damaged file is written before it is opened, so that it is there to look at after a crash.
"""

from __future__ import annotations

import faulthandler
import json
import random
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
from model_file_damage import damaged_bytes, damaged_member, members_of, sealed

import toprank
from toprank.persistence import ModelFileError


def outcome(path: Path, rows: Any) -> str:
    """What opening a file and scoring with it leads to."""
    try:
        model = toprank.load(path)
    except ModelFileError as error:
        return "refused" if "\n" not in str(error) else f"refused in several lines: {error}"
    except BaseException as error:
        return f"load raised {error!r}"
    try:
        score = getattr(model, "decision_function", None) or model.predict_proba
        return "scored" if len(score(rows)) == len(rows) else "scored other rows"
    except BaseException as error:
        return f"scoring raised {error!r}"


def trial(folder: Path, model: Path, trials: int, rows: pd.DataFrame) -> dict[str, Counter[str]]:
    data = model.read_bytes()
    members = members_of(data)
    columns = [c["name"] for c in toprank.persistence.describe(model).schema["columns"]]
    rows = rows[columns]
    path = folder / f"damaged-{model.name}"
    found: dict[str, Counter[str]] = {}
    for name in (*members, "the file"):
        dice = random.Random(f"{model.stem} {name}")
        found[name] = Counter()
        for _ in range(trials):
            if name == "the file":
                path.write_bytes(damaged_bytes(data, dice))
            else:
                path.write_bytes(sealed(damaged_member(members, name, dice)))
            found[name][outcome(path, rows)] += 1
    return found


def main() -> None:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    folder, trials = Path(sys.argv[1]), int(sys.argv[2])
    rows = pd.read_parquet(folder / "rows.parquet")
    models = sorted(p for p in folder.glob("*.toprank") if not p.name.startswith("damaged-"))
    report = {model.stem: trial(folder, model, trials, rows) for model in models}
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
