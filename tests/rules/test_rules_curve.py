"""Areas under the curves of rules and paths."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_rules import curve_area

from toprank.metrics import recall_precision_area
from toprank.rules.weak_rankers import SCORES, CurvePath, best_candidate

SHARE = st.floats(0, 1, allow_subnormal=False)  # of which the naive integral cannot be taken
TOTAL = st.floats(1e-3, 1e3)


def rule_area(positives, negatives, total_positives, total_negatives):
    """Area under the curve of one rule."""
    return CurvePath(total_positives, total_negatives).extended(positives, negatives).area


def nested_path(shares, total_positives, total_negatives):
    """A path whose every rule covers the given shares of what the rule before covers."""
    path = CurvePath(total_positives, total_negatives)
    for positive_share, negative_share in shares:
        positives, negatives = path.end
        path = path.extended(positives * positive_share, negatives * negative_share)
    return path


@given(SHARE, SHARE, TOTAL, TOTAL)
def test_area_of_a_rule_is_the_integral(positives, negatives, total_positives, total_negatives):
    point = positives * total_positives, negatives * total_negatives
    area = rule_area(*point, total_positives, total_negatives)
    expected = curve_area([point], total_positives, total_negatives)
    assert area == pytest.approx(expected, abs=1e-6)


@given(st.lists(st.tuples(SHARE, SHARE), min_size=1, max_size=5), TOTAL, TOTAL)
def test_area_of_a_path_is_the_integral(shares, total_positives, total_negatives):
    path = nested_path(shares, total_positives, total_negatives)
    points = list(zip(path.positives, path.negatives, strict=True))
    # equal recalls: the integral takes the lower precision at the jump, which has no width
    assert path.area == pytest.approx(
        curve_area(points, total_positives, total_negatives), abs=1e-6
    )


@given(st.integers(0, 10**6))
def test_area_of_a_path_is_that_of_the_ranking_it_gives(seed):
    rng = np.random.default_rng(seed)
    y = np.r_[1, 0, rng.integers(0, 2, 40)]
    weights = rng.random(len(y)) + 0.1
    depth = rng.integers(0, 4, len(y))
    path = CurvePath(weights[y == 1].sum(), weights[y == 0].sum())
    for k in (1, 2, 3):
        covered = depth >= k
        path = path.extended(weights[covered & (y == 1)].sum(), weights[covered & (y == 0)].sum())
    assert path.area == pytest.approx(
        recall_precision_area(y, depth, sample_weight=weights), abs=1e-9
    )


def test_extremes():
    assert rule_area(5, 0, 5, 100) == 1.0
    assert rule_area(5, 100, 5, 100) == pytest.approx(5 / 105)
    # nothing covered: only the way to "every row" is left, at its precision
    assert rule_area(0, 0, 5, 100) == pytest.approx(5 / 105)
    tiny = rule_area(1e-300, 1e-300, 1, 1e12)
    assert np.isfinite(tiny)
    assert 0 <= tiny <= 1


@given(st.lists(st.tuples(SHARE, SHARE), min_size=1, max_size=6), TOTAL, TOTAL)
def test_levels_are_shares_of_the_area_right_of_each_rule(shares, total_positives, total_negatives):
    path = nested_path(shares, total_positives, total_negatives)
    levels = path.levels()
    assert levels[-1] == 1.0
    assert (np.diff(levels) >= -1e-9).all()
    for k in range(len(levels) - 1):
        # the integral from the rule's recall to recall 1 = the area without the stretch left of it
        start = path.positives[k], path.negatives[k]
        points = list(zip(path.positives[: k + 1], path.negatives[: k + 1], strict=True))
        whole = curve_area(points, total_positives, total_negatives)
        precision = start[0] / sum(start) if sum(start) > 0 else 0.0
        right = whole - precision * start[0] / total_positives
        assert levels[k] * path.area == pytest.approx(right, abs=1e-6)


def test_a_path_scores_its_candidates_as_if_they_were_taken():
    path = CurvePath(10.0, 1000.0).extended(8.0, 200.0).extended(6.0, 20.0)
    positives, negatives = np.array([6.0, 4.0, 0.0, 5.5]), np.array([15.0, 0.0, 0.0, 20.0])
    scores = SCORES["path"](positives, negatives, path)
    taken = [path.extended(p, n).area for p, n in zip(positives, negatives, strict=True)]
    assert scores == pytest.approx(taken)
    alone = SCORES["clause"](positives, negatives, path)
    assert alone == pytest.approx(
        [rule_area(p, n, 10, 1000) for p, n in zip(positives, negatives, strict=True)]
    )
    auc = SCORES["auc"](positives, negatives, path)
    assert auc == pytest.approx(positives / 10 - negatives / 1000)


def test_a_more_precise_extension_always_raises_the_path_but_not_the_clause():
    path = CurvePath(10.0, 100.0).extended(8.0, 8.0)
    precise = np.array([1.0]), np.array([0.5])
    assert SCORES["path"](*precise, path)[0] > path.area
    assert SCORES["clause"](*precise, path)[0] < rule_area(8, 8, 10, 100)


def test_ties_up_to_rounding_go_to_the_first():
    assert best_candidate(np.array([0.1, 0.3, 0.3 + 1e-15]))[0] == 1
    assert best_candidate(np.array([-0.3, -0.1, -0.2]))[0] == 1
