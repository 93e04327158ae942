"""Extreme numbers: refused by column and row, or computed with; never a crash, a hang or silence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

import toprank
from toprank import metrics
from toprank._ranking_kernels import merge_classes
from toprank.base import WeightScale
from toprank.columns import Columns
from toprank.metrics._kernels import inverse_log_sum, logarithmic_integral
from toprank.ranking import (
    RankedList,
    RankedQueries,
    descending_order,
    order_by_code,
)
from toprank.shortlisting import CalibratedRanker
from toprank.validation import check_cells

NAN, INF = float("nan"), float("inf")


# -- scores ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("n_rows", [2, 30_000])
def test_no_ranking_of_scores_that_are_not_finite(bad: float, n_rows: int) -> None:
    scores = np.linspace(0, 1, n_rows)
    scores[0] = bad
    y = np.arange(n_rows) % 2
    for work in (
        lambda: RankedList.of(y, scores),
        lambda: RankedList.of(y, scores, np.ones(n_rows)),
        lambda: RankedQueries.of(scores),
        lambda: descending_order(scores),
        lambda: order_by_code(scores, y, 2),
    ):
        with pytest.raises(ValueError, match="1 NaN or infinite"):
            work()


def test_kernels_end_whatever_the_scores() -> None:
    """They are never called with NaN; if they were, they would stay inside their arrays."""
    scores, _, positives, negatives = merge_classes(np.array([NAN, NAN]), np.array([1.0, NAN]))
    assert len(scores) == 4
    assert (positives[-1], negatives[-1]) == (2, 2)
    assert np.isnan(logarithmic_integral(NAN))
    assert inverse_log_sum(1e17, 1e17) == pytest.approx(1 / np.log(1e17))


class Nonsense(toprank.LogisticRanker):
    """A ranker that has no score for some rows."""

    def decision_function(self, X: Any) -> np.ndarray:
        scores = super().decision_function(X)
        return np.where(np.arange(len(scores)) == 3, NAN, scores)


def test_a_calibrated_ranker_does_not_pass_on_nonsense() -> None:
    X, y = draw_rows()
    model = CalibratedRanker(toprank.LogisticRanker(), cv=2).fit(X, y)
    model.estimator_.__class__ = Nonsense
    for work in (model.decision_function, model.predict_proba, model.probability_interval):
        with pytest.raises(ValueError, match="Nonsense returns has 1 NaN"):
            work(X)


# -- cells ----------------------------------------------------------------------------------------------


def draw_rows(n_rows: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3)).round(1)
    return X, (X[:, 0] + 0.7 * rng.normal(size=n_rows) > 0.8).astype(int)


@pytest.mark.parametrize("large", [1e39, -1e200, 1e308])
@pytest.mark.parametrize("form", ["array", "sparse", "table"])
def test_a_huge_cell_is_named(large: float, form: str) -> None:
    X, y = draw_rows()
    X[16, 1] = large
    rows: Any = {
        "array": X,
        "sparse": sparse.csr_matrix(X),
        "table": pd.DataFrame(X, columns=["a", "x1", "c"]),
    }[form]
    with pytest.raises(ValueError, match=re.escape(f"column 'x1' holds {large:g} in row 17")):
        toprank.RankSVM().fit(rows, y)
    with pytest.raises(ValueError, match="column 'x1' is infinite in row 17"):
        toprank.LogisticRanker().fit(np.where(large == X, INF, X), y)
    with pytest.raises(
        ValueError, match="NaN: column 'x1' is missing in row 17, and LogisticRanker"
    ):
        toprank.LogisticRanker().fit(np.where(large == X, NAN, X), y)


def test_cells_that_pass() -> None:
    largest = np.finfo(np.float32).max
    for cells in (
        np.array([[largest, -largest]]), np.array([[NAN, 1.0]]), np.full((2, 2), NAN), np.zeros((0, 2)),
        np.full((1000, 2), largest, dtype=np.float32), sparse.csr_matrix((3, 2)),
    ):  # fmt: skip
        check_cells(cells, ["a", "b"])
    check_cells(np.full((5, 1), 1e38), ["a"], "somebody")


# -- weights --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-310, 1e300])
@pytest.mark.parametrize("name", ["TreeRank", "RankBoost", "LogisticRanker"])
def test_the_unit_of_weights_does_not_matter(name: str, unit: float) -> None:
    """Every estimator is asked this with usual units in the contract, these with extreme ones."""
    X, y = draw_rows()
    model = getattr(toprank, name)()
    if hasattr(model, "random_state"):
        model.set_params(random_state=0)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    expected = model.fit(X, y, sample_weight=weight).decision_function(X)
    found = model.fit(X, y, sample_weight=unit * weight).decision_function(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("factor", [7.0, 1e-3, 1e-300])
@pytest.mark.parametrize("kind", ["any", "whole"])
def test_nor_does_it_out_of_core(kind: str, factor: float, tmp_path: Path) -> None:
    X, y = draw_rows()
    random = np.random.default_rng(1)
    weight = random.uniform(0.5, 2.0, 200) if kind == "any" else random.integers(0, 4, 200)
    shops = np.char.add("shop ", random.integers(0, 40, 200).astype(str))  # read as their counts
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(shop=shops)
    scores = []
    for k, scale in enumerate((1.0, factor)):
        frame.assign(y=y, w=scale * weight).to_parquet(tmp_path / f"{k}.parquet")
        model = toprank.GradientBoostingRanker(n_estimators=5, n_jobs=1, random_state=0)
        model.fit_source(tmp_path / f"{k}.parquet", target="y", sample_weight="w")
        scores.append(model.decision_function(frame))
        assert model.columns_.numbers[3] is not None
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [
        ([1, 2, 3, 0], [1, 2, 3, 0]),  # copies
        ([2, 2, 2, 2], [1, 1, 1, 1]),
        ([20, 30, 0, 50], [2, 3, 0, 5]),
        ([0.75, 1.0, 1.25, 0.5], [3, 4, 5, 2]),
        ([0.1, 0.1, 0.2, 99.6], [0.004, 0.004, 0.008, 3.984]),  # too many copies: the mean is 1
        ([5, 6, 7, 8], [5 / 6.5, 6 / 6.5, 7 / 6.5, 8 / 6.5]),  # fifths are not tried
        ([1.0, np.pi, 0.0, 0.0], [2 / (1 + np.pi), 2 * np.pi / (1 + np.pi), 0, 0]),
        ([5e-324, 0.0, 0.0, 0.0], [1, 0, 0, 0]),
        ([1e308, 1e308, 1e308, 1e308], [1, 1, 1, 1]),
        ([0, 0, 0, 0], [0, 0, 0, 0]),
    ],
)
def test_the_unit_of_weights(weight: list[float], expected: list[float]) -> None:
    values = np.array(weight, dtype=np.float64)
    scale = WeightScale.of(values)
    np.testing.assert_allclose(scale.apply(values), expected, rtol=1e-4)
    parts = [WeightScale.of(part) for part in np.array_split(values, 3)]
    np.testing.assert_array_equal(WeightScale.merge(parts[::-1]).apply(values), scale.apply(values))
    if values.max() < 1e300 and values.max() > 1e-300:
        for constant in (1e-3, 7, 1 / 4, np.pi):
            scaled = constant * values
            np.testing.assert_array_equal(WeightScale.of(scaled).apply(scaled), scale.apply(values))


def test_many_distinct_weights_are_no_copies() -> None:
    values = np.arange(1.0, 12_000.0)
    for scale in (
        WeightScale.of(values),
        WeightScale.merge([WeightScale.of(values[:7000]), WeightScale.of(values[7000:])]),
    ):
        assert scale.values is None
        assert scale.apply(values).mean() == pytest.approx(1)


@pytest.mark.parametrize("unit", [1e-300, 1e-30, 1e300])
def test_metrics_of_tiny_weights(unit: float) -> None:
    X, y = draw_rows()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    found = metrics.evaluate(y, X[:, 0], sample_weight=unit * weight, n_resamples=0)
    expected = metrics.evaluate(y, X[:, 0], sample_weight=weight, n_resamples=0)
    for name in ("roc_auc", "average_precision", "partial_auc"):
        assert found[name]["value"] == pytest.approx(expected[name]["value"], rel=1e-9), name


# -- text -----------------------------------------------------------------------------------------------


def test_one_long_text_does_not_make_all_others_long() -> None:
    import tracemalloc

    texts = pd.DataFrame({"note": [f"text {k}" for k in range(600)] + ["x" * 1_000_000]})
    y = np.arange(601) % 2
    tracemalloc.start()
    columns = Columns.of(texts)
    codes = columns.matrix(texts)
    toprank.RankBoost(n_estimators=1).fit(texts, y)
    metrics.roc_auc(texts["note"].where(texts["note"] == "text 1", "no").to_numpy(), y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8
    assert sorted(codes[:, 0]) == list(range(601))


def test_labels_of_long_text() -> None:
    import tracemalloc

    labels = np.array(["no"] * 600 + ["yes" * 300_000], dtype=object)
    tracemalloc.start()
    assert metrics.roc_auc(labels, np.arange(601.0)) == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8


# -- threads --------------------------------------------------------------------------------------------


def test_kernel_scores_do_not_depend_on_the_threads_of_blas() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12))
    y = (X[:, 0] + rng.normal(size=3000) > 1).astype(int)
    found = set()
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            used = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
            assert used == {threads}
            model = toprank.KernelLogisticRanker(n_components=300, exact_rows=0, random_state=0)
            found.add(model.fit(X, y).decision_function(X).tobytes())
    assert len(found) == 1


@pytest.mark.parametrize("n_jobs", [100_000, -100_000])
def test_too_many_threads_are_refused_before_the_fit(n_jobs: int) -> None:
    X, y = draw_rows()
    with pytest.raises(ValueError, match="more than 1024 threads"):
        toprank.RankSVM(n_jobs=n_jobs).fit(X, y)
