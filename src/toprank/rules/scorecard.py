"""RuleScorecard: a handful of short rules with points, weighted together.

With q_j(x) in {0, 1} the rules and f(x) = b_0 + sum_j b_j q_j(x), the weights b minimise

    L(b) = sum_i w_i log(1 + exp(-s_i f(x_i))) + penalty/2 sum_j b_j^2,    s_i = 1 or -1,

all of them anew whenever a rule is added. The next rule is the one that promises the greatest fall of L when
every weight is refitted: to second order half of the score statistic (Rao 1948)

    G^2 / (q'Hq - q'HQ (Q'HQ + penalty)^-1 Q'Hq + penalty),

with G the derivative of L along q, H the diagonal of its second derivatives and Q the rules so far and a
column of ones. What the rules so far can already say is taken out of q, so that no rule repeats another:
for weights fitted together this makes shorter models than a gradient alone (Boley, Teshuva, Le Bodic & Webb
2021; Yang, Le Bodic, Kamp & Boley 2024). One histogram a column holds all of these sums for every literal.
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from toprank.base import TrainingData
from toprank.binning import MISSING, N_BINS, OTHER
from toprank.docstrings import fill_docstring
from toprank.metrics import average_precision
from toprank.rule import Literal, Rule
from toprank.rules._kernels import histograms_of_many
from toprank.rules.boosters import Booster, KeptRound
from toprank.rules.ensemble import BoostedRules
from toprank.rules.weak_rankers import BinnedColumns, BinnedRows, simplified, total_weights
from toprank.sampling import sample_classes
from toprank.validation import Interval, StrOptions

__all__ = ["RuleScorecard"]

FEWEST, MOST = 5, 15  # rules, where cross-validation chooses their number
LENGTHS = (1, 2, 3)  # literals, where it chooses how long they may be
POINTS_PER_DOUBLING = 20  # of the odds, as in credit scoring
BALANCE = 0.5  # negatives weigh (P / N)^BALANCE: between plain and balanced logistic regression
RARE = 0.2  # of the rarer class: where this is less than `min_rows`, it takes its place
BEAM = 5  # rules that are refined at each length
LONGER = 1.2  # a longer rule must promise so much more than a shorter one
MAX_LISTED = 6  # categories that one literal names
SEARCH_ROWS = 10_000  # of each class, to search rules among; weights are fitted to all rows
NO_RULE = "RuleScorecard found no rule"


# -- weights of given rules ------------------------------------------------------------------------------


def fit_weights(
    covered: np.ndarray, positives: np.ndarray, negatives: np.ndarray, penalty: float
) -> tuple[np.ndarray, float]:
    """Return the weights that minimise the penalised logistic loss, and the loss, by Newton steps.

    Each line of `covered` is a kind of row: 1 in the first column, then whether each rule covers it;
    `positives` and `negatives` are the weights of the rows of that kind.
    """
    weights = positives + negatives
    ridge = np.full(covered.shape[1], float(penalty))
    ridge[0] = 1e-9 * weights.sum()
    beta = np.zeros(covered.shape[1])
    loss, probability = _loss(covered, positives, negatives, ridge, beta)
    for _ in range(50):
        slope = covered.T @ (positives - weights * probability) - ridge * beta
        curvature = weights * probability * (1 - probability)
        step = np.linalg.solve((covered.T * curvature) @ covered + np.diag(ridge), slope)
        length = 1.0
        while length > 1e-6:
            trial = beta + length * step
            found, probability_there = _loss(covered, positives, negatives, ridge, trial)
            if found <= loss:
                break
            length /= 2
        else:
            break
        fallen = loss - found
        beta, loss, probability = trial, found, probability_there
        if fallen <= 1e-12 * max(loss, 1e-300):
            break
    return beta, loss


def _loss(
    covered: np.ndarray,
    positives: np.ndarray,
    negatives: np.ndarray,
    ridge: np.ndarray,
    beta: np.ndarray,
) -> tuple[float, np.ndarray]:
    """Return the penalised logistic loss, and the probability of each kind of row."""
    f = covered @ beta
    loss = positives @ np.logaddexp(0.0, -f) + negatives @ np.logaddexp(0.0, f)
    return float(loss + 0.5 * ridge @ beta**2), 0.5 * (1.0 + np.tanh(0.5 * f))


def row_kinds(
    masks: Sequence[np.ndarray], positive: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct lines of rule coverage with their weights of positives and negatives."""
    codes = np.zeros(len(positive), dtype=np.int64)
    for j, mask in enumerate(masks):
        codes |= mask.astype(np.int64) << j
    kinds, inverse = np.unique(codes, return_inverse=True)
    covered = np.ones((len(kinds), len(masks) + 1))
    for j in range(len(masks)):
        covered[:, j + 1] = (kinds >> j) & 1
    sums = [
        np.bincount(inverse, weights=np.where(side, weights, 0.0), minlength=len(kinds))
        for side in (positive, ~positive)
    ]
    return covered, sums[0], sums[1]


# -- the search for the next rule ------------------------------------------------------------------------


class Candidates(NamedTuple):
    """Literals that could be added to a rule: sums under each, and what each of them is."""

    sums: np.ndarray  # (n_values, n_candidates)
    operator: np.ndarray  # index into OPERATORS
    column: np.ndarray
    size: np.ndarray  # the cut of a threshold; how many categories are listed
    # bins of categories: greatest ratio first, smallest first
    orders: tuple[np.ndarray, np.ndarray]


OPERATORS = ("<=", ">", "in top", "in bottom", "not in top", "not in bottom", "is missing")


class Found(NamedTuple):
    """A rule of a search: what it promises, the rows it covers."""

    gain: float
    rule: Rule
    rows: np.ndarray


@dataclass(frozen=True)
class RuleSearch:
    """Rows among which rules are searched."""

    bins: BinnedColumns
    codes: np.ndarray
    positive: np.ndarray
    sample_weight: np.ndarray  # as given: for coverage
    weights: np.ndarray  # balanced: for the loss
    penalty: float
    min_rows: float

    def best(
        self, masks: list[np.ndarray], beta: np.ndarray, max_length: int
    ) -> tuple[Found | None, int]:
        """Return the rule that promises most, and how many were scored; a beam search by length."""
        values, whitening = self._values(masks, beta)
        known = {_signature(np.flatnonzero(mask)) for mask in masks}
        beam = [Found(0.0, Rule(), np.arange(len(self.positive)))]
        best: Found | None = None
        n_evaluated = 0
        for _ in range(max_length):
            refined: list[tuple[float, Found, Candidates, int]] = []
            for found in beam:
                candidates = self._candidates(found.rows, values)
                n_evaluated += len(candidates.column)
                gains = self._gains(candidates, whitening, found)
                refined += [(gains[c], found, candidates, c) for c in _diverse(gains, candidates)]
            refined.sort(key=lambda item: -item[0])
            beam = self._distinct(refined, known)
            if not beam:
                break
            if best is None or beam[0].gain > LONGER * best.gain:
                best = beam[0]
        return best, n_evaluated

    def _values(self, masks: list[np.ndarray], beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return what is summed under each literal, and the map that takes out the rules so far."""
        Q = np.column_stack([np.ones(len(self.positive)), *masks])
        probability = 0.5 * (1.0 + np.tanh(0.5 * (Q @ beta)))
        slope = self.weights * (self.positive - probability)
        curvature = self.weights * probability * (1 - probability)
        ridge = np.full(Q.shape[1], self.penalty)
        ridge[0] = 1e-9 * self.weights.sum()
        products = (Q.T * curvature) @ Q + np.diag(ridge)
        whitening = np.linalg.inv(np.linalg.cholesky(products))
        weight = self.sample_weight
        parts = [slope, curvature, weight, weight * self.positive, *(curvature[:, None] * Q).T]
        return np.ascontiguousarray(np.column_stack(parts)), whitening

    def _candidates(self, rows: np.ndarray, values: np.ndarray) -> Candidates:
        """Return every literal with the sums of the values under it, among some rows."""
        bins = self.bins
        sums = np.zeros((bins.n_columns, N_BINS, values.shape[1]))
        histograms_of_many(self.codes, rows, values, sums)
        n_used = int(bins.n_cuts.max(initial=0)) + 1  # the bins above are empty but for two
        present = sums[:, :n_used].sum(axis=1) + (sums[:, OTHER] if n_used <= OTHER else 0.0)
        is_bin = np.arange(n_used) < bins.n_cuts[:, None]
        parts: list[tuple[np.ndarray, int, np.ndarray, np.ndarray]] = []
        column, cut = np.nonzero(is_bin & ~bins.is_category[:, None])
        low = np.cumsum(sums[:, :n_used], axis=1)[column, cut]
        parts += [(low, 0, column, cut), (present[column] - low, 1, column, cut)]
        categories = np.flatnonzero(bins.is_category)
        by_category = sums[categories, :n_used]
        orders = _category_orders(by_category, is_bin[categories], self.penalty)
        for top, order in enumerate(orders):
            inside = np.take_along_axis(by_category, order[:, :MAX_LISTED, None], axis=1)
            inside = np.cumsum(inside, axis=1)
            which, size = np.nonzero(
                np.arange(inside.shape[1])
                < np.minimum(bins.n_cuts[categories] - 1, MAX_LISTED)[:, None]
            )
            listed, column = inside[which, size], categories[which]
            parts += [
                (listed, 2 + top, column, size),
                (present[column] - listed, 4 + top, column, size),
            ]
        column = np.flatnonzero(bins.has_missing)
        parts.append((sums[column, MISSING], 6, column, np.zeros(len(column), dtype=np.int64)))
        full = np.zeros((2, bins.n_columns, n_used), dtype=np.int64)
        full[:, categories] = orders
        return Candidates(
            np.concatenate([part[0] for part in parts]).T,
            np.concatenate([np.full(len(part[2]), part[1]) for part in parts]),
            np.concatenate([part[2] for part in parts]),
            np.concatenate([part[3] for part in parts]),
            (full[0], full[1]),
        )

    def _gains(self, candidates: Candidates, whitening: np.ndarray, found: Found) -> np.ndarray:
        """Return what each refinement of a rule promises; minus 1 where it may not be taken."""
        slope, curvature, covered, positives = candidates.sums[:4]
        known = whitening @ candidates.sums[4:]
        own = np.maximum(curvature - (known**2).sum(axis=0), 0.0) + self.penalty
        gains = 0.5 * slope**2 / own
        of_the_side = np.where(slope > 0, positives, covered - positives)
        total = float(self.sample_weight.sum())
        allowed = np.minimum(covered, total - covered) >= self.min_rows
        allowed &= of_the_side >= 0.5 * self.min_rows
        # points are on the side of the precision: a rule reads alone as it does among the others
        base = float(self.sample_weight @ self.positive) / total
        allowed &= (slope > 0) == (positives > base * covered)
        # a literal that leaves out no row adds nothing
        allowed &= covered < self.sample_weight[found.rows].sum() * (1 - 1e-9)
        names = self.bins.columns.names
        used = {names.index(literal.column) for literal in found.rule.literals}
        repeated = np.isin(candidates.column, [j for j in used if self.bins.is_category[j]])
        # equal but for the rounding of sums: the first of them is taken on any order of the rows
        return np.where(allowed & ~repeated, _rounded(gains), -1.0)

    def _distinct(
        self, refined: list[tuple[float, Found, Candidates, int]], known: set[Any]
    ) -> list[Found]:
        """Return the first few refinements that cover rows as no other rule does."""
        beam: list[Found] = []
        seen = set(known)
        for gain, found, candidates, c in refined:
            literal = self._literal(candidates, c)
            column, member = self.bins.members(literal)
            rows = found.rows[member[self.codes[column][found.rows]] > 0]
            signature = _signature(rows)
            if signature in seen:
                continue
            seen.add(signature)
            beam.append(Found(float(gain), simplified(found.rule, literal), rows))
            if len(beam) == BEAM:
                break
        return beam

    def _literal(self, candidates: Candidates, c: int) -> Literal:
        column, size = int(candidates.column[c]), int(candidates.size[c])
        operator = OPERATORS[candidates.operator[c]]
        name = self.bins.columns.names[column]
        if operator == "is missing":
            return Literal(name, "is missing")
        if operator in {"<=", ">"}:
            return self.bins.threshold(column, size, operator)
        order = candidates.orders[0 if operator.endswith("top") else 1][column]
        listed = tuple(self.bins.category(column, int(k)) for k in sorted(order[: size + 1]))
        negated = operator.startswith("not")
        if len(listed) == 1:
            return Literal(name, "!=" if negated else "=", listed[0])
        return Literal(name, "not in" if negated else "in", listed)


def _category_orders(sums: np.ndarray, is_bin: np.ndarray, penalty: float) -> np.ndarray:
    """Order the categories of each column by slope over curvature: greatest first, and smallest first."""
    ratio = np.round(sums[:, :, 0] / (sums[:, :, 1] + penalty), 9)
    down = np.argsort(np.where(is_bin, -ratio, np.inf), axis=1, kind="stable")
    up = np.argsort(np.where(is_bin, ratio, np.inf), axis=1, kind="stable")
    return np.stack([down, up])


def _diverse(gains: np.ndarray, candidates: Candidates) -> Iterator[int]:
    """Yield the best candidates, one for each column and operator."""
    seen: set[tuple[int, int]] = set()
    for c in np.argsort(-gains, kind="stable").tolist():
        if gains[c] <= 0 or len(seen) == BEAM:
            return
        key = int(candidates.column[c]), int(candidates.operator[c])
        if key not in seen:
            seen.add(key)
            yield c


def _rounded(values: np.ndarray) -> np.ndarray:
    """Round to nine significant digits: what only the order of a sum tells apart becomes equal."""
    fraction, exponent = np.frexp(values)
    return np.ldexp(np.round(fraction, 9), exponent)


def _signature(rows: np.ndarray) -> tuple[int, int]:
    """Return a short stand-in for a set of rows."""
    return len(rows), hash(rows.tobytes())


# -- growing a scorecard, and choosing its size ----------------------------------------------------------


class Stage(NamedTuple):
    """One more rule, and the weights of all rules so far (the first is the constant)."""

    rule: Rule
    gain: float
    n_evaluated: int
    beta: np.ndarray


class ScorecardBuilder(Booster):
    """Grows scorecards on the training rows or a part of them."""

    def __init__(
        self, rows: BinnedRows, train: TrainingData, *, penalty: float, min_rows: float
    ) -> None:
        super().__init__(train.y, train.sample_weight)
        self.rows = rows
        self.penalty = penalty
        self.min_rows = min_rows

    def __next__(self) -> KeptRound:
        raise StopIteration  # rules are weighted together, never one round after the other

    def search(self, part: np.ndarray) -> RuleSearch:
        """Return the search among some rows; of many rows a sample of each class stands for all."""
        positive = self.positive[part]
        sample_weight = self.sample_weight[part]
        if len(part) > 2 * SEARCH_ROWS:
            drawn = sample_classes(positive, SEARCH_ROWS, SEARCH_ROWS, self.rows.seed)
            totals = total_weights(positive, sample_weight)
            part, positive, sample_weight = part[drawn], positive[drawn], sample_weight[drawn]
            drawn_totals = total_weights(positive, sample_weight)
            scale = [total / own for total, own in zip(totals, drawn_totals, strict=True)]
            sample_weight = sample_weight * np.where(positive, *scale)
        return RuleSearch(
            self.rows.bins,
            np.ascontiguousarray(self.rows.codes[:, part]),
            positive,
            sample_weight,
            balanced(positive, sample_weight),
            self.penalty,
            min(self.min_rows, RARE * min(total_weights(positive, sample_weight))),
        )

    def grow(self, part: np.ndarray, n_rules: int, max_length: int) -> list[Stage]:
        """Add rules one by one, all weights fitted anew each time, until none promises anything."""
        search = self.search(part)
        masks: list[np.ndarray] = []
        kinds = row_kinds(masks, search.positive, search.weights)
        beta = fit_weights(*kinds, self.penalty)[0]
        stages: list[Stage] = []
        for _ in range(n_rules):
            found, n_evaluated = search.best(masks, beta, max_length)
            if found is None:
                break
            mask = np.zeros(len(search.positive), dtype=bool)
            mask[found.rows] = True
            masks.append(mask)
            kinds = row_kinds(masks, search.positive, search.weights)
            beta = fit_weights(*kinds, self.penalty)[0]
            stages.append(Stage(self._in_order(found.rule), found.gain, n_evaluated, beta))
        return stages

    def _in_order(self, rule: Rule) -> Rule:
        """Return a rule with its literals in the order of the columns, "above" before "at most"."""
        names = self.rows.bins.columns.names
        order = sorted(
            rule.literals, key=lambda lit: (names.index(lit.column), lit.operator != ">")
        )
        return Rule(tuple(order))

    def masks(self, rules: Sequence[Rule], part: np.ndarray | slice) -> list[np.ndarray]:
        """Return which of some rows each rule covers."""
        masks = []
        for rule in rules:
            held = [self.rows.bins.members(literal) for literal in rule.literals]
            inside = [member[self.rows.codes[column, part]] > 0 for column, member in held]
            masks.append(np.logical_and.reduce(inside))
        return masks

    def cross_validate(self, n_rules: int, lengths: Sequence[int], n_folds: int) -> np.ndarray:
        """Return average precision by length, number of rules and fold, in this order."""
        scores = np.full((len(lengths), n_rules, n_folds), np.nan)
        for k, (train, test) in self.rows.folds(self.positive, n_folds):
            for a, length in enumerate(lengths):
                stages = self.grow(train, n_rules, length)
                masks = self.masks([stage.rule for stage in stages], test)
                quality = 0.0
                for m in range(n_rules):
                    if m < len(stages):
                        f = sum(
                            b * mask for b, mask in zip(stages[m].beta[1:], masks, strict=False)
                        )
                        weight = self.sample_weight[test]
                        quality = average_precision(
                            self.positive[test], np.round(f, 9), sample_weight=weight
                        )
                    scores[a, m, k] = quality
        return scores


def balanced(positive: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
    """Return the weights of the loss: negatives count (P / N)^BALANCE of theirs."""
    positives, negatives = total_weights(positive, sample_weight)
    return sample_weight * np.where(positive, 1.0, min(positives / negatives, 1.0) ** BALANCE)


# -- the estimator ---------------------------------------------------------------------------------------


@fill_docstring
class RuleScorecard(BoostedRules):
    """Rank by the points of a handful of short rules: a model that fits on one page.

    A row's score is the sum of the points of the rules that cover it; a rule with negative points speaks
    against a positive. Rules are conjunctions of at most three conditions. They are added one at a time,
    the one first that lowers the logistic loss most when the weights of all rules are fitted anew [1]_ [2]_.
    Points are weights rounded to whole numbers, 20 of them double the odds, and what is printed is
    exactly what is scored. How many rules there are and how long they may be is chosen by average
    precision in cross-validation unless it is given.

    Parameters
    ----------
    n_rules : int or "auto", default="auto"
        Maximum number of rules; "auto" chooses 5 to 15 by cross-validation.
    max_length : int or "auto", default="auto"
        Maximum number of conditions of a rule; "auto" chooses 1, 2 or 3 by cross-validation.
    min_rows : float, default=10
        A rule covers, and leaves out, rows of at least this weight; half as many of them are of the
        class that it speaks for.
    penalty : float, default=1.0
        Times half the sum of squared weights; the greater, the nearer to 0 are points that few rows
        support.
    n_folds : int, default=5
        Folds of the cross-validation. Rows that are equal are in one fold.
    max_bins : int, default=32
        Maximum number of bins of a column; thresholds lie between bins.
    %(n_jobs)s
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    scorecard_ : DataFrame
        The rules, the most points first: points, rule, rows and share of rows that it covers
        (coverage), positives among them, precision, and lift (precision over the share of positives in
        training).
    rules_ : DataFrame
        The rules as in the other estimators of rules; `adds` are the points.
    rounds_ : tuple of KeptRound
        The same as data.
    n_rules_, max_length_ : int
        What was chosen; fewer rules where no further one promises anything, or where its points
        round to 0.
    cv_scores_ : ndarray of shape (n_lengths, n_numbers)
        Mean average precision of the folds by length and number of rules, if there was a choice.
    class_weights_ : ndarray of shape (2,)
        Weight of the negatives and of the positives of training.
    n_evaluated_ : ndarray
        Rules scored to find each rule.
    bins_ : BinnedColumns
        The columns, their bins and categories.
    %(classes)s

    References
    ----------
    .. [1] Boley, Teshuva, Le Bodic & Webb (2021), "Better short than greedy: interpretable models
       through optimal rule boosting", SIAM International Conference on Data Mining.
    .. [2] Yang, Le Bodic, Kamp & Boley (2024), "Orthogonal gradient boosting for simpler additive rule
       ensembles", Artificial Intelligence and Statistics.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from toprank import RuleScorecard
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"amount": 10 * rng.integers(1, 30, 400)})
    >>> table["country"] = rng.choice(["NL", "XX"], 400)
    >>> fraud = (table["amount"] > 200) & (table["country"] == "XX")
    >>> model = RuleScorecard(n_rules=1, max_length=2).fit(table, fraud)
    >>> model.scorecard_["rule"].tolist()
    ["amount > 205 and country = 'XX'"]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BoostedRules._parameter_constraints,
        "n_rules": [Interval(Integral, 1, 60, closed="both"), StrOptions({"auto"})],
        "max_length": [Interval(Integral, 1, 10, closed="both"), StrOptions({"auto"})],
        "min_rows": [Interval(Real, 0, None, closed="neither")],
        "penalty": [Interval(Real, 0, None, closed="neither")],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(
        self,
        n_rules: int | str = "auto",
        max_length: int | str = "auto",
        *,
        min_rows: float = 10.0,
        penalty: float = 1.0,
        n_folds: int = 5,
        max_bins: int = 32,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_rules = n_rules
        self.max_length = max_length
        self.min_rows = min_rows
        self.penalty = penalty
        self.n_folds = n_folds
        self.max_bins = max_bins
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _holds_out(self) -> bool:
        return False

    def _booster(self, rows: BinnedRows, train: TrainingData, /) -> ScorecardBuilder:
        return ScorecardBuilder(
            rows, train, penalty=float(self.penalty), min_rows=float(self.min_rows)
        )

    def _grow(self, booster: Booster, validation: TrainingData | None) -> None:
        """Choose the size of the scorecard, grow it, and set the attributes that describe it."""
        assert isinstance(booster, ScorecardBuilder)
        self.__dict__.pop("cv_scores_", None)  # of a fit before
        lengths = LENGTHS if self.max_length == "auto" else (int(self.max_length),)
        numbers = range(FEWEST, MOST + 1)
        if self.n_rules != "auto":
            numbers = range(int(self.n_rules), int(self.n_rules) + 1)
        n_rules, self.max_length_ = numbers[-1], lengths[-1]
        if len(lengths) > 1 or len(numbers) > 1:
            folds = booster.cross_validate(n_rules, lengths, self.n_folds)
            self.cv_scores_ = _fold_means(folds)
            choice = self.cv_scores_[:, numbers[0] - 1 :]
            a, m = np.unravel_index(int(np.argmax(np.round(choice, 9))), choice.shape)
            n_rules, self.max_length_ = numbers[int(m)], lengths[int(a)]
        stages = booster.grow(np.arange(len(booster.positive)), n_rules, self.max_length_)
        negatives, positives = total_weights(~booster.positive, booster.sample_weight)
        self.class_weights_ = np.array([negatives, positives])
        self.rounds_ = tuple(_with_points(booster, stages))
        self.n_rules_ = len(self.rounds_)
        if not self.rounds_:
            warnings.warn(
                f"{NO_RULE}: no condition on any column tells positives from negatives among enough "
                "rows. Every row gets the same score. Look whether the columns are constant, or lower "
                f"min_rows (now {self.min_rows:g}) or penalty (now {self.penalty:g})",
                stacklevel=3,
            )
        self.n_evaluated_ = np.array([kept.n_evaluated for kept in self.rounds_], dtype=np.int64)

    # -- reading -----------------------------------------------------------------------------------

    @property
    def scorecard_(self) -> pd.DataFrame:
        """The rules with their points, the most points first."""
        check_is_fitted(self)
        total = float(self.class_weights_.sum())
        share = float(self.class_weights_[1]) / total
        positives = np.array([kept.positives[-1] for kept in self.rounds_])
        rows = positives + np.array([kept.negatives[-1] for kept in self.rounds_])
        precision = positives / rows
        return pd.DataFrame(
            {
                "points": np.array([round(kept.step) for kept in self.rounds_], dtype=np.int64),
                "rule": [str(kept.rules[-1]) for kept in self.rounds_],
                "rows": rows,
                "coverage": rows / total,
                "positives": positives,
                "precision": precision,
                "lift": precision / share,
            }
        )

    def to_text(self) -> str:
        """Write the scorecard as a page of text.

        Returns
        -------
        text : str
            One line a rule: points, coverage, precision, lift, the rule; then how to read them.
        """
        card = self.scorecard_
        if card.empty:
            return f"{NO_RULE}: every row has the same score."
        lines = [f"{'points':>6}  {'covers':>7}  {'precision':>9}  {'lift':>6}  rule"]
        lines += [
            f"{row.points:>+6d}  {row.coverage:>7.1%}  {row.precision:>9.1%}  {row.lift:>5.1f}x  {row.rule}"
            for row in card.itertuples()
        ]
        share = float(self.class_weights_[1] / self.class_weights_.sum())
        lines += [
            "",
            "A row's score is the sum of the points of the rules that cover it; "
            f"{POINTS_PER_DOUBLING} points double the odds.",
            f"Flagged: more than {self.offset_:g} points. Share of positives in training: {share:.1%}.",
        ]
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw the scorecard: a bar a rule for its points, with precision and coverage.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        card = self.scorecard_
        if ax is None:
            import matplotlib.pyplot as plt

            height = 1.0 + 0.5 * max(len(card), 1)
            ax = plt.subplots(figsize=(9, height), layout="constrained")[1]
        places = np.arange(len(card))
        colours = np.where(card["points"] > 0, "tab:red", "tab:blue")
        ax.barh(places, card["points"], color=colours, height=0.6)
        rules = card["rule"].map(
            lambda rule: textwrap.fill(rule, 48, max_lines=3, placeholder=" ...")
        )
        ax.set_yticks(places, rules.str.replace("$", r"\$", regex=False), fontsize="small")
        ax.invert_yaxis()
        ax.axvline(0.0, color="0.3", linewidth=0.8)
        figures = zip(card["points"], card["precision"], card["rows"], strict=True)
        for place, (points, precision, rows) in enumerate(figures):
            ax.annotate(
                f"{points:+d}: {precision:.0%} of {rows:g} rows",
                (max(points, 0), place),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
            )
        ax.margins(x=0.5)
        ax.set_xlabel(f"Points ({POINTS_PER_DOUBLING} double the odds)")
        return ax


def _with_points(booster: ScorecardBuilder, stages: list[Stage]) -> list[KeptRound]:
    """Fit the weights to all training rows, and return the rules that get points, the most first."""
    masks = booster.masks([stage.rule for stage in stages], slice(None))
    weights = balanced(booster.positive, booster.sample_weight)
    kinds = row_kinds(masks, booster.positive, weights)
    beta, _ = fit_weights(*kinds, booster.penalty)
    points = np.round(beta[1:] * POINTS_PER_DOUBLING / np.log(2.0))
    rounds = []
    for j in np.argsort(-points, kind="stable").tolist():
        if points[j] == 0:
            continue
        sides = masks[j] & booster.positive, masks[j] & ~booster.positive
        held = [np.array([booster.sample_weight[side].sum()]) for side in sides]
        stage = stages[j]
        rounds.append(
            KeptRound(
                (stage.rule,),
                np.ones(1),
                float(points[j]),
                stage.gain,
                stage.n_evaluated,
                held[0],
                held[1],
            )
        )
    return rounds


def _fold_means(scores: np.ndarray) -> np.ndarray:
    """Average over the folds that had both classes; zeros where none had."""
    valid = ~np.isnan(scores[0, 0])
    return scores[:, :, valid].mean(axis=2) if valid.any() else np.zeros(scores.shape[:2])
