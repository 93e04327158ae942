"""Relational models against counts with XGBoost and RDN-Boost, on the same folds.

    python -m experiments.relational_rivals [--budget-minutes 60] [--sets uwcse ...] [--methods clauses ...]
    python -m experiments.relational_rivals --language   # which parts of the clause language pay

Six public sets. Ours: boosted clauses with the larger language and with the paper's, and RelationalFeatures
before GradientBoostingRanker. The rivals: the counts of facts that are joined with each example (one column
for each argument of each table that has the type of one of the example's) and XGBoost at its
usual settings; RDN-Boost of srlearn (Natarajan et al. 2012), which needs Java and an environment of its own:
`SRLEARN_PYTHON` names its Python (3.9 with srlearn 0.5.5, numpy<1.23 and scikit-learn<1.2: later ones it does
not know); a fit that takes more than 10 minutes of the processor is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline

from experiments.common import ROOT, Results, corrected_interval, markdown_table, use_local_data
from experiments.prankboost_relational import folder_of
from toprank import (
    GradientBoostingRanker,
    RelationalData,
    RelationalFeatures,
    RelationalPRankBoost,
)
from toprank.metrics import average_precision, recall_precision_area, roc_auc
from toprank.rules.relational.search import EXTENSIONS

N_FOLDS = 5
SRLEARN_SECONDS = 600

#: how each set is split: by its published folds (each with its own background), by a column, or freely
SETS: dict[str, str] = {
    "uwcse": "published folds",
    "imdb_workedunder": "published folds",
    "mutagenesis": "examples",
    "carcinogenesis": "examples",
    "citeseer": "published folds",
    "financial_nlp_small": "sentenceid",
}
ROUNDS = 100


def n_folds(name: str) -> int:
    """Folds of a set; citeseer is published with four."""
    return 4 if name == "citeseer" else N_FOLDS


@lru_cache(maxsize=2)
def split(name: str, fold: int) -> tuple[RelationalData, RelationalData]:
    """Training and test data of a fold."""
    how = SETS[name]
    if how == "published folds":
        every = RelationalData.from_folder(folder_of(name))
        folds = sorted(every.extra["fold"].unique())
        own = folds[fold]
        others = [k for k in folds if k != own]
        train = RelationalData.from_folder(folder_of(name), where={"fold": others})
        return train, RelationalData.from_folder(folder_of(name), where={"fold": [own]})
    data = RelationalData.from_folder(folder_of(name))
    if how == "examples":
        splitter: Any = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
        parts = splitter.split(np.zeros(len(data)), data.labels)
    else:
        splitter = StratifiedGroupKFold(N_FOLDS, shuffle=True, random_state=0)
        parts = splitter.split(np.zeros(len(data)), data.labels, data.examples[how])
    train, test = list(parts)[fold]
    return data[train], data[test]


def clauses(language: Any) -> Any:
    def scores(train: RelationalData, test: RelationalData, seed: int) -> np.ndarray:
        model = RelationalPRankBoost(ROUNDS, language=language, random_state=seed, n_jobs=1)
        return model.fit(train, train.labels).decision_function(test)

    return scores


def features_and_boosting(train: RelationalData, test: RelationalData, seed: int) -> np.ndarray:
    model = make_pipeline(
        RelationalFeatures(n_jobs=1), GradientBoostingRanker(random_state=seed, n_jobs=1)
    )
    return model.fit(train, train.labels).decision_function(test)


def counts_of(data: RelationalData) -> np.ndarray:
    """How many facts of each table have each of an example's arguments, in each column of its type."""
    columns = []
    cursor = data.background.cursor()
    codes = data.codes()
    for j, predicate in enumerate(data.schema.predicates):
        for place, kind in enumerate(predicate.types):
            for argument, own in enumerate(data.schema.target.types):
                if own != kind:
                    continue
                rows = cursor.execute(
                    f"SELECT c{place}, count(*) FROM fact_{j} WHERE c{place} IS NOT NULL GROUP BY 1"
                ).fetchall()
                found = pd.Series(dict(rows), dtype=float)
                columns.append(found.reindex(codes[:, argument]).fillna(0).to_numpy())
    return np.column_stack(columns)


def counts_and_xgboost(train: RelationalData, test: RelationalData, seed: int) -> np.ndarray:
    from xgboost import XGBClassifier

    model = XGBClassifier(n_estimators=300, random_state=seed, n_jobs=1)
    model.fit(counts_of(train), train.labels)
    return model.predict_proba(counts_of(test))[:, 1]


# -- srlearn ----------------------------------------------------------------------------------------

SRLEARN = """
import json, resource, sys
from srlearn import Background, Database
from srlearn.rdn import BoostedRDNClassifier
given = json.load(open(sys.argv[1]))
seconds = given["seconds"]
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))  # of this process and, each, of its Java
def database(part):
    made = Database()
    made.pos, made.neg, made.facts = part["pos"], part["neg"], part["facts"]
    return made
background = Background(modes=given["modes"], use_prolog_variables=True)
model = BoostedRDNClassifier(
    background=background, target=given["target"], n_estimators=20, solver="BoostSRL"
)
model.fit(database(given["train"]))
model.predict_proba(database(given["test"]))
# its file of results names each example, "!" before those that are negative, with the probability of its own class
scores = {}
path = model.file_system.files.TEST_DIR.joinpath("results_" + given["target"] + ".db")
for line in open(path):
    example, probability = line.rsplit(" ", 1)
    example = example.replace(" ", "")
    negative = example.startswith("!")
    scores[example.lstrip("!") + "."] = 1 - float(probability) if negative else float(probability)
json.dump(scores, open(sys.argv[2], "w"))
"""


def _word(value: Any) -> str:
    """A constant that its parser takes: lower case, letters, digits and underscores."""
    text = "".join(c if c.isalnum() else "_" for c in str(value).lower())
    return text if text[:1].isalpha() else f"c_{text}"


def examples_of(data: RelationalData) -> list[str]:
    target = _word(data.schema.target.name)
    rows = data.examples.itertuples(index=False)
    return [f"{target}({','.join(map(_word, row))})." for row in rows]


def facts_of(data: RelationalData) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"pos": [], "neg": [], "facts": []}
    assert data.labels is not None
    for example, label in zip(examples_of(data), data.labels, strict=True):
        found["pos" if label else "neg"].append(example)
    for j, predicate in enumerate(data.schema.predicates):
        rows = data.background.cursor().execute(f"SELECT * FROM fact_{j}").fetchall()
        for row in rows:
            if None not in row:
                values = [
                    _word(data.background.value(kind, code))
                    for kind, code in zip(predicate.types, row, strict=True)
                ]
                found["facts"].append(f"{_word(predicate.name)}({','.join(values)}).")
    return found


def rdn_boost(train: RelationalData, test: RelationalData, seed: int) -> np.ndarray:
    """Scores of srlearn's BoostedRDNClassifier."""
    modes = [
        f"{_word(mode.predicate)}("
        + ",".join(
            kind + _word(name)
            for kind, name in zip(
                mode.kinds,
                train.schema.predicates[train.schema.index(mode.predicate)].types,
                strict=True,
            )
        )
        + ")."
        for mode in train.schema.modes
    ]
    target = train.schema.target
    modes.append(f"{_word(target.name)}({','.join('+' + _word(t) for t in target.types)}).")
    given = {
        "modes": modes,
        "target": _word(target.name),
        "seconds": SRLEARN_SECONDS,
        "train": facts_of(train),
        "test": facts_of(test),
    }
    with tempfile.TemporaryDirectory() as folder:
        path, answer = Path(folder) / "given.json", Path(folder) / "answer.json"
        path.write_text(json.dumps(given))
        python = os.environ["SRLEARN_PYTHON"]
        subprocess.run(
            [python, "-c", SRLEARN, str(path), str(answer)],
            check=True, capture_output=True, cwd=folder, text=True, timeout=6 * SRLEARN_SECONDS,
            env={**os.environ, "JAVA_TOOL_OPTIONS": "-XX:+UseSerialGC"},
        )  # fmt: skip
        found = json.loads(answer.read_text())
    return np.array([found[example] for example in examples_of(test)])


METHODS: dict[str, Any] = {
    "clauses": clauses("extended"),
    "clauses, the paper's language": clauses("paper"),
    "RelationalFeatures + boosting": features_and_boosting,
    "counts + XGBoost": counts_and_xgboost,
    "RDN-Boost": rdn_boost,
}
#: each part of the language alone, to see which of them pay
LANGUAGES: dict[str, Any] = {f"+ {name}": clauses((name,)) for name in EXTENSIONS}
CLAUSES = ("clauses", "clauses, the paper's language")
OURS = (*CLAUSES, "RelationalFeatures + boosting")


def children_seconds() -> float:
    """Return the time on the processor of the processes that this one has started and seen end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_cell(data: str, fold: int, method: str) -> dict[str, Any]:
    train, test = split(data, fold)
    start, java = time.process_time(), children_seconds()
    try:
        scores = {**METHODS, **LANGUAGES}[method](train, test, fold)
    except subprocess.TimeoutExpired:
        return {"left_out": "time"}
    except subprocess.CalledProcessError as error:
        if children_seconds() - java >= SRLEARN_SECONDS:  # then the system has ended Java
            return {"left_out": "time"}
        return {"left_out": error.stderr.strip().split("\n")[-1].split(":")[0]}
    labels = test.labels
    return {
        "ap": average_precision(labels, scores),
        "aurpc": recall_precision_area(labels, scores),
        "auroc": roc_auc(labels, scores),
        "cpu_seconds": round(time.process_time() - start + children_seconds() - java, 1),
    }


def by_method(results: Results, name: str) -> dict[str, dict[int, float]]:
    """Average precision of a set by method and fold."""
    found: dict[str, dict[int, float]] = {}
    for cell in results.select(data=name):
        if "ap" in cell:
            found.setdefault(cell["cell"]["method"], {})[cell["cell"]["fold"]] = cell["ap"]
    return found


def difference(
    found: dict[str, dict[int, float]], first: str, second: str
) -> tuple[float, str] | None:
    """Mean difference of two methods over the folds that both have, and a sentence."""
    shared = sorted(set(found.get(first, {})) & set(found.get(second, {})))
    if not shared:
        return None
    values = [np.array([found[m][k] for k in shared]) for m in (first, second)]
    mean, low, high = corrected_interval(values[0] - values[1], 1 / max(len(shared), 2))
    interval = "" if np.isnan(low) else f" [{low:+.3f}, {high:+.3f}]"
    means = f"{first} {values[0].mean():.3f}, {second} {values[1].mean():.3f}"
    folds = f"{len(shared)} fold{'s' if len(shared) > 1 else ''}"
    return mean, f"{means}: {mean:+.3f}{interval} on {folds}"


def left_out(results: Results) -> list[str]:
    """Say which fits were left out, and why."""
    return [
        f"- left out: {cell['cell']['data']}, fold {cell['cell']['fold']}, {cell['cell']['method']}: "
        f"{cell['left_out']}\n"
        for cell in results.cells
        if "left_out" in cell
    ]


def report(results: Results, path: Path) -> None:
    """Write the page: ours against each rival, losses first, and the two languages."""
    lines, verdicts, languages, firsts = [], [], [], []
    for name in SETS:
        found = by_method(results, name)
        means = {m: float(np.mean(list(own.values()))) for m, own in found.items() if m in METHODS}
        lines += [
            [name, m, means[m], f"{len(found[m])} of {n_folds(name)}"]
            for m in METHODS
            if m in means
        ]
        rivals = [m for m in means if m not in OURS]
        told = [difference(found, ours, rival) for ours in (OURS[0], OURS[-1]) for rival in rivals]
        verdicts += [(mean, f"- {name}: {text}") for mean, text in filter(None, told)]
        best = max((m for m in means if m in OURS), key=means.__getitem__, default="")
        ahead = [difference(found, best, rival) for rival in rivals] if best else []
        if ahead and all(one and one[0] >= 0 for one in ahead):
            firsts.append(f"{name} ({best})")
        told = [difference(found, *CLAUSES)]
        languages += [(mean, f"- {name}: {text}") for mean, text in filter(None, told)]
    text = [
        "# Relational models and their rivals\n",
        "Average precision, means over the folds that a method has finished. RDN-Boost (srlearn) where a fit took less "
        "than ten minutes of the processor; where it has fewer folds, it is compared on those.\n",
        f"Ours is first in the mean, over the folds that both have, on {len(firsts)} of {len(SETS)}: "
        f"{', '.join(firsts) or 'none'}.\n",
        markdown_table(["data", "method", "AP", "folds"], lines),
        *left_out(results),
        "## Ours against each rival, losses first\n",
        "95% intervals after Nadeau & Bengio (2003).\n",
        "\n".join(line for _, line in sorted(verdicts)) + "\n",
        "## Does the larger language pay?\n",
        "\n".join(line for _, line in sorted(languages)) + "\n",
    ]
    path.write_text("\n".join(text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget-minutes", type=float, default=60.0)
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    parser.add_argument("--language", action="store_true", help="each extension alone")
    parser.add_argument("--folds", type=int, default=N_FOLDS)
    parser.add_argument("--report-only", action="store_true")
    arguments = parser.parse_args()
    use_local_data()
    results = Results(ROOT / "results" / "relational_rivals.jsonl")
    deadline = time.monotonic() + 60 * arguments.budget_minutes
    methods = list(LANGUAGES) if arguments.language else arguments.methods
    for fold in range(0 if arguments.report_only else arguments.folds):
        for name in arguments.sets:
            for method in methods:
                if time.monotonic() < deadline and fold < n_folds(name):
                    cell = {"data": name, "fold": fold, "method": method}
                    results.run([cell], run_cell)
    report(results, ROOT / "results" / "relational_rivals.md")


if __name__ == "__main__":
    main()
