"""RuleScorecard: weights, the search and its naive twin, points, cross-validation, text, SQL and picture."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from toprank import RuleScorecard
from toprank.base import TrainingData
from toprank.binning import Bins
from toprank.columns import Columns
from toprank.rule import Literal, Rule
from toprank.rules import scorecard
from toprank.rules.scorecard import ScorecardBuilder, fit_weights, row_kinds
from toprank.rules.weak_rankers import BinnedColumns, BinnedRows


def make_table(rng, n=400):
    """Numbers, categories and missing cells; a planted conjunction, and a column that speaks against."""
    frame = pd.DataFrame(
        {
            "amount": rng.integers(1, 60, n) * 10.0,
            "country": rng.choice(["NL", "DE", "FR", "XX", "YY"], n),
            'say "hi"; $5': rng.integers(0, 20, n).astype(float),
        }
    )
    frame.loc[rng.random(n) < 0.1, "amount"] = np.nan
    frame.loc[rng.random(n) < 0.1, "country"] = None
    planted = (frame["amount"] > 350) & frame["country"].isin(["XX", "YY"])
    odds = -3.0 + 4.0 * planted - 1.5 * (frame['say "hi"; $5'] > 14)
    return frame, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def builder_of(frame, y, weight=None, *, penalty=1.0, min_rows=4.0, max_bins=64):
    columns = Columns.of(frame)
    X = columns.matrix(frame, unseen=-1.0)
    bins = BinnedColumns.named(
        Bins.of(X, columns.is_category, weight, y=y, max_bins=max_bins), columns
    )
    rows = BinnedRows(bins, bins.codes(X), seed=3)
    train = TrainingData(X, np.asarray(y, float), weight, None)
    return ScorecardBuilder(rows, train, penalty=penalty, min_rows=min_rows)


# -- weights ---------------------------------------------------------------------------------------


def test_weights_minimise_the_penalised_loss(rng):
    covered = np.column_stack([np.ones(40), rng.integers(0, 2, (40, 3))])
    positives, negatives = rng.random(40) * 3, rng.random(40) * 9

    def loss(beta):
        f = covered @ beta
        fit = positives @ np.log1p(np.exp(-f)) + negatives @ np.log1p(np.exp(f))
        return fit + 0.35 * np.sum(beta[1:] ** 2)

    beta, found = fit_weights(covered, positives, negatives, 0.7)
    expected = minimize(loss, np.zeros(4), options={"gtol": 1e-9})
    assert beta == pytest.approx(expected.x, abs=1e-4)
    assert found == pytest.approx(expected.fun, rel=1e-7)


def test_weights_stay_finite_where_a_rule_separates_the_classes():
    covered = np.array([[1.0, 0.0], [1.0, 1.0]])
    beta, loss = fit_weights(covered, np.array([0.0, 1e6]), np.array([1e6, 0.0]), 1e-6)
    assert np.isfinite(beta).all()
    assert 0 <= loss < 1


def test_kinds_of_rows_stand_for_the_rows(rng):
    masks = [rng.random(200) < share for share in (0.5, 0.2, 0.9)]
    positive, weights = rng.random(200) < 0.3, rng.random(200)
    covered, positives, negatives = row_kinds(masks, positive, weights)
    assert len(np.unique(covered, axis=0)) == len(covered)
    for line, p, q in zip(covered, positives, negatives, strict=True):
        same = np.all([mask == bit for mask, bit in zip(masks, line[1:] > 0, strict=True)], axis=0)
        assert p == pytest.approx(weights[same & positive].sum())
        assert q == pytest.approx(weights[same & ~positive].sum())


# -- the search ------------------------------------------------------------------------------------


def naive_gain(search, mask, masks, beta):
    """Half of the score statistic of one more rule, with full matrices."""
    Q = np.column_stack([np.ones(len(mask)), *masks])
    p = 1 / (1 + np.exp(-(Q @ beta)))
    slope = search.weights * (search.positive - p)
    H = np.diag(search.weights * p * (1 - p))
    ridge = np.diag([1e-9 * search.weights.sum(), *[search.penalty] * len(masks)])
    q = mask.astype(float)
    cross = Q.T @ H @ q
    own = q @ H @ q - cross @ np.linalg.solve(Q.T @ H @ Q + ridge, cross) + search.penalty
    return 0.5 * (slope @ q) ** 2 / own


def test_the_best_literal_is_that_of_all_written_out(rng):
    frame, y = make_table(rng, 150)
    frame = frame.drop(columns="country")
    weight = rng.integers(1, 3, len(y)).astype(float)
    builder = builder_of(frame, y, weight, max_bins=8)
    search = builder.search(np.arange(len(y)))
    first = [(frame["amount"] > 300).to_numpy()]
    beta = fit_weights(*row_kinds(first, search.positive, search.weights), 1.0)[0]
    bins = builder.rows.bins
    literals = [
        bins.threshold(j, k, operator)
        for j in range(2)
        for k in range(len(bins.cuts[j]))
        for operator in ("<=", ">")
    ]
    literals.append(Literal("amount", "is missing"))
    p = 1 / (1 + np.exp(-(beta[0] + beta[1] * first[0])))
    slope = search.weights * (search.positive - p)
    gains = {}
    for literal in literals:
        mask = literal.mask(frame[literal.column])
        covered, positives = weight[mask].sum(), weight[mask & (y == 1)].sum()
        up = slope[mask].sum() > 0
        if min(covered, weight.sum() - covered) < search.min_rows:
            continue
        if (positives if up else covered - positives) < search.min_rows / 2:
            continue
        if up == (positives / covered > weight[y == 1].sum() / weight.sum()):
            gains[literal] = naive_gain(search, mask, first, beta)
    found, n_evaluated = search.best(first, beta, 1)
    assert n_evaluated == len(literals)
    assert len(gains) > 5
    (literal,) = found.rule.literals
    assert literal == max(gains, key=gains.__getitem__)
    assert found.gain == pytest.approx(gains[literal], rel=1e-8)
    assert np.array_equal(found.rows, np.flatnonzero(literal.mask(frame[literal.column])))


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_set_of_categories_has_the_gain_of_its_rows(rng, length):
    frame, y = make_table(rng, 300)
    builder = builder_of(frame[["country", "amount"]], y)
    search = builder.search(np.arange(len(y)))
    beta = fit_weights(*row_kinds([], search.positive, search.weights), 1.0)[0]
    found, _ = search.best([], beta, length)
    mask = found.rule.mask(frame)
    assert np.array_equal(found.rows, np.flatnonzero(mask))
    assert found.gain == pytest.approx(naive_gain(search, mask, [], beta), rel=1e-8)
    listed = [literal for literal in found.rule.literals if literal.column == "country"]
    assert [literal.operator for literal in listed] == ["in"]
    assert set(listed[0].value) == {"XX", "YY"}


def test_the_gain_is_the_fall_of_the_loss_to_second_order(rng):
    frame, y = make_table(rng, 300)
    builder = builder_of(frame, y, penalty=200.0)  # short steps, where the second order is exact
    search = builder.search(np.arange(len(y)))
    beta, before = fit_weights(*row_kinds([], search.positive, search.weights), 200.0)
    found, _ = search.best([], beta, 2)
    mask = found.rule.mask(frame)
    _, after = fit_weights(*row_kinds([mask], search.positive, search.weights), 200.0)
    assert before - after == pytest.approx(found.gain, rel=0.05)


def test_a_planted_conjunction_comes_first(rng):
    frame, y = make_table(rng, 1_500)
    model = RuleScorecard(6, 3, random_state=0).fit(frame, y)
    top = model.rounds_[0].rules[0]
    assert {literal.column for literal in top.literals} >= {"amount", "country"}
    assert Literal("country", "in", ("XX", "YY")) in top.literals
    against = model.scorecard_.iloc[-1]
    assert against["points"] < 0
    assert against["lift"] < 1


def test_missing_cells_can_be_a_rule(rng):
    frame, y = make_table(rng)
    frame.loc[y == 1, "amount"] = np.nan
    model = RuleScorecard(1, 1).fit(frame, y)
    assert model.rounds_[0].rules == (Rule((Literal("amount", "is missing"),)),)


def test_rules_are_distinct_short_and_cover_enough_rows(rng):
    frame, y = make_table(rng, 800)
    model = RuleScorecard(15, 2, min_rows=30).fit(frame, y)
    rules = [kept.rules[0] for kept in model.rounds_]
    assert len(rules) > 5
    assert len({rule.mask(frame).tobytes() for rule in rules}) == len(set(rules)) == len(rules)
    for rule in rules:
        assert 1 <= len(rule) <= 2
        places = [frame.columns.get_loc(literal.column) for literal in rule.literals]
        assert places == sorted(places)
        mask = rule.mask(frame)
        fewest = min(30, scorecard.RARE * y.sum())
        assert fewest <= mask.sum() <= len(y) - fewest


def test_points_are_on_the_side_of_the_precision(rng):
    frame, y = make_table(rng, 800)
    card = RuleScorecard(12, 3).fit(frame, y).scorecard_
    assert ((card["points"] > 0) == (card["lift"] > 1)).all()


# -- the scorecard ---------------------------------------------------------------------------------


def test_the_score_is_the_sum_of_the_points_as_printed(rng):
    frame, y = make_table(rng)
    weight = rng.integers(1, 4, len(y)).astype(float)
    model = RuleScorecard(8, 2).fit(frame, y, sample_weight=weight)
    new, _ = make_table(rng)
    new.loc[:9, "country"] = "never seen"
    card = model.scorecard_
    assert card["points"].is_monotonic_decreasing
    assert (card["points"] != 0).all()
    rules = [kept.rules[0] for kept in model.rounds_]
    for rows in (frame, new):
        points = sum(p * rule.mask(rows) for p, rule in zip(card["points"], rules, strict=True))
        assert np.array_equal(model.decision_function(rows) + model.offset_, points)
    base = weight[y == 1].sum() / weight.sum()
    for line, rule in zip(card.itertuples(), rules, strict=True):
        mask = rule.mask(frame)
        assert line.rule == str(rule)
        assert line.rows == pytest.approx(weight[mask].sum())
        assert line.coverage == pytest.approx(weight[mask].sum() / weight.sum())
        assert line.positives == pytest.approx(weight[mask & (y == 1)].sum())
        assert line.precision == pytest.approx(line.positives / line.rows)
        assert line.lift == pytest.approx(line.precision / base)


def test_sql_gives_the_same_points(rng):
    frame, y = make_table(rng)
    model = RuleScorecard(8, 3).fit(frame, y)
    with duckdb.connect() as connection:
        connection.register("t", frame)
        scores = connection.execute(model.to_sql("t")).df()["score"].to_numpy()
    assert np.array_equal(scores, model.decision_function(frame))


def test_explanations_add_up_to_the_score(rng):
    frame, y = make_table(rng)
    model = RuleScorecard(6, 2).fit(frame, y)
    table = model.explain(frame)
    total = table.groupby("row")["adds"].sum().reindex(range(len(y)), fill_value=0.0)
    assert np.array_equal(total - model.offset_, model.decision_function(frame))


def test_text_has_every_rule_with_its_figures(rng):
    frame, y = make_table(rng)
    model = RuleScorecard(6, 2).fit(frame, y)
    text = model.to_text()
    for line in model.scorecard_.itertuples():
        (printed,) = [t for t in text.splitlines() if t.endswith(f"x  {line.rule}")]
        figures = printed.split("  ")
        assert f"{line.points:+d}" in printed.split()[0]
        assert f"{line.precision:.1%}" in printed
        assert len(figures) >= 4
    assert "20 points double the odds" in text
    assert f"more than {model.offset_:g} points" in text


def test_the_picture_has_a_bar_for_each_rule(rng):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    frame, y = make_table(rng)
    model = RuleScorecard(6, 2).fit(frame, y)
    ax = model.plot()
    assert [bar.get_width() for bar in ax.patches] == model.scorecard_["points"].tolist()
    assert len(ax.get_yticklabels()) == model.n_rules_
    ax.figure.canvas.draw()  # a dollar sign in a name is no formula
    own = plt.subplots()[1]
    assert model.plot(own) is own
    plt.close("all")


# -- the choice of number and length ---------------------------------------------------------------


def test_cross_validation_chooses_number_and_length(rng):
    frame, y = make_table(rng)
    model = RuleScorecard(n_folds=3, random_state=0).fit(frame, y)
    assert model.cv_scores_.shape == (3, 15)
    choice = model.cv_scores_[:, 4:]
    length, number = np.unravel_index(np.argmax(choice), choice.shape)
    assert model.max_length_ == length + 1
    assert model.n_rules_ <= number + 5
    assert max(len(kept.rules[0]) for kept in model.rounds_) <= model.max_length_
    fixed = RuleScorecard(int(number) + 5, int(length) + 1).fit(frame, y)
    assert not hasattr(fixed, "cv_scores_")
    assert np.array_equal(fixed.decision_function(frame), model.decision_function(frame))


def test_weights_are_copies_in_cross_validation_too(rng):
    frame, y = make_table(rng, 200)
    weight = rng.integers(0, 3, len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    model = RuleScorecard(n_folds=3, random_state=0)
    weighted = model.fit(frame, y, sample_weight=weight).cv_scores_
    repeated = model.fit(frame.iloc[copies], y[copies]).cv_scores_
    assert weighted == pytest.approx(repeated, abs=1e-9)


def test_folds_do_not_depend_on_the_order_of_rows(rng):
    frame, y = make_table(rng, 200)
    shuffled = rng.permutation(len(y))
    model = RuleScorecard(5, n_folds=3, random_state=0)
    one = model.fit(frame, y).decision_function(frame)
    other = model.fit(frame.iloc[shuffled], y[shuffled]).decision_function(frame)
    assert np.array_equal(one, other)


def test_a_sample_of_many_rows_is_searched_and_all_are_weighted(rng, monkeypatch):
    frame, y = make_table(rng, 3_000)
    full = RuleScorecard(4, 2).fit(frame, y)
    monkeypatch.setattr(scorecard, "SEARCH_ROWS", 300)
    sampled = RuleScorecard(4, 2, random_state=0).fit(frame, y)
    assert sampled.score(frame, y) > 0.85 * full.score(frame, y)
    masks = [kept.rules[0].mask(frame) for kept in sampled.rounds_]
    weights = scorecard.balanced(y > 0, np.ones(len(y)))
    beta = fit_weights(*row_kinds(masks, y > 0, weights), 1.0)[0]
    points = np.round(beta[1:] * 20 / np.log(2))
    assert sampled.scorecard_["points"].tolist() == points.tolist()
    assert sampled.scorecard_["rows"].tolist() == [mask.sum() for mask in masks]


def test_no_rule_at_all_is_said():
    y = np.arange(40) % 4 == 0
    with pytest.warns(UserWarning, match="no rule"):
        model = RuleScorecard(3, 2).fit(np.ones((40, 2)), y)
    assert model.n_rules_ == 0
    assert len(model.scorecard_) == 0
    assert "found no rule" in model.to_text()
    assert len(set(model.decision_function(np.ones((3, 2))))) == 1
