"""Cuts: what is promised holds on new rows, whatever the scores look like."""

from __future__ import annotations

import json
import math

import naive_shortlisting as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, norm

from toprank import choose_cut
from toprank.shortlisting.counts import (
    OutOfFoldCounts,
    lower_share,
    probability_at_least,
    probability_at_most,
    share_interval,
    upper_share,
)
from toprank.shortlisting.cut import (
    Costs,
    cut_counts,
    fallback_tests,
    first_minimum,
    optimism,
    tried_lists,
)

RULES = ({"budget": 3}, {"fpr": 0.2}, {"precision": 0.3}, {"cost": (1.0, 4.0)})


def draw(rng: np.random.Generator, n: int, shift: float = 2.0, rate: float = 0.1):
    y = (rng.random(n) < rate).astype(int)
    return y, rng.normal(size=n) + shift * y


def labelled_scores(most: int = 40) -> st.SearchStrategy:
    row = st.tuples(
        st.integers(0, 1), st.sampled_from([-1e300, -3.0, 0.0, 1e-300, 0.5, 2.0, 1e300])
    )
    rows = st.lists(row, min_size=2, max_size=most)
    return rows.filter(lambda rs: 0 < sum(y for y, _ in rs) < len(rs)).map(
        lambda rs: (np.array([y for y, _ in rs]), np.array([s for _, s in rs]))
    )


# -- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "total"), [(0, 1), (0, 7), (1, 7), (5, 7), (7, 7), (3, 40)])
def test_bounds_are_those_of_the_binomial(hits: int, total: int) -> None:
    assert probability_at_least(hits, total, 0.3) == pytest.approx(
        naive.binomial_at_least(hits, total, 0.3)
    )
    assert probability_at_most(hits, total, 0.3) == pytest.approx(
        1 - naive.binomial_at_least(hits + 1, total, 0.3)
    )
    low, high = share_interval(hits, total, 0.9)
    assert low == pytest.approx(0 if hits == 0 else beta.ppf(0.05, hits, total - hits + 1))
    assert high == pytest.approx(1 if hits == total else beta.ppf(0.95, hits + 1, total - hits))
    if hits > 0:
        assert naive.binomial_at_least(hits, total, float(lower_share(hits, total, 0.05))) == (
            pytest.approx(0.05)
        )


def test_nothing_counted_says_nothing() -> None:
    assert share_interval(0, 0, 0.95) == (0.0, 1.0)
    assert float(upper_share(0, 0, 0.05)) == 1.0


# -- the rules against their naive twins ----------------------------------------------------------


@given(labelled_scores(), st.floats(0.01, 0.9), st.floats(0.01, 0.5))
def test_the_false_positive_rate(rows, fpr: float, error: float) -> None:
    y, scores = rows
    cut = choose_cut(y, scores, fpr=fpr, confidence=1 - error)
    expected = naive.fpr_cut(y, scores, fpr, error)
    assert cut.n_flagged == expected == cut.flags(scores).sum()
    assert cut.reached == (expected > 0)
    if cut.reached:
        assert cut.false_positive_rate_high <= fpr


@given(labelled_scores(), st.floats(0.0, 5.0), st.floats(0.1, 5.0))
def test_the_cheapest_cut(rows, false_alarm: float, miss: float) -> None:
    y, scores = rows
    counts = OutOfFoldCounts.of(y, scores)
    sums = (counts.by_steps_flagged(name) for name in ("positives", "negatives"))
    steps = first_minimum(Costs(false_alarm, miss).totals(*sums))
    assert counts.by_steps_flagged("flagged")[steps] == naive.cheapest_cut(
        y, scores, false_alarm, miss
    )


@given(labelled_scores(), st.integers(1, 40))
def test_the_longest_list_within_the_budget(rows, budget: int) -> None:
    y, scores = rows
    if budget > len(y):
        with pytest.raises(ValueError, match="larger"):
            choose_cut(y, scores, budget=budget)
        return
    cut = choose_cut(y, scores, budget=budget)
    lengths = {0, *((scores >= s).sum() for s in scores)}
    assert cut.n_flagged == max(k for k in lengths if k <= budget) == cut.flags(scores).sum()


@given(labelled_scores(), st.sampled_from(RULES))
def test_ties_are_never_split_and_figures_are_counts(rows, rule) -> None:
    y, scores = rows
    if "budget" in rule and len(y) < 3:
        return
    cut = choose_cut(y, scores, **rule, n_resamples=20)
    flags = cut.flags(scores)
    assert not set(scores[flags]) & set(scores[~flags])
    for name in ("precision", "recall", "false_positive_rate", "n_flagged", "false_alarms"):
        value = getattr(cut, name)
        low, high = getattr(cut, f"{name}_low"), getattr(cut, f"{name}_high")
        assert math.isnan(value) or low - 1e-9 <= value <= high + 1e-9
    if cut.rule != "cost":
        assert cut.recall == pytest.approx(y[flags].sum() / y.sum())
        assert cut.false_positive_rate == pytest.approx((1 - y[flags]).sum() / (1 - y).sum())
        if flags.any():
            assert cut.precision == pytest.approx(y[flags].mean())
            assert cut.false_alarms == pytest.approx((1 - y[flags]).sum())
    json.dumps(cut.as_dict(), allow_nan=False)


def test_the_threshold_lies_half_way() -> None:
    cut = choose_cut([1, 1, 0, 0], [4.0, 3.0, 2.0, 1.0], budget=2)
    assert cut.threshold == 2.5
    neighbours = np.array([1.0, np.nextafter(1.0, 0.0)])
    cut = choose_cut([1, 0], neighbours, budget=1)
    assert cut.flags(neighbours).tolist() == [True, False]
    assert choose_cut([1, 0], [1e308, -1e308], budget=1).threshold == 0.0


# -- guarantees by simulation ---------------------------------------------------------------------


@pytest.mark.parametrize(("n", "fpr", "confidence"), [(300, 0.05, 0.9), (2000, 0.01, 0.95)])
def test_the_promised_false_positive_rate_is_kept(n: int, fpr: float, confidence: float) -> None:
    rng = np.random.default_rng(1)
    broken = flagged = 0
    n_draws = 1500
    for _ in range(n_draws):
        y, scores = draw(rng, n)
        cut = choose_cut(y, scores, fpr=fpr, confidence=confidence)
        assert cut.reached
        true_rate, n_negatives = norm.sf(cut.threshold), np.sum(y == 0)
        broken += rng.binomial(n_negatives, true_rate) > fpr * n_negatives  # in a list of new rows
        flagged += true_rate
    # at most what was promised (three standard errors), and not by flagging next to nothing
    error = 1 - confidence
    assert broken / n_draws <= error + 3 * math.sqrt(error * confidence / n_draws)
    assert broken / n_draws > error / 5
    assert flagged / n_draws > fpr / 3


def true_precision(threshold: float, shift: float, rate: float) -> float:
    hits, wrong = rate * norm.sf(threshold - shift), (1 - rate) * norm.sf(threshold)
    return hits / (hits + wrong)


@pytest.mark.parametrize(("n", "target"), [(1000, 0.6), (3000, 0.5)])
def test_the_promised_precision_is_kept_although_the_cut_is_searched(n: int, target: float) -> None:
    rng = np.random.default_rng(2)
    broken = reached = 0
    n_draws = 1500
    for _ in range(n_draws):
        cut = choose_cut(*draw(rng, n), precision=target, confidence=0.9)
        reached += cut.reached
        broken += cut.reached and true_precision(cut.threshold, 2.0, 0.1) < target
        assert not cut.reached or cut.precision_low >= target
    assert broken / n_draws <= 0.1 + 3 * math.sqrt(0.09 / n_draws)
    assert reached / n_draws > (0.7 if n == 1000 else 0.95)


def test_where_scores_tell_nothing_precision_is_rarely_promised() -> None:
    rng = np.random.default_rng(3)
    promised = 0
    for _ in range(800):
        y = (rng.random(600) < 0.3).astype(int)
        # every list has precision 0.3, just below what is asked: the worst case of a search
        promised += choose_cut(y, rng.normal(size=600), precision=0.301, confidence=0.9).reached
    assert promised / 800 <= 0.1 + 3 * math.sqrt(0.09 / 800)


def test_a_naive_search_would_break_that_promise() -> None:
    """What the sharing out of the error is for."""
    rng = np.random.default_rng(3)
    promised = 0
    for _ in range(300):
        y = (rng.random(600) < 0.3).astype(int)
        hits, lengths = np.cumsum(y), np.arange(1, 601)
        promised += bool((probability_at_least(hits[10:], lengths[10:], 0.301) <= 0.1).any())
    assert promised / 300 > 0.2


def test_tests_are_laid_out_without_a_look_at_labels() -> None:
    lengths = np.arange(1.0, 1001.0)
    tried = tried_lists(lengths, 0.5, 0.05)
    assert lengths[tried[0]] == 5  # 0.5^5 < 0.05 < 0.5^4
    assert lengths[tried[-1]] == 1000
    assert (np.diff(lengths[tried]) <= 0.11 * lengths[tried[1:]] + 1).all()
    assert len(tried_lists(np.arange(1.0, 4.0), 0.9, 0.05)) == 0


def test_the_error_is_handed_on_only_after_success() -> None:
    hits, lengths = np.array([20.0, 5.0, 60.0]), np.array([20.0, 30.0, 100.0])
    passed, allowed = fallback_tests(hits, lengths, 0.5, 0.06)
    assert passed.tolist() == [True, False, False]
    np.testing.assert_allclose(allowed, [0.02, 0.04, 0.02])


@pytest.mark.parametrize("name", ["precision", "recall"])
def test_intervals_of_a_budget_cover(name: str) -> None:
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(600):
        cut = choose_cut(*draw(rng, 1000), budget=60, confidence=0.9)
        truth = {
            "precision": true_precision(cut.threshold, 2.0, 0.1),
            "recall": norm.sf(cut.threshold - 2.0),
        }[name]
        covered += getattr(cut, f"{name}_low") <= truth <= getattr(cut, f"{name}_high")
    assert covered / 600 > 0.87


def test_the_cost_of_a_searched_cut_is_corrected() -> None:
    """The apparent cost is too low on average; the corrected one is nearer to the truth."""
    rng = np.random.default_rng(5)
    apparent, corrected, covered, n_draws = [], [], 0, 150
    for seed in range(n_draws):
        y, scores = draw(rng, 150, shift=1.0, rate=0.3)
        counts = OutOfFoldCounts.of(y, scores)
        cut = choose_cut(y, scores, cost=(1, 2), population=1, n_resamples=100, random_state=seed)
        true_cost = 0.7 * norm.sf(cut.threshold) + 2 * 0.3 * norm.cdf(cut.threshold - 1.0)
        costs = Costs(1.0, 2.0).totals(
            counts.by_steps_flagged("positives"), counts.by_steps_flagged("negatives")
        )
        apparent.append(costs.min() / 150 - true_cost)
        corrected.append(cut.expected_cost - true_cost)
        covered += cut.expected_cost_low <= true_cost <= cut.expected_cost_high
    assert np.mean(apparent) < -0.01
    assert abs(np.mean(corrected)) < 0.5 * abs(np.mean(apparent))
    assert covered / n_draws > 0.85


# -- weights, populations, tiny data --------------------------------------------------------------


def test_equal_weights_change_nothing_but_the_units() -> None:
    y, scores = draw(np.random.default_rng(0), 800)
    plain = choose_cut(y, scores, fpr=0.05)
    weighted = choose_cut(y, scores, fpr=0.05, sample_weight=np.full(800, 3.0))
    assert weighted.threshold == plain.threshold
    assert weighted.n_flagged == pytest.approx(3 * plain.n_flagged)
    assert weighted.false_positive_rate_high == pytest.approx(plain.false_positive_rate_high)


def test_rows_of_weight_zero_are_absent() -> None:
    y, scores = draw(np.random.default_rng(0), 800)
    weight = np.ones(800)
    weight[::2] = 0
    for rule in ({"fpr": 0.1}, {"precision": 0.3}, {"cost": (1, 5)}, {"budget": 30}):
        cut = choose_cut(y, np.where(weight > 0, scores, 99.0), sample_weight=weight, **rule)
        expected = choose_cut(y[1::2], scores[1::2], **rule)
        assert cut.as_dict() == expected.as_dict()


def test_uneven_weights_are_worth_fewer_rows() -> None:
    y, scores = draw(np.random.default_rng(0), 800)
    weight = np.where(np.arange(800) % 2 == 0, 1.9, 0.1)
    plain = choose_cut(y, scores, budget=80)
    uneven = choose_cut(y, scores, budget=80, sample_weight=weight)
    width = uneven.recall_high - uneven.recall_low
    assert width > 1.2 * (plain.recall_high - plain.recall_low)


def test_weights_that_undo_a_thinning_of_negatives() -> None:
    rng = np.random.default_rng(7)
    broken = 0
    for _ in range(300):
        y, scores = draw(rng, 4000, rate=0.05)
        kept = (y == 1) | (rng.random(4000) < 0.2)
        weight = np.where(y == 1, 1.0, 5.0)[kept]
        cut = choose_cut(y[kept], scores[kept], fpr=0.02, confidence=0.9, sample_weight=weight)
        broken += norm.sf(cut.threshold) > 0.02
    assert broken / 300 < 0.1 + 3 * math.sqrt(0.09 / 300)


def test_counts_are_on_the_scale_of_the_population() -> None:
    y, scores = draw(np.random.default_rng(0), 1000)
    cut = choose_cut(y, scores, budget=200, population=10_000)
    assert cut.flags(scores).sum() == 20
    assert cut.n_flagged == pytest.approx(200)
    assert cut.false_alarms == pytest.approx(200 * (1 - cut.precision))
    with pytest.raises(ValueError, match="larger than the 100 rows"):
        choose_cut(y, scores, budget=200, population=100)


def test_one_positive_and_one_negative() -> None:
    for rule in ({"fpr": 0.01}, {"precision": 0.9}):
        cut = choose_cut([0, 1], [0.0, 1.0], **rule)
        assert not cut.reached
        assert cut.threshold == math.inf
        assert cut.guarantee.startswith("nothing is flagged")
        assert cut.as_dict()["precision"] is None
    assert choose_cut([0, 1], [0.0, 1.0], budget=1).precision == 1.0
    assert choose_cut([0, 1], [0.0, 1.0], cost=(1, 1)).n_flagged == 1


def test_a_precision_that_cannot_be_promised_gets_the_best_list_with_its_range() -> None:
    y, scores = draw(np.random.default_rng(1), 2000)
    cut = choose_cut(y, scores, precision=0.995)
    assert not cut.reached
    assert cut.n_flagged >= 5
    assert cut.precision_low < cut.precision <= cut.precision_high
    assert cut.guarantee.startswith("no promise: no list reaches a precision of 99.5%")
    assert "The best effort: of the first" in cut.guarantee
    covered = 0
    for seed in range(200):
        y, scores = draw(np.random.default_rng(seed), 500)
        cut = choose_cut(y, scores, precision=0.995)
        truth = true_precision(cut.threshold, 2.0, 0.1)
        covered += cut.reached or cut.precision_low <= truth <= cut.precision_high
    assert covered >= 0.95 * 200


def test_costs_of_single_rows() -> None:
    rng = np.random.default_rng(3)
    y, scores = draw(rng, 800)
    amount = rng.gamma(2, 50, 800)
    cut = choose_cut(y, scores, cost={"false_alarm": 20.0, "miss": amount})
    order = np.argsort(-scores)
    totals = amount[y == 1].sum() + np.r_[0, np.cumsum(np.where(y == 1, -amount, 20.0)[order])]
    assert cut.flags(scores).sum() == np.argmin(totals)
    assert totals.min() < cut.expected_cost  # less the optimism of the search
    assert cut.expected_cost_low < cut.expected_cost < cut.expected_cost_high
    same = choose_cut(y, scores, cost=(np.full(800, 5.0), 100.0))
    assert same.threshold == choose_cut(y, scores, cost=(5.0, 100.0)).threshold
    with pytest.raises(ValueError, match="for each of the 800 rows"):
        choose_cut(y, scores, cost=(1.0, np.ones(3)))


def test_how_many_negatives_are_needed() -> None:
    cut = choose_cut([1] + [0] * 79, np.arange(80.0)[::-1], fpr=0.05)
    assert not cut.reached
    assert "80 are needed" in cut.guarantee
    assert choose_cut([1] + [0] * 80, np.arange(81.0)[::-1], fpr=0.05).reached


def test_all_scores_equal() -> None:
    y = np.arange(100) % 2
    assert not choose_cut(y, np.zeros(100), budget=10).reached
    assert "equal scores" in choose_cut(y, np.zeros(100), fpr=0.2).guarantee
    assert choose_cut(y, np.zeros(100), budget=100).n_flagged == 100
    assert choose_cut(y, np.zeros(100), cost=(1, 9)).threshold == -math.inf


def test_a_thinned_list_gives_nearly_the_same_cuts() -> None:
    y, scores = draw(np.random.default_rng(0), 40_000)
    counts = OutOfFoldCounts.of(y, scores)
    thin = counts.thin(4000)
    assert thin.n_steps == 4000
    for rule in ({"fpr": 0.01}, {"precision": 0.5}, {"cost": (1, 10)}, {"budget": 8000}):
        exact, short = cut_counts(counts, rule), cut_counts(thin, rule)
        assert short.threshold == pytest.approx(exact.threshold, abs=0.02)
    assert (
        cut_counts(thin, {"budget": 500}).as_dict() == cut_counts(counts, {"budget": 500}).as_dict()
    )


def test_optimism_is_none_where_there_is_nothing_to_search() -> None:
    counts = OutOfFoldCounts.of(np.repeat([1, 0], 500), np.repeat([1.0, 0.0], 500))
    found = optimism(counts, Costs(1.0, 1.0), n_resamples=50)
    assert found["recall"] == found["false_positive_rate"] == found["cost"] == 0.0


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({}, "exactly one"),
        ({"budget": 2, "fpr": 0.1}, "exactly one"),
        ({"budget": 0}, "budget"),
        ({"budget": "many"}, "budget"),
        ({"budget": 1, "population": -3}, "population"),
        ({"fpr": 0.0}, "fpr"),
        ({"fpr": 1.0}, "fpr"),
        ({"precision": 1.5}, "precision"),
        ({"cost": 3}, "cost"),
        ({"cost": (1,)}, "cost"),
        ({"cost": (1, 2, 3, 4)}, "cost"),
        ({"cost": {"miss": 3}}, "false_alarm"),
        ({"cost": (1, -2)}, "miss"),
        ({"cost": (1, 0)}, "something"),
        ({"cost": (1, float("nan"))}, "miss"),
        ({"cost": (1, 2), "n_resamples": 0}, "n_resamples"),
        ({"fpr": 0.1, "confidence": 1.0}, "confidence"),
    ],
)
def test_bad_arguments_get_a_clear_error(rule, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        choose_cut([0, 1, 0], [0.0, 1.0, 2.0], **rule)


def test_labels_are_checked_as_metrics_do() -> None:
    with pytest.raises(ValueError, match="one class"):
        choose_cut([1, 1], [0.0, 1.0], budget=1)
    with pytest.raises(ValueError, match="NaN"):
        choose_cut([0, 1], [0.0, np.nan], budget=1)
    assert choose_cut(["ok", "bad", "ok"], [0.0, 1.0, 2.0], budget=2, pos_label="bad").recall == 1


def test_costs_may_be_named() -> None:
    y, scores = draw(np.random.default_rng(0), 500)
    named = choose_cut(y, scores, cost={"false_alarm": 1, "miss": 5, "gain": 2})
    assert named.as_dict() == choose_cut(y, scores, cost=(1, 5, 2)).as_dict()
