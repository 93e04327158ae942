"""The metrics against scikit-learn, XGBoost, trec_eval and the papers' own examples."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from toprank import metrics


def draw(seed: int, n: int = 400, decimals: int = 1) -> tuple[np.ndarray, ...]:
    """Labels, scores with ties, and weights."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.2).astype(int)
    scores = np.round(rng.normal(size=n) + y, decimals)
    return y, scores, rng.uniform(0.1, 3, size=n)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("decimals", [0, 1, 8])
@pytest.mark.parametrize("weighted", [False, True])
def test_scikit_learn_agrees(seed, decimals, weighted) -> None:
    y, scores, weight = draw(seed, decimals=decimals)
    weight = weight if weighted else None
    ours = {"sample_weight": weight}
    assert metrics.roc_auc(y, scores, **ours) == pytest.approx(
        roc_auc_score(y, scores, sample_weight=weight), abs=1e-12
    )
    assert metrics.average_precision(y, scores, **ours) == pytest.approx(
        average_precision_score(y, scores, sample_weight=weight), abs=1e-12
    )
    for high in (0.013, 0.1, 0.5, 0.99):
        theirs = roc_auc_score(y, scores, max_fpr=high, sample_weight=weight)
        got = metrics.partial_auc(y, scores, fpr=(0, high), standardize="mcclish", **ours)
        assert got == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [None, 1, 3, 10, 50])
@pytest.mark.parametrize("decimals", [0, 8])
def test_scikit_learn_agrees_on_ndcg(seed, k, decimals) -> None:
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 4, size=50)
    scores = np.round(rng.normal(size=50) + grades, decimals)
    exponential = ndcg_score([2.0**grades - 1], [scores], k=k)
    assert metrics.ndcg(grades, scores, k=k) == pytest.approx(exponential, abs=1e-12)
    linear = ndcg_score([grades], [scores], k=k)
    assert metrics.ndcg(grades, scores, k=k, gain="linear") == pytest.approx(linear, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("decimals", [0, 1, 6])
@pytest.mark.parametrize("weighted", [False, True])
def test_xgboost_agrees_on_the_recall_precision_area(seed, decimals, weighted) -> None:
    xgboost = pytest.importorskip("xgboost")
    y, scores, weight = draw(seed, decimals=decimals)
    scores = scores.astype(np.float32)
    weight = weight.astype(np.float32) if weighted else None
    data = xgboost.DMatrix(np.zeros((len(y), 1)), label=y, base_margin=scores, weight=weight)
    settings = {"objective": "binary:logitraw", "eval_metric": "aucpr", "nthread": 1}
    theirs = xgboost.train(settings, data, num_boost_round=0).eval(data)
    ours = metrics.recall_precision_area(y, scores, sample_weight=weight)
    assert ours == pytest.approx(float(theirs.split(":")[1]), abs=1e-9)


@pytest.mark.parametrize("graded", [False, True])
def test_trec_eval_agrees_on_every_query(graded) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(3)
    sizes = rng.integers(2, 40, size=30)
    qid = np.repeat(np.arange(30), sizes)
    y = rng.integers(0, 4 if graded else 2, size=len(qid)) * (rng.random(len(qid)) < 0.4)
    scores = rng.permutation(len(qid)).astype(float)
    judged, run = {}, {}
    for query in range(30):
        rows = np.flatnonzero(qid == query)
        judged[f"q{query}"] = {f"d{i}": int(y[i]) for i in rows}
        run[f"q{query}"] = {f"d{i}": float(scores[i]) for i in rows}
    wanted = {"map", "ndcg", "recip_rank", "P_5", "P_10"}
    theirs = pytrec_eval.RelevanceEvaluator(judged, wanted).evaluate(run)
    ours = {
        "map": (metrics.mean_average_precision, {}),
        "ndcg": (metrics.ndcg, {"gain": "linear"}),
        "recip_rank": (metrics.mean_reciprocal_rank, {}),
        "P_5": (metrics.precision_at_k, {"k": 5}),
        "P_10": (metrics.precision_at_k, {"k": 10}),
    }
    relevant = [query for query in range(30) if y[qid == query].any()]
    assert 0 < len(relevant) < 30
    for name, (function, parameters) in ours.items():
        for query in relevant:
            # a second query with nothing to find is left out of the mean, and makes two classes
            rows = np.append(np.flatnonzero(qid == query), np.flatnonzero(qid == query)[0])
            labels = np.append(y[rows[:-1]], 0)
            queries = np.append(qid[rows[:-1]], -1)
            value, skipped = function(
                labels, scores[rows], qid=queries, return_skipped=True, **parameters
            )
            assert skipped == 1
            assert value == pytest.approx(theirs[f"q{query}"][name], abs=1e-9), (name, query)
        mean, skipped = function(y, scores, qid=qid, return_skipped=True, **parameters)
        each = [theirs[f"q{query}"][name] for query in relevant]
        assert mean == pytest.approx(np.mean(each), abs=1e-9)
        assert skipped == 30 - len(relevant)


@pytest.mark.parametrize(
    ("ranks", "auc", "precision"), [((4, 5), 0.63, 0.33), ((2, 8), 0.56, 0.38)]
)
def test_two_lists_on_which_auc_and_average_precision_disagree(ranks, auc, precision) -> None:
    """Figure 1 of Frery et al., "Efficient top rank optimization with gradient boosting" (2017)."""
    y = np.isin(np.arange(1, 11), ranks)
    scores = -np.arange(10.0)
    assert metrics.roc_auc(y, scores) == pytest.approx(auc, abs=0.0051)
    assert metrics.average_precision(y, scores) == pytest.approx(precision, abs=0.0051)


@pytest.mark.parametrize(
    ("slope", "auc", "precision"), [(1, 0.485, 0.324), (-1, 0.515, 0.294), (0, 0.5, 0.214)]
)
def test_toy_of_fourteen_points(slope, auc, precision) -> None:
    """Table 1 of the same paper: x = -6..7, positives at -3, -2 and 6, scores slope * x."""
    x = np.arange(-6, 8)
    y = np.where(np.isin(x, (-3, -2, 6)), 1, -1)
    assert metrics.roc_auc(y, slope * x) == pytest.approx(auc, abs=5e-4)
    assert metrics.average_precision(y, slope * x) == pytest.approx(precision, abs=5e-4)
