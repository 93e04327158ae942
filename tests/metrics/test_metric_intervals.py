"""Intervals and comparisons: coverage, naive versions, pairing, and independence of the threads."""

from __future__ import annotations

import naive_metrics as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import brier_score_loss

from toprank import metrics
from toprank.metrics import METRICS, Interval, compare, interval
from toprank.metrics.bootstrap import ListSample, TableSample, draw_groups, seed_of
from toprank.metrics.intervals import holm, verdict
from toprank.metrics.registry import prepare
from toprank.validation import binary_rows, graded_rows


def draw(seed: int, positives: int = 60, negatives: int = 240, decimals: int = 1):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([1, 0], [positives, negatives]))
    return y, (rng.normal(size=len(y)) + y).round(decimals), rng


@pytest.mark.parametrize("name", [n for n, m in METRICS.items() if m.list_core is not None])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_resample_is_the_metric_of_the_drawn_rows(name, weighted) -> None:
    """Each bootstrap value equals the public function on a list in which rows repeat."""
    y, scores, rng = draw(0)
    weight = rng.integers(1, 4, size=len(y)).astype(float) if weighted else None
    sample = ListSample(binary_rows(y, scores, weight))
    stairs = sample.draw(seed_of(3), 5)
    value = METRICS[name].list_core(stairs)
    counts = drawn_counts(y, seed_of(3), 5)
    total = counts if weight is None else counts * weight
    expected = METRICS[name].function(y, scores, sample_weight=total)
    assert value == pytest.approx(expected, abs=1e-12)


def drawn_counts(y, seed, resample) -> np.ndarray:
    """How often each row is drawn: the draws depend on the classes and the seed, not on scores."""
    stairs = ListSample(binary_rows(y, -np.arange(float(len(y))))).draw(seed, resample)
    counts = np.zeros(len(y))
    counts[y == 1] = stairs.positives  # every positive is a step of its own
    for row in np.flatnonzero(y == 0):
        scores = np.where(y == 1, 0.5, np.arange(len(y)) == row)  # only this one above the step
        counts[row] = ListSample(binary_rows(y, scores)).draw(seed, resample).negatives_between[0]
    return counts


@pytest.mark.parametrize("name", ["ndcg", "multiclass_auc", "multiclass_precision"])
def test_a_resample_of_grades_keeps_every_class(name) -> None:
    rng = np.random.default_rng(2)
    y, scores = rng.integers(0, 4, size=80), rng.normal(size=80).round(1)
    sample = TableSample(graded_rows(y, scores))
    table = sample.table
    seen = []

    def record(redrawn, **_):
        seen.append(redrawn)
        return METRICS[name].query_core(redrawn)

    values = sample.distribution([(record, {})], 3, 11)[0]
    for value, redrawn in zip(values, seen, strict=True):
        np.testing.assert_array_equal(redrawn.level_weight, table.level_weight)
        weight = np.empty(80)
        weight[table.order] = redrawn.weight
        assert value == pytest.approx(METRICS[name].function(y, scores, sample_weight=weight))


@pytest.mark.parametrize("name", ["average_precision", "pos_at_top", "partial_auc"])
def test_threads_change_nothing(name) -> None:
    y, scores, _ = draw(1)
    one, two, three = (
        interval(name, y, scores, n_resamples=70, n_jobs=jobs, method="bootstrap")
        for jobs in (None, 2, 3)
    )
    assert one == two == three
    assert interval(name, y, scores, n_resamples=70, random_state=1) != one
    fresh = {interval(name, y, scores, n_resamples=20, random_state=None) for _ in range(4)}
    assert len(fresh) > 1
    assert interval(name, y, scores, n_resamples=20, n_jobs=-1).level == 0.95


def test_random_states_of_all_kinds() -> None:
    assert seed_of(4) == seed_of(np.int64(4)) != seed_of(5)
    assert seed_of(np.random.default_rng(4)) == seed_of(np.random.default_rng(4))
    assert seed_of(np.random.RandomState(4)) == seed_of(np.random.RandomState(4))


def test_draws_are_uniform_and_independent() -> None:
    """Counts of drawn rows have the mean, variance and correlation of a multinomial."""
    y = np.repeat([1, 0], [8, 1])
    sample = ListSample(binary_rows(y, -np.arange(9.0)))
    counts = np.array([sample.draw(seed_of(0), b).positives for b in range(4000)])
    assert (counts.sum(axis=1) == 8).all()
    np.testing.assert_allclose(counts.mean(axis=0), 1, atol=0.07)
    np.testing.assert_allclose(counts.var(axis=0), 7 / 8, atol=0.1)
    correlation = np.corrcoef(counts.T)[np.triu_indices(8, 1)]
    np.testing.assert_allclose(correlation, -1 / 7, atol=0.06)


def test_counts_by_place_have_the_distribution_of_drawn_rows() -> None:
    """Where positives are rare, unpaired draws count the negatives by place: exact, only faster."""
    rng = np.random.default_rng(0)
    y = np.repeat([1, 0], [4, 600])
    scores = np.concatenate([[3.0, 2.0, 2.0, 0.0], rng.integers(-2, 5, size=600)])
    sample = ListSample(binary_rows(y, scores))
    assert sample.draws_by_place
    counts = {True: [], False: []}
    for paired, found in counts.items():
        for resample in range(4000):
            stairs = sample.draw(seed_of(0), resample, paired=paired)
            found.append(np.concatenate([stairs.negatives_between, stairs.negatives_tied]))
            assert found[-1].sum() == 600
    by_row, by_place = np.array(counts[True]), np.array(counts[False])
    error = by_row.std(axis=0) / np.sqrt(4000)
    assert (np.abs(by_row.mean(axis=0) - by_place.mean(axis=0)) <= 5 * np.sqrt(2) * error).all()
    share = np.concatenate([sample.stairs.negatives_between, sample.stairs.negatives_tied]) / 600
    exact = 600 * (np.diag(share) - np.outer(share, share))  # of a multinomial
    variance = np.diag(exact)
    error = np.sqrt((np.outer(variance, variance) + exact**2) / 4000)
    for drawn in (by_row, by_place):
        assert (np.abs(np.cov(drawn.T) - exact) <= 4 * error).all()
    same = [sample.draw(seed_of(0), 7, paired=paired).positives for paired in (True, False)]
    np.testing.assert_array_equal(*same)
    weighted = ListSample(binary_rows(y, scores, np.ones(604)))
    assert not weighted.draws_by_place  # weights of drawn rows differ: each must be drawn


def test_sums_follow_the_drawn_rows() -> None:
    y, scores, rng = draw(0)
    sample = ListSample(binary_rows(y, scores))
    values = rng.lognormal(size=60)
    np.testing.assert_allclose(
        sample.draw_sums(1, 4, np.ones(60)), sample.draw(1, 4, paired=False).positives
    )
    assert sample.step_sums(values).sum() == pytest.approx(values.sum())
    apart = ListSample(binary_rows(y, -np.arange(float(len(y)))))
    times = apart.draw(1, 4).positives  # every positive is a step of its own
    np.testing.assert_allclose(apart.draw_sums(1, 4, values), times * values)


@pytest.mark.parametrize("name", ["roc_auc", "average_precision", "precision_at_k", "hit_rate"])
def test_bootstrap_matches_a_plain_bootstrap(name) -> None:
    y, scores, rng = draw(3)
    function = METRICS[name].function
    positives, negatives = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    values = []
    for _ in range(2000):
        rows = np.concatenate([rng.choice(part, len(part)) for part in (positives, negatives)])
        values.append(function(y[rows], scores[rows]))
    low, high = np.quantile(values, [0.05, 0.95])
    ours = interval(name, y, scores, n_resamples=2000, level=0.9, method="bootstrap")
    spread = high - low
    assert ours.low == pytest.approx(low, abs=0.08 * spread)
    assert ours.high == pytest.approx(high, abs=0.08 * spread)
    assert ours.value == function(y, scores)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    """AUC of two unit normals one apart is Phi(1/sqrt(2))."""
    truth, hits = norm.cdf(np.sqrt(0.5)), {"bootstrap": 0, "delong": 0}
    for seed in range(200):
        y, scores, _ = draw(seed, positives=50, negatives=50, decimals=9)
        for method in hits:
            _, low, high = interval("roc_auc", y, scores, method=method, level=0.9, n_resamples=200)
            hits[method] += low <= truth <= high
    assert 165 <= hits["bootstrap"] <= 195
    assert 165 <= hits["delong"] <= 195


@pytest.mark.parametrize("decimals", [0, 6])
@pytest.mark.parametrize("seed", range(3))
def test_delong_against_all_pairs(seed, decimals) -> None:
    y, scores_a, rng = draw(seed, 15, 40, decimals)
    scores_b = (scores_a + rng.normal(size=len(y))).round(decimals)
    areas, covariance = naive.delong(y, scores_a, scores_b)
    one = interval("roc_auc", y, scores_a)
    assert one.method == "delong"
    reach = norm.ppf(0.975) * np.sqrt(covariance[0, 0])
    assert one.value == pytest.approx(areas[0], abs=1e-12)
    assert one.high - one.value == pytest.approx(min(reach, 1 - areas[0]), abs=1e-12)
    result = compare("roc_auc", y, scores_a, scores_b)
    variance = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert result.difference == pytest.approx(areas[0] - areas[1], abs=1e-12)
    assert result.p_value == pytest.approx(
        2 * norm.sf(abs(areas[0] - areas[1]) / np.sqrt(variance)), abs=1e-9
    )
    assert result.high - result.low == pytest.approx(
        2 * norm.ppf(0.975) * np.sqrt(variance), abs=1e-9
    )


def test_delong_with_weights() -> None:
    y, scores, rng = draw(0, decimals=3)
    plain = interval("roc_auc", y, scores)
    for scale in (0.2, 3.0):  # equal weights are no weights: a row is one observation
        same = interval("roc_auc", y, scores, sample_weight=np.full(len(y), scale))
        assert list(same) == pytest.approx(list(plain), abs=1e-12)
    weight = rng.uniform(0.2, 3, size=len(y))
    ours = interval("roc_auc", y, scores, sample_weight=weight)
    assert ours.value == pytest.approx(metrics.roc_auc(y, scores, sample_weight=weight))
    draws = interval("roc_auc", y, scores, sample_weight=weight, method="bootstrap")
    assert ours.low == pytest.approx(draws.low, abs=0.01)
    assert ours.high == pytest.approx(draws.high, abs=0.01)


def test_delong_where_it_does_not_exist() -> None:
    y, scores = [1, 0, 0, 0], [0.5, 0.9, 0.1, 0.2]
    assert interval("roc_auc", y, scores, n_resamples=50).method == "bootstrap"
    with pytest.raises(ValueError, match="two rows of each class"):
        interval("roc_auc", y, scores, method="delong")
    with pytest.raises(ValueError, match="roc_auc only"):
        interval("average_precision", y, scores, method="delong")
    perfect = compare("roc_auc", [0, 0, 1, 1], [1, 2, 3, 4], [1, 2, 3, 5])
    assert (perfect.difference, perfect.p_value) == (0.0, 1.0)
    apart = compare("roc_auc", [0, 0, 1, 1], [1, 2, 3, 4], [4, 3, 2, 1])
    assert (apart.difference, apart.p_value) == (1.0, 0.0)


@pytest.mark.parametrize("name", ["average_precision", "roc_auc"])
def test_comparison_is_paired(name) -> None:
    y, scores, rng = draw(4, decimals=8)
    close = scores + 0.02 * rng.normal(size=len(y))
    result = compare(name, y, scores, close, method="bootstrap", n_resamples=400)
    alone = interval(name, y, scores, method="bootstrap", n_resamples=400)
    assert result.high - result.low < 0.3 * (alone.high - alone.low)
    same = compare(name, y, scores, 3 * scores + 1, method="bootstrap", n_resamples=50)
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    worse = compare(name, y, scores, rng.normal(size=len(y)), method="bootstrap")
    assert worse.p_value < 0.01
    assert worse.low > 0
    swapped = compare(name, y, rng.permutation(scores), scores, method="bootstrap")
    assert swapped.difference < 0


@pytest.mark.parametrize("name", ["ndcg", "mean_average_precision", "precision_at_k"])
def test_queries_are_resampled_whole(name) -> None:
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(60), 10)
    y, scores = (rng.random(600) < 0.15).astype(int), rng.normal(size=600)
    function = METRICS[name].function
    values = []
    for query in range(60):
        rows = qid == query
        if y[rows].any():
            values.append(function(np.append(y[rows], 0), np.append(scores[rows], -99.0),
                                   qid=np.append(qid[rows], query)))  # fmt: skip
    result = interval(name, y, scores, qid=qid, n_resamples=2000)
    assert result.value == pytest.approx(function(y, scores, qid=qid))
    error = np.std(values) / np.sqrt(len(values))
    assert result.high - result.low == pytest.approx(2 * 1.96 * error, rel=0.15)
    noisy = scores + 0.01 * rng.normal(size=600)
    close = compare(name, y, scores, noisy, qid=qid)
    assert close.high - close.low < 0.5 * (result.high - result.low)


def test_own_functions() -> None:
    y, scores, _ = draw(5)

    def area(labels, values, sample_weight=None):
        return metrics.roc_auc(labels, values, sample_weight=sample_weight)

    ours = interval(area, y, scores, n_resamples=400, level=0.9)
    known = interval(metrics.roc_auc, y, scores, n_resamples=400, level=0.9, method="bootstrap")
    assert ours.value == known.value
    assert ours.method == "bootstrap"
    assert ours.low == pytest.approx(known.low, abs=0.01)
    weighted = interval(area, y, scores, n_resamples=20, sample_weight=np.ones(len(y)))
    assert weighted.value == ours.value
    chances = 1 / (1 + np.exp(-scores))
    theirs = interval(brier_score_loss, y, chances, n_resamples=20, pos_label=1)
    assert theirs.low < theirs.value < theirs.high
    assert compare(area, y, scores, -scores, n_resamples=20).low > 0

    def best_of_queries(labels, values, qid):
        return np.mean([values[qid == q].max() for q in np.unique(qid)])

    by_query = interval(best_of_queries, y, scores, qid=np.arange(len(y)) % 7, n_resamples=50)
    assert by_query.low <= by_query.value <= by_query.high
    pairs = np.column_stack([scores, scores[::-1]])
    assert interval(metrics.preference_auc, 2 * y - 1, pairs, n_resamples=20).high <= 1


def test_results_unpack_print_and_become_dicts() -> None:
    result = Interval(0.5, 0.25, 0.75, 0.95, "bootstrap")
    value, low, high = result
    assert (value, low, high) == (0.5, 0.25, 0.75)
    assert str(result) == "0.5000 [0.2500, 0.7500]"
    assert result.as_dict()["method"] == "bootstrap"
    with pytest.raises(AttributeError):
        result.value = 1
    y, scores, _ = draw(0)
    both = compare("roc_auc", y, scores, -scores)
    difference, low, high = both
    assert low < difference < high
    assert "p = " in str(both)
    assert set(both.as_dict()) >= {"difference", "p_value", "value_a", "value_b"}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm(p_values) -> None:
    assert holm(p_values) == pytest.approx(naive.holm(p_values))


def test_verdicts() -> None:
    assert verdict(0.1, 0.05) == "better"
    assert verdict(-0.1, 0.05) == "worse"
    assert verdict(0.1, 0.06) == verdict(0.0, 0.0) == verdict(0.1, np.nan) == "cannot tell"
    assert verdict(0.1, 0.06, level=0.9) == "better"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"metric": "area"}, ValueError, "Unknown metric"),
        ({"metric": 3}, TypeError, "name or a function"),
        ({"metric": "roc_auc", "k": 3}, TypeError, "no parameter 'k'"),
        ({"metric": "roc_auc", "level": 1.0}, ValueError, "level"),
        ({"metric": "ndcg", "n_resamples": 0}, ValueError, "n_resamples"),
        ({"metric": "ndcg", "method": "jackknife"}, ValueError, "method"),
        ({"metric": "roc_auc", "qid": [1, 1, 2, 2]}, ValueError, "no qid"),
        ({"metric": "mean_average_precision"}, ValueError, "pass qid"),
    ],
)
def test_bad_requests(options, error, message) -> None:
    with pytest.raises(error, match=message):
        interval(y_true=[0, 1, 0, 1], scores=[0.1, 0.4, 0.35, 0.8], **options)


# -- whole groups -------------------------------------------------------------------------------------


def grouped_rows(n_groups: int = 30) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels and scores, both of which go by groups of one to six rows."""
    random = np.random.default_rng(5)
    groups = np.repeat(np.arange(n_groups), random.integers(1, 7, n_groups))
    y = (random.random(n_groups) < 0.3)[groups]
    scores = np.round(random.normal(size=n_groups)[groups] + y + random.normal(size=len(y)), 1)
    return y, scores, groups


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("average_precision", {}),
        ("roc_auc", {}),
        ("precision_at_k", {"k": 90}),
        ("partial_auc", {"fpr": (0, 0.2)}),
    ],
)
def test_a_draw_of_groups_is_the_metric_of_their_rows(name, parameters, weighted):
    y, scores, groups = grouped_rows()
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float) if weighted else None
    sample, job = prepare(name, y, scores, weight, None, None, parameters, groups)
    values = sample.distribution([job], 20, seed=3)[0]
    sizes = []
    for resample, value in enumerate(values):
        rows = np.repeat(np.arange(len(y)), draw_groups(y, groups, 3, resample))
        drawn = {"sample_weight": None if weight is None else weight[rows]} | parameters
        sizes.append(len(rows) if weight is None else weight[rows].sum())
        if "k" in parameters:  # a draw may have fewer rows
            drawn["k"] = min(parameters["k"], sizes[-1])
        assert value == pytest.approx(getattr(metrics, name)(y[rows], scores[rows], **drawn))
    assert len(set(sizes)) > 1


def test_groups_of_copies_are_as_uncertain_as_one_row_each():
    y, scores, _ = grouped_rows()
    scores = scores + 1e-3 * np.arange(len(y))  # no ties
    alone = metrics.interval("average_precision", y, scores, groups=np.arange(len(y)))
    copies = [np.repeat(column, 4) for column in (y, scores, np.arange(len(y)))]
    together = metrics.interval("average_precision", *copies[:2], groups=copies[2])
    assert tuple(together) == pytest.approx(tuple(alone))
    apart = metrics.interval("average_precision", *copies[:2])
    assert apart.high - apart.low < 0.7 * (together.high - together.low)


def test_the_same_groups_are_drawn_for_both_lists_and_for_every_function():
    y, scores, groups = grouped_rows()
    same = metrics.compare("average_precision", y, scores, 2 * scores, groups=groups)
    assert (same.difference, same.low, same.high) == (0, 0, 0)
    by_name = metrics.interval("average_precision", y, scores, groups=groups, n_resamples=50)

    def own(y_true, scores):
        return metrics.average_precision(y_true, scores)

    assert tuple(metrics.interval(own, y, scores, groups=groups, n_resamples=50)) == pytest.approx(
        tuple(by_name)
    )
    report = metrics.evaluate(y, scores, groups=groups, n_resamples=50)
    assert report["average_precision"]["low"] == by_name.low
    assert {entry["method"] for entry in report.values()} == {"bootstrap"}  # DeLong knows no groups


def test_rows_of_weight_zero_have_no_group():
    y, scores, groups = grouped_rows()
    weight = (groups != 4).astype(float)
    kept = weight > 0
    found = metrics.interval(
        "average_precision", y, scores, sample_weight=weight, groups=groups, n_resamples=50
    )
    assert tuple(found) == tuple(
        metrics.interval(
            "average_precision", y[kept], scores[kept], groups=groups[kept], n_resamples=50
        )
    )


def test_a_draw_of_one_class_is_drawn_again():
    groups = np.array([0, 0, 1, 2, 3, 4, 5, 6])
    y = groups == 0
    for resample in range(30):
        counts = draw_groups(y, groups, 0, resample)
        assert counts[y].all()
        assert counts[~y].any()
    assert draw_groups(y, np.zeros(8, dtype=int), 0, 0).tolist() == [1] * 8
    assert draw_groups(groups[:2], groups[:2], 0, 0).tolist() == [1, 1]  # it cannot be had


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"qid": [0, 0, 1, 1]}, "not both"),
        ({"method": "delong"}, "knows no groups"),
        ({"groups": [0, 1]}, "2 entries for 4 rows"),
        ({"groups": [0, None, 1, 1]}, "missing in 1 row"),
        ({"groups": [7, 7, 7, 7]}, "all rows are of one group"),
        ({"groups": [7, 7, 7, 8], "sample_weight": [1, 1, 1, 0]}, "all rows are of one group"),
        ({"groups": [7, 7, 7, 7], "metric": lambda y, s: 0.0}, "all rows are of one group"),
        ({"metric": "ndcg", "y_true": [0, 1, 2, 1]}, "of one list with two classes"),
    ],
)
def test_groups_that_cannot_be_drawn_are_refused(more, message):
    given = {
        "metric": "roc_auc",
        "y_true": [0, 1, 0, 1],
        "scores": [1.0, 2, 3, 4],
        "groups": [0, 0, 1, 1],
    }
    with pytest.raises(ValueError, match=message):
        metrics.interval(**(given | more))


def test_an_evaluation_refuses_groups_with_grades_and_delong():
    with pytest.raises(ValueError, match="of grades"):
        metrics.evaluate([0, 1, 2, 1], [1.0, 2, 3, 4], groups=[0, 0, 1, 1])
    with pytest.raises(ValueError, match="knows no groups"):
        metrics.evaluate([0, 1, 0, 1], [1.0, 2, 3, 4], groups=[0, 0, 1, 1], intervals="delong")
