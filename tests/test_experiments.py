"""The experiments' common ground: cells that survive an interruption, verdicts, one entry."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import common
from experiments.__main__ import experiments
from experiments.common import Results, code_state, reaches
from experiments.gleaner import Gleaner
from experiments.summary import page_rows, page_table, short
from toprank import RelationalData
from toprank.metrics import recall_precision_area
from toprank.rules.relational.coverage import Coverage


def test_a_cell_is_computed_once_and_a_broken_run_goes_on(tmp_path):
    calls = []

    def compute(number):
        calls.append(number)
        if number == 2 and len(calls) < 4:
            raise KeyboardInterrupt
        return {"value": number**2}

    cells = [{"number": number} for number in (1, 2, 3)]
    with pytest.raises(KeyboardInterrupt):
        Results(tmp_path / "cells.jsonl").run(cells, compute)
    Results(tmp_path / "cells.jsonl").run([cells[0], cells[2]], compute)
    results = Results(tmp_path / "cells.jsonl")
    results.run(cells, compute)
    assert calls == [1, 2, 3, 2]
    assert sorted(results.values("value")) == [1, 4, 9]


def test_cells_of_other_code_are_run_again_when_asked_and_then_count_once(tmp_path):
    path, cells = tmp_path / "cells.jsonl", [{"number": 1}, {"number": 2}]
    Results(path).run(cells, lambda number: {"value": number})
    later = Results(path)
    later.run(cells, lambda number: {"value": -number}, code="b")  # finished: left alone
    assert later.values("value").tolist() == [1, 2]
    later.run(cells[:1], lambda number: {"value": 10 * number}, code="b", anew=True)
    later.run(cells[:1], lambda number: {"value": 0}, code="b", anew=True)  # of this code already
    for results in (later, Results(path)):
        assert results.values("value").tolist() == [10, 2]
        assert [cell.get("code") for cell in results.cells] == ["b", None]
    assert len(path.read_text().splitlines()) == 3
    later.tidy()
    assert Results(path).values("value").tolist() == [10, 2]
    assert len(path.read_text().splitlines()) == 2


def test_the_state_of_code_does_not_depend_on_comments_and_docstrings(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "LIBRARY", tmp_path)
    (tmp_path / "family").mkdir()
    states = []
    for text in (
        "def f(x):\n    return x + 1\n",
        '"""A family."""\n\ndef f(x):\n    # one more\n    return x + 1\n',
        "def f(x):\n    return x + 2\n",
    ):
        (tmp_path / "family" / "part.py").write_text(text)
        states.append(code_state("family"))
    assert states[0] == states[1] != states[2]


@pytest.mark.parametrize(
    ("ours", "published", "deviation", "verdict"),
    [
        (0.81, 0.80, 0.0, "reaches"),
        (0.80, 0.80, 0.0, "reaches"),
        (0.79, 0.80, 0.0, "does not reach"),
        (0.79, 0.80, 0.02, "reaches, within its deviation,"),
        (0.77, 0.80, 0.02, "does not reach"),
    ],
)
def test_reaching_is_a_matter_of_means_and_published_deviations(
    ours, published, deviation, verdict
):
    assert reaches(ours, published, deviation) == verdict


def test_every_experiment_has_a_sentence():
    found = experiments()
    assert {"sgbap", "treerank", "poise", "prankboost", "lambdamart_auc", "defaults"} <= set(found)
    assert all(len(sentence) > 20 for sentence in found.values())
    assert "common" not in found


def readme_lines() -> list[str]:
    """The README with numbers as the pages have them: one space between words."""
    text = (Path(__file__).parents[1] / "README.md").read_text()
    return [" ".join(part.split()) for part in text.split("\n|")] + [" ".join(text.split())]


def said_in_readme(*phrases: str) -> bool:
    """Whether one line of a table, or the text, has all of these."""
    return any(all(phrase in line for phrase in phrases) for line in readme_lines())


def test_the_readme_has_the_figures_of_the_default_and_its_rivals():
    found = page_table("defaults", "method")
    names = {
        "mean AP": "default", "CatBoost": "catboost", "logistic twin": "logistic twin", "LightGBM": "lightgbm",
        "random forest": "random_forest", "XGBoost": "xgboost",
    }  # fmt: skip
    shown = [f"{name} {short(found[method]['mean AP'])}" for name, method in names.items()]
    assert said_in_readme(", ".join(shown), f"mean rank {float(found['default']['mean rank']):.1f}")
    sets = page_table("defaults", "set")
    behind = sum(entry["default less best rival"].startswith("-") for entry in sets.values())
    assert said_in_readme(f"on {behind} of {len(sets)} sets some rival is ahead of the default")
    hundred = "positives to 100"
    lead = float(found["catboost"][hundred]) - float(found["default"][hundred])
    assert said_in_readme(f"CatBoost leads by {short(lead)} in the mean")
    for rival in set(names.values()) - {
        "default"
    }:  # "none of them on most", says the page on choosing
        ahead = [float(entry[rival]) > float(entry["default"]) for entry in sets.values()]
        assert np.mean(ahead) < 0.5


def test_the_readme_has_the_figures_of_payments_forests_rules_and_promises():
    large = {
        row["method"]: short(row["AP"])
        for row in page_rows("sgbap_large")
        if row["data"] == "payments"
    }
    own = "GradientBoostingRanker"
    assert said_in_readme(
        f"AP {large[f'{own}(), given time']}, with 100 rounds {large[f'{own}, 100 rounds']}; "
        f"LambdaMART-AP {large['LambdaMART-AP']}, logistic {large['GB-Logistic']}"
    )
    assert said_in_readme(f"({large[f'{own}()']} instead of {large[f'{own}(), given time']})")
    forest = page_table("trees_and_margin", "method")["RankingForest"]
    relative = float(forest["AP"]) - float(forest["less relative"])
    ratio = f"{float(forest['ratio']):.2f}".lstrip("0")
    assert said_in_readme(
        f"mean AP {short(forest['AP'])} and {short(relative)}, {ratio} times its time",
        f"({forest['splits of sets'].split()[-1]} sets, one split",
    )
    rules = page_table("compact_rules", "method")
    assert said_in_readme(
        f"mean AP {short(rules['RuleScorecard']['mean AP'])} on",
        f"ten XGBoost stumps {short(rules['XGBoost stumps']['mean AP'])}, RuleFit "
        f"{short(rules['RuleFit']['mean AP'])}, FIGS {short(rules['FIGS']['mean AP'])}",
    )
    counts = {"fpr": [0, 0], "precision": [0, 0]}
    for row in page_rows("promises"):
        if row["model"] == "all" and row["promise"].split()[0] in counts:
            kind = counts[row["promise"].split()[0]]
            kind[0] += int(row["kept"].split()[0])
            kind[1] += int(row["promised"])
    assert said_in_readme(
        "precisions {} of {} kept, false positive rates {} of {}".format(*counts["precision"], *counts["fpr"])
    )  # fmt: skip


def test_the_readme_has_the_counts_of_the_published_tables():
    text = (Path(__file__).parents[1] / "docs" / "results.md").read_text()
    pattern = r"\*\*(\d+ of \d+) published (\w+)"
    ap, poise, forests, rivals = (number for number, _ in re.findall(pattern, text))
    above = int(re.search(r"AP \d+ of \d+ \((\d+) at or above", text)[1])
    within = int(ap.split()[0]) - above
    assert said_in_readme(
        f"{ap} published average precisions reached, {above} of them in the mean",
        f"{within} within the published deviation",
        f"POISE: {poise} figures; ranking forests: {forests} AUCs, their rivals: {rivals}",
    )
    found = re.search(r"ahead of all six rivals on (\d+ of \d+) sets here, on (\d+)", text)
    first = "Ranking forests are ahead of all six rivals on"
    assert said_in_readme(f"{first} {found[1]} sets, where their paper has {found[2]}")


def test_the_readme_has_the_figures_of_auto_ranker():
    rivals = {"default": "default", "CatBoost": "catboost", "AutoGluon": "autogluon", "FLAML": "flaml",
              "PerpetualBooster": "perpetual"}  # fmt: skip
    few = {row["method"]: row for row in page_rows("auto", "method")}

    def figures(row: dict[str, str]) -> str:
        return f"{short(row['mean AP'])} and {float(row['mean rank']):.1f}"

    shown = [f"{name} {figures(few[method])}" for name, method in rivals.items()]
    assert said_in_readme(f"mean AP and rank {figures(few['AutoRanker'])}", *shown)
    page = (Path(__file__).parents[1] / "experiments" / "results" / "auto.md").read_text()
    sizes = [int(n) for n in re.findall(r"## The (\d+) sets that all of these have finished", page)]
    assert said_in_readme(f"({sizes[0]} sets", f"on {sizes[-1]} sets")
    many = {
        row["rival"]: row for row in page_rows("auto", "rival") if int(row["sets"]) == sizes[-1]
    }
    assert said_in_readme(
        f"mean AP {short(many['default']['AutoRanker'])}, default {short(many['default'][RIVAL])}, "
        f"CatBoost {short(many['catboost'][RIVAL])}"
    )
    behind = many["default"]["better : worse"].split(" : ")[1]
    assert said_in_readme(f"`AutoRanker` is behind the default on {behind} of {sizes[-1]} sets")
    held = re.search(
        r"holds the test AP in ([.\d]+) of (\d+) splits at random, and in ([.\d]+) of (\d+)", page
    )
    told = re.search(r"groups=...\)` it holds in ([.\d]+) of (\d+)", page)
    assert said_in_readme(
        f"its 95% interval held in {100 * float(held[1]):.0f}% of {held[2]} splits",
        f"{100 * float(held[3]):.0f}% of {held[4]} by groups that it was not told",
        f"{100 * float(told[1]):.0f}% of {told[2]} when told",
    )
    low, high = (float(many["default"][end]) for end in ("low", "high"))
    assert said_in_readme(f"(less default: {low:+.3f} to {high:+.3f})")
    rows = page_rows("auto_choices")
    chosen = {row["choice"].split(":")[0]: row for row in rows}
    (splits,) = (column for column in rows[0] if column.endswith("splits"))
    default = "GradientBoostingRanker(), one fit of all rows"
    assert said_in_readme(
        f"mean AP {short(chosen['weights in use'][splits])}, the member that does best in validation "
        f"{short(chosen['best member'][splits])}, the default {short(chosen[default][splits])}, "
        f"CatBoost {short(chosen['CatBoost'][splits])} ({splits.split()[0]} small sets"
    )


RIVAL = "rival's AP"


def test_gleaner_keeps_the_best_clause_of_each_bin_and_seed():
    """Persons who know an owner are positive; others are noise."""
    rng = np.random.default_rng(0)
    names = np.array([f"p{k}" for k in range(240)])
    pairs = rng.integers(0, 240, (500, 2))
    owners = rng.random(240) < 0.15
    tables = {
        "knows": pd.DataFrame({"a": names[pairs[:, 0]], "b": names[pairs[:, 1]]}),
        "owner": pd.DataFrame({"person": names[owners]}),
        "tall": pd.DataFrame({"person": names[rng.random(240) < 0.5]}),
    }
    y = np.zeros(240, dtype=int)
    y[pairs[owners[pairs[:, 1]], 0]] = 1
    data = RelationalData(tables, pd.DataFrame({"person": names}), target="rich")
    gleaner = Gleaner(n_seeds=6, clauses_per_seed=60, n_bins=5, random_state=0)
    curve = [
        (evaluated, recall_precision_area(y, gleaner.scores(data)))
        for evaluated in gleaner.fit(data, y)
    ]
    assert [n for n, _ in curve] == sorted({n for n, _ in curve})  # ever more clauses
    assert curve[-1][1] > 0.95 > y.mean() + 0.3
    # each kept clause has its recall, and its precision x recall, among the rows that it was searched in
    learnt = np.ones(240, dtype=bool)
    tuning = gleaner.tuning.examples["person"].to_numpy()
    learnt[np.isin(names, tuning)] = False
    rows = data[learnt]
    with Coverage(rows.background, rows.codes()) as coverage:
        for place, bodies in enumerate(gleaner.kept):
            for body, quality in bodies.items():
                covered = coverage.mask(body)
                hits = (covered & (y[learnt] > 0)).sum()
                recall = hits / y[learnt].sum()
                assert min(int(recall * 5), 4) == place
                assert quality == pytest.approx(recall * hits / covered.sum())
