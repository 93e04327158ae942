"""Intervals over splits and Holm's rule, against term-by-term twins and by simulation."""

from __future__ import annotations

import naive_selection as naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.metrics.intervals import bootstrap_interval, corrected_interval, holm, verdict


@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=20), st.integers(1, 50), st.floats(0.5, 0.99)
)
@settings(max_examples=100, deadline=None)
def test_the_corrected_interval_is_that_of_the_paper(values, n_test, level):
    if np.std(values) < 1e-9:
        return
    found = corrected_interval(values, n_test / 100, level)
    expected = naive.corrected_interval(values, 100, n_test, level)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=12), st.floats(0, 1))
@settings(max_examples=50, deadline=None)
def test_the_interval_and_the_p_value_agree(values, share):
    _, low, high, p_value = corrected_interval(values, share, 0.9)
    if abs(p_value - 0.1) > 1e-6:
        assert (low <= 0 <= high) == (p_value > 0.1)


def test_without_overlap_it_is_the_usual_t_interval():
    from scipy import stats

    values = np.random.default_rng(0).normal(0.3, 1, size=15)
    _, low, high, p_value = corrected_interval(values, 0.0)
    expected = stats.ttest_1samp(values, 0)
    assert p_value == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert (low, high) == pytest.approx((interval.low, interval.high))


def test_the_same_value_everywhere():
    assert corrected_interval([0.0, 0.0, 0.0], 0.25) == (0.0, 0.0, 0.0, 1.0)
    assert corrected_interval([0.5, 0.5, 0.5], 0.25) == (0.5, 0.5, 0.5, 0.0)
    mean, low, high, p_value = corrected_interval([0.5], 0.25)
    assert (mean, low, high, p_value) == (0.5, -np.inf, np.inf, 1.0)


def test_correlated_splits_without_a_difference_are_rarely_called_different():
    """Splits with correlation n2 / (n1 + n2): the plain t test errs far more often than 5 %."""
    generator = np.random.default_rng(0)
    count, share, trials = 10, 0.25, 2000
    correlation = share / (1 + share)
    shared = generator.normal(size=(trials, 1)) * np.sqrt(correlation)
    own = generator.normal(size=(trials, count)) * np.sqrt(1 - correlation)
    corrected = [corrected_interval(values, share)[3] < 0.05 for values in shared + own]
    plain = [corrected_interval(values, 0.0)[3] < 0.05 for values in shared + own]
    assert np.mean(corrected) == pytest.approx(0.05, abs=0.015)
    assert np.mean(plain) > 0.2


p_lists = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@given(p_lists, st.sampled_from([0.01, 0.05, 0.2]))
@settings(max_examples=200, deadline=None)
def test_holm_rejects_what_the_step_down_rule_rejects(p_values, alpha):
    adjusted = holm(p_values)
    if np.any(np.abs(adjusted - alpha) < 1e-12):
        return  # on the very edge, rounding decides
    assert (adjusted <= alpha).tolist() == naive.holm_rejects(p_values, alpha)


@given(p_lists)
@settings(max_examples=100, deadline=None)
def test_holm_keeps_the_order_and_never_lowers(p_values):
    adjusted = holm(p_values)
    assert (adjusted >= np.array(p_values)).all()
    assert (adjusted <= 1).all()
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()
    shuffled = np.random.default_rng(0).permutation(len(p_values))
    np.testing.assert_array_equal(holm(np.array(p_values)[shuffled]), adjusted[shuffled])


def test_holm_of_nothing():
    assert holm([]).tolist() == []


def test_the_bootstrap_counts_both_sides_of_zero():
    draws = np.concatenate([np.full(3, -1.0), np.full(96, 1.0)])
    value, low, high, p_value = bootstrap_interval(0.7, draws, 0.9)
    assert (value, low, high) == (0.7, 1.0, 1.0)
    assert p_value == pytest.approx(2 * 4 / 100)
    assert bootstrap_interval(0.0, np.zeros(50))[3] == 1.0


def test_verdicts():
    assert verdict(0.1, 0.05, 0.95) == "better"
    assert verdict(-0.1, 0.049, 0.95) == "worse"
    assert verdict(-0.1, 0.0501, 0.95) == "cannot tell"
    assert verdict(0.1, float("nan"), 0.95) == "cannot tell"
