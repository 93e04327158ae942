"""Lists of every length: exact values, and intervals that do not claim too much."""

from __future__ import annotations

import naive_report as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from toprank import metrics, report
from toprank.metrics.bootstrap import ListSample, affordable_resamples
from toprank.metrics.steps import CumulativeCounts, Staircase
from toprank.report.evaluate import check_list_lengths, count_interval, length_grid
from toprank.validation import BinaryRows

TINY = st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=2, max_size=6).filter(
    lambda rows: len({positive for positive, _ in rows}) == 2
)


def simulated(rng, n=2000, rate=0.1, shift=2.0):
    y = rng.random(n) < rate
    return y, rng.normal(size=n) + shift * y


@given(TINY)
def test_observed_lists_are_means_over_all_orders_of_ties(rows):
    positive = np.array([row[0] for row in rows])
    scores = np.array([row[1] for row in rows], dtype=float)
    value = np.arange(len(rows)) + 1.0
    sample = ListSample(BinaryRows(positive, scores, None))
    passed = CumulativeCounts.of(sample.stairs)
    sums = sample.step_sums(value[positive])
    for length in range(1, len(rows) + 1):
        at = np.array([float(length)])
        assert passed.positives_among(at)[0] == pytest.approx(
            naive.hits_by_orders(positive, scores, length)
        )
        assert passed.sum_among(at, sums)[0] == pytest.approx(
            naive.money_by_orders(positive, scores, value, length)
        )


@given(TINY, st.floats(0, 1), st.floats(0.01, 1))
def test_curves_match_their_naive_versions(rows, rate, recall):
    positive = np.array([row[0] for row in rows])
    scores = np.array([row[1] for row in rows], dtype=float)
    passed = CumulativeCounts.of(ListSample(BinaryRows(positive, scores, None)).stairs)
    assert passed.recall_at_fpr(np.array([rate]))[0] == pytest.approx(
        naive.recall_at_rate(positive, scores, rate)
    )
    assert passed.precision_at_recall(np.array([recall]))[0] == pytest.approx(
        naive.precision_at(positive, scores, recall)
    )


def test_values_are_those_of_the_metrics(rng):
    y, scores = simulated(rng)
    scores = scores.round(1)  # ties
    lists = report.evaluate(y, scores, n_resamples=20)["lists"]
    for length in (1, 10, 57, 300, 2000):
        place = lists["length"].index(length)
        precision = metrics.precision_at_k(y, scores, k=length)
        assert lists["precision"]["value"][place] == pytest.approx(precision)
        assert lists["hits"]["value"][place] == pytest.approx(precision * length)
        assert lists["recall"]["value"][place] == pytest.approx(precision * length / y.sum())
        assert lists["false_alarms"]["value"][place] == pytest.approx((1 - precision) * length)


def test_weight_two_is_the_row_twice_and_weight_zero_none(rng):
    y, scores = simulated(rng, 300)
    weight = rng.integers(0, 3, 300)
    weighted = report.evaluate(y, scores, sample_weight=weight, n_resamples=20)
    repeated = report.evaluate(np.repeat(y, weight), np.repeat(scores, weight), n_resamples=20)
    for name in ("hits", "precision", "recall", "false_alarms"):
        np.testing.assert_allclose(
            weighted["lists"][name]["value"], repeated["lists"][name]["value"]
        )
    assert weighted["data"]["n_positives"] == repeated["data"]["n_positives"]


def test_intervals_agree_with_those_of_the_metrics(rng):
    y, scores = simulated(rng)
    lists = report.evaluate(y, scores, n_resamples=2000)["lists"]
    for length in (50, 200, 1000):
        place = lists["length"].index(length)
        other = metrics.interval("precision_at_k", y, scores, k=length, n_resamples=2000)
        spread = other.high - other.low
        assert lists["precision"]["low"][place] == pytest.approx(other.low, abs=0.12 * spread)
        assert lists["precision"]["high"][place] == pytest.approx(other.high, abs=0.12 * spread)


def test_weighted_resamples_agree_with_those_of_the_metrics(rng):
    y, scores = simulated(rng)
    weight = rng.uniform(0.5, 2, len(y))
    lists = report.evaluate(y, scores, sample_weight=weight, n_resamples=2000)["lists"]
    place = lists["length"].index(200)
    other = metrics.interval(
        "precision_at_k", y, scores, k=200, n_resamples=2000, sample_weight=weight
    )
    assert lists["precision"]["low"][place] == pytest.approx(other.low, abs=0.01)
    assert lists["precision"]["high"][place] == pytest.approx(other.high, abs=0.01)


def test_metrics_are_those_of_evaluate_with_close_intervals(rng):
    y, scores = simulated(rng)
    ours = report.evaluate(y, scores, n_resamples=2000)["metrics"]
    theirs = metrics.evaluate(
        y, scores, n_resamples=2000, parameters={"partial_auc": {"fpr": (0, 0.1)}}
    )
    assert list(ours) == list(theirs)
    for name, entry in theirs.items():
        assert ours[name]["value"] == entry["value"]
        assert ours[name]["method"] == entry["method"]
        spread = entry["high"] - entry["low"]
        assert ours[name]["low"] == pytest.approx(entry["low"], abs=0.15 * spread)
        assert ours[name]["high"] == pytest.approx(entry["high"], abs=0.15 * spread)


@pytest.mark.parametrize("length", [1, 5, 50])
def test_a_list_without_an_error_is_not_called_certain(length):
    hits, lengths = np.array([float(length)]), np.array([length])
    drawn = np.full((10, 1), float(length))
    low, high = count_interval(hits, drawn, lengths, 0.95)
    exact = stats.binomtest(length, length).proportion_ci(0.95)
    assert low[0] / length == pytest.approx(exact.low)
    assert low[0] / length == pytest.approx(naive.all_right_limit(length, 0.025))
    assert high[0] == length
    none_low, none_high = count_interval(0 * hits, 0 * drawn, lengths, 0.95)
    exact = stats.binomtest(0, length).proportion_ci(0.95)
    assert none_low[0] == 0
    assert none_high[0] / length == pytest.approx(exact.high)


def test_perfect_ranking_on_the_first_screen():
    y = np.arange(1000) < 100
    found = report.evaluate(y, y.astype(float), n_resamples=50)["lists"]
    place = found["length"].index(50)
    assert found["precision"]["value"][place] == 1
    assert 0.9 < found["precision"]["low"][place] < 0.95


@given(
    st.lists(st.floats(-1e300, 1e300), min_size=4, max_size=40),
    st.randoms(use_true_random=False),
)
def test_every_interval_holds_its_value_and_stays_in_bounds(scores, random):
    y = [index % 2 for index in range(len(scores))]
    random.shuffle(y)
    lists = report.evaluate(y, scores, n_resamples=20)["lists"]
    for name, most in (("precision", 1), ("recall", 1), ("hits", len(y)), ("false_alarms", len(y))):
        column = {key: np.array(lists[name][key]) for key in ("low", "value", "high")}
        assert (column["low"] <= column["value"] + 1e-12).all()
        assert (column["value"] <= column["high"] + 1e-12).all()
        assert (column["low"] >= -1e-9).all()
        assert (column["high"] <= most + 1e-9).all()


def test_money_is_what_the_checks_leave(rng):
    y, scores = simulated(rng, 500)
    value = rng.lognormal(3, 1, 500)
    money = report.evaluate(y, scores, value=value, cost_of_check=2.5, n_resamples=50)["lists"][
        "money"
    ]
    order = np.argsort(-scores)
    caught = np.cumsum(np.where(y, value, 0)[order])
    grid = length_grid(500, [50, 100, 200, 400, 500])
    np.testing.assert_allclose(money["caught"]["value"], caught[grid - 1])
    np.testing.assert_allclose(money["spent"], 2.5 * grid)
    np.testing.assert_allclose(money["net"]["value"], caught[grid - 1] - 2.5 * grid)
    np.testing.assert_allclose(money["net"]["low"], np.array(money["caught"]["low"]) - 2.5 * grid)


def test_a_cost_without_values_only_counts_what_is_spent():
    money = report.evaluate([0, 1, 0, 1], [1, 2, 3, 4], cost_of_check=3, n_resamples=5)
    assert money["lists"]["money"]["spent"] == [3, 6, 9, 12]
    assert money["lists"]["money"]["caught"] is None


@pytest.mark.parametrize("total", [1, 7, 300, 301, 5_000, 123_456, 2_000_000])
def test_the_grid_is_dense_where_it_matters_and_small(total):
    grid = length_grid(total, [50] if total >= 50 else [])
    assert grid[0] == 1
    assert grid[-1] == total
    assert set(range(1, min(total, 300) + 1)) <= set(grid.tolist())
    assert len(grid) < 700
    beyond = grid[grid >= 300]
    assert (np.diff(beyond) <= 0.05 * beyond[:-1]).all()


def test_lengths_are_checked_and_cut_to_the_data():
    assert check_list_lengths([200, 50], 120) == [50, 120]
    for wrong in ([], [0], [1.5], [True], [-3]):
        with pytest.raises(ValueError, match="lengths"):
            check_list_lengths(wrong, 100)


def test_fewer_resamples_on_large_data_but_never_few():
    assert affordable_resamples(1000, 100) == 1000
    assert affordable_resamples(1000, 1e9) == 200
    assert affordable_resamples(50, 1e9) == 50


def test_bigger_lists_count_beyond_the_longest_shown(rng):
    y, scores = simulated(rng, 1500)
    found = report.evaluate(y, scores, lengths=(10, 100), n_resamples=20)
    assert [entry["length"] for entry in found["bigger"]] == [200, 500, 1000]
    ranked = y[np.argsort(-scores)]
    for entry in found["bigger"]:
        assert entry["more_hits"] == pytest.approx(ranked[100 : entry["length"]].sum())
        assert entry["more_false_alarms"] == pytest.approx((~ranked[100 : entry["length"]]).sum())
    assert report.evaluate([0, 1], [0, 1], n_resamples=5)["bigger"] == []


def test_a_step_that_a_resample_misses_is_passed_over():
    scores = np.array([3.0, 1.0])  # of the positives; one negative lies between them
    stairs = Staircase(np.array([0.0, 1.0, 0.0]), np.array([0.0, 2.0]), np.zeros(2), scores)
    precision = CumulativeCounts.of(stairs).precision_at_recall(np.array([0.5, 1.0]))
    assert precision.tolist() == pytest.approx([1 / 2, 2 / 3])
