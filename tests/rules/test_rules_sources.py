"""Bins, stumps and clauses of tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_rules import best_stump_strength, curve_area, greedy_clause

from toprank.binning import Bins
from toprank.columns import Columns
from toprank.parallel import ThreadPool
from toprank.rule import Literal, Rule
from toprank.rules.boosters import initial_weights
from toprank.rules.weak_rankers import (
    BinnedColumns,
    BinnedRows,
    ClauseSource,
    SearchLimits,
    StumpSource,
    TableRefiner,
    boolean_columns,
    draw_seed,
    greedy_refine,
    simplified,
)


def mixed_table(rng, n=150):
    """Numbers with ties and gaps, categories, truth values, missing cells; y depends on them."""
    frame = pd.DataFrame(
        {
            "amount": rng.normal(size=n).round(1),
            "age": rng.integers(0, 5, n).astype(float),
            "country": rng.choice(["NL", "DE", "XX"], n),
            "flag": rng.random(n) < 0.3,
        }
    )
    frame.loc[rng.random(n) < 0.2, "age"] = np.nan
    frame.loc[rng.random(n) < 0.2, "country"] = None
    risky = (frame["amount"] > 0.5) & (frame["country"] == "XX")
    y = (risky.to_numpy() & (rng.random(n) < 0.8) | (rng.random(n) < 0.05)).astype(float)
    y[:2] = 0, 1
    return frame, y


def binned(frame, y, weights=None, *, seed=0, **options):
    columns = Columns.of(frame)
    X = columns.matrix(frame, unseen=-1.0)
    bins = Bins.of(X, columns.is_category, weights, y=y, **options)
    named = BinnedColumns.named(bins, columns, boolean_columns(frame))
    return BinnedRows(named, bins.codes(X), seed=seed)


def binned_numbers(X, y, **options):
    columns = Columns.numeric(X.shape[1])
    bins = Bins.of(X, columns.is_category, y=y)
    return BinnedRows(BinnedColumns.named(bins, columns), bins.codes(X), **options)


NUMBER = np.array([False])


# -- bins ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["cuts", "is_category", "has_missing", "is_boolean"])
def test_bins_of_other_columns_are_refused(rng, field):
    bins = binned(*mixed_table(rng)).bins
    with pytest.raises(ValueError, match="not those of 4 columns"):
        replace(bins, **{field: getattr(bins, field)[:-1]})
    with pytest.raises(ValueError, match="other categorical columns"):
        replace(bins, is_category=~bins.is_category)


def test_an_unknown_column_in_a_literal_is_named(rng):
    bins = binned(*mixed_table(rng)).bins
    with pytest.raises(ValueError, match=r"'salary'.*amount, age"):
        bins.members(Literal("salary", ">", 1.0))


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_literals_hold_in_their_bins_as_in_the_table(seed):
    rng = np.random.default_rng(seed)
    frame, y = mixed_table(rng, 60)
    table = binned(frame, y)
    bins, codes = table.bins, table.codes
    literals = [
        Literal(bins.columns.names[1], "is missing"),
        Literal("country", "not in", ("NL",), True),
    ]
    literals += [
        Literal(bins.columns.names[2], "=", bins.category(2, 0)),
        Literal("country", "in", ("DE", "XX")),
        Literal("age", "is present"),
    ]
    for j in (0, 1, 3):
        cut = int(rng.integers(bins.n_cuts[j]))
        missing = bool(rng.integers(2))
        literals += [
            bins.threshold(j, cut, "<=", or_missing=missing),
            bins.threshold(j, cut, ">", or_missing=missing),
        ]
    for literal in literals:
        column, member = bins.members(literal)
        assert np.array_equal(member[codes[column]] > 0, Rule((literal,)).mask(frame)), literal


# -- stumps ----------------------------------------------------------------------------------------


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_best_stump_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    frame, y = mixed_table(rng, 40)
    weights = initial_weights(y, rng.random(40) + 0.01, 1.0)
    table = binned(frame, y)
    found = StumpSource(table).best(y, weights)
    X = table.bins.columns.matrix(frame)
    expected = best_stump_strength(X.T, table.bins.is_category, y, weights)
    assert found.score == pytest.approx(expected)
    assert found.score > 0
    mask = found.rules[0].mask(frame)
    assert np.array_equal(mask, found.depth > 0)
    assert found.positives[0] == pytest.approx(weights[mask & (y == 1)].sum())
    assert found.negatives[0] == pytest.approx(weights[mask & (y == 0)].sum())


def test_stumps_on_rare_categories_reach_those_without_a_bin():
    # the first 254 values are common and negative, the rest rare and positive
    place = [f"v{k:03d}" for k in range(254)] * 4 + [f"w{k:02d}" for k in range(20)]
    frame = pd.DataFrame({"place": place})
    y = np.r_[np.zeros(254 * 4), np.ones(20)]
    y[0] = 1
    table = binned(frame, y, max_bins=40)
    found = StumpSource(table).best(y, initial_weights(y, None, 1.0))
    assert np.array_equal(found.rules[0].mask(frame), found.depth > 0)
    assert found.rules[0].literals[0].operator in {"in", "not in"}


def test_stumps_only_look_at_their_columns(rng):
    frame, y = mixed_table(rng)
    table = binned(frame, y)
    weights = initial_weights(y, None, 1.0)
    found = StumpSource(table, columns=[1]).best(y, weights)
    assert found.rules[0].literals[0].column == "age"
    with pytest.raises(ValueError, match="'auc' alone"):
        StumpSource(table).best(y, weights, "clause")


def test_threads_do_not_change_the_sums(rng):
    n = 110_000  # enough cells of each class that threads are used
    X, y = rng.normal(size=(n, 12)), (rng.random(n) < 0.1).astype(float)
    weights = initial_weights(y, rng.random(n), 1.0)
    table = binned_numbers(X, y, seed=1)
    alone, single = (source(table).best(y, weights) for source in (StumpSource, ClauseSource))
    with ThreadPool(3) as pool:
        threads = replace(table, pool=pool)
        together, threaded = (
            source(threads).best(y, weights) for source in (StumpSource, ClauseSource)
        )
    assert alone.score == together.score
    assert alone.rules == together.rules
    assert threaded.rules == single.rules
    assert threaded.score == single.score


# -- clauses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", ["auc", "clause", "path"])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=12, deadline=None)
def test_the_search_is_the_naive_greedy_search(score, seed):
    rng = np.random.default_rng(seed)
    frame, y = mixed_table(rng, 60)
    frame = frame.drop(columns="flag")
    weights = initial_weights(y, rng.random(60) + 0.1, 5.0)
    table = binned(frame, y)
    row = int(rng.choice(np.flatnonzero(y == 1)))
    totals = weights[y == 1].sum(), weights[y == 0].sum()

    def point(mask):
        return weights[mask & (y == 1)].sum(), weights[mask & (y == 0)].sum()

    def quality(masks):
        tp, fp = point(masks[-1])
        if score == "auc":
            return tp / totals[0] - fp / totals[1]
        chosen = masks if score == "path" else masks[-1:]
        return curve_area([point(mask) for mask in chosen], *totals)

    refiner = TableRefiner(table, y > 0, weights, row)
    found = greedy_refine(refiner, *totals, score, SearchLimits(3))
    bins = table.bins
    cuts = [np.empty(0) if c else b for c, b in zip(bins.is_category, bins.cuts, strict=True)]
    path, best = greedy_clause(frame, row, cuts, y, weights, quality, 3)
    if found is None:
        assert not path
        return
    assert found.score == pytest.approx(best, abs=1e-6)
    assert len(found.rules) == len(path)
    for k, (rule, mask) in enumerate(zip(found.rules, path, strict=True)):
        assert (found.positives[k], found.negatives[k]) == pytest.approx(point(mask))
        assert np.array_equal(rule.mask(frame), found.depth > k)
        assert rule.mask(frame)[row]


def test_limits_stop_the_search(rng):
    frame, y = mixed_table(rng, 400)
    table = binned(frame, y, seed=3)
    weights = initial_weights(y, None, 10.0)

    def search(**limits):
        return ClauseSource(table, SearchLimits(**limits)).best(y, weights, "path")

    assert len(search(max_length=1).rules) == 1
    long = search(max_length=8)
    assert len(long.rules) > 1
    one_step = search(max_length=1).n_evaluated
    assert search(max_length=8, max_evaluated=one_step).n_evaluated == one_step
    assert search(max_length=8, max_seconds=1e-9) is None


def test_simplified_rules_keep_their_mask():
    frame = pd.DataFrame({"x": np.arange(10.0), "c": list("ababababab")})
    rule = Rule()
    for literal in (
        Literal("x", ">", 1.0),
        Literal("c", "=", "a"),
        Literal("x", ">", 3.0),
        Literal("x", "<=", 8.0),
    ):
        longer = rule & literal
        shorter = simplified(rule, literal)
        assert np.array_equal(longer.mask(frame), shorter.mask(frame))
        rule = shorter
    assert str(rule) == "c = 'a' and x > 3 and x <= 8"


def test_seeds_are_drawn_by_weight(rng):
    rows = np.array([2, 5, 7])
    weights = np.zeros(8)
    weights[rows] = 1.0, 0.0, 3.0
    random = np.random.RandomState(0)
    drawn = np.array([draw_seed(rows, weights, random) for _ in range(4_000)])
    assert set(drawn) == {2, 7}
    assert (drawn == 7).mean() == pytest.approx(0.75, abs=0.03)


def test_seeds_do_not_depend_on_row_order_or_on_copies(rng):
    frame, y = mixed_table(rng, 200)
    order = rng.permutation(200)
    weights = rng.integers(1, 4, 200).astype(float)
    copies = np.repeat(np.arange(200), weights.astype(int))
    copies = rng.permutation(copies)
    answers = []
    for rows, weight in ((np.arange(200), weights), (order, weights[order]), (copies, None)):
        part = frame.iloc[rows].reset_index(drop=True)
        sample = np.ones(len(rows)) if weight is None else weight
        source = ClauseSource(binned(part, y[rows], weight, seed=5))
        now = initial_weights(y[rows], sample, 9.0)
        answers.append([source.best(y[rows], now, "clause").rules for _ in range(8)])
    assert answers[0] == answers[1] == answers[2]


def test_nothing_to_find_is_none():
    y = np.array([1.0, 0, 0, 1])
    table = binned_numbers(np.zeros((4, 2)), y)
    weights = initial_weights(y, None, 1.0)
    assert ClauseSource(table).best(y, weights) is None
    assert StumpSource(table).best(y, weights) is None
