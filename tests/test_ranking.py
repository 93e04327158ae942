"""RankedList and RankedQueries against a list sorted by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from toprank.ranking import RankedList, RankedQueries, descending_order

SCORES = hnp.arrays(
    st.sampled_from([np.float64, np.float32]),
    st.integers(1, 40),
    elements=st.sampled_from([-1e30, -2.0, -0.0, 0.0, 1e-30, 0.5, 1.0, 1e30]),
)


@given(scores=SCORES, seed=st.integers(0, 2**16), weighted=st.booleans())
def test_tie_groups_equal_counting_by_hand(scores, seed, weighted) -> None:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=len(scores))
    weight = rng.integers(0, 4, size=len(scores)).astype(float) if weighted else None
    w = np.ones(len(scores)) if weight is None else weight
    ranked = RankedList.of(y, scores, weight)
    distinct = np.unique(scores)[::-1]
    np.testing.assert_array_equal(ranked.scores, distinct)
    assert ranked.scores.dtype == scores.dtype
    for g, value in enumerate(distinct):
        above = scores >= value
        assert ranked.ends[g] == above.sum()
        assert ranked.positives[g] == w[above & (y == 1)].sum()
        assert ranked.negatives[g] == w[above & (y == 0)].sum()
    assert ranked.total_positives == w[y == 1].sum()
    assert ranked.total_negatives == w[y == 0].sum()
    assert ranked.n_rows == len(scores)
    assert ranked.n_groups == len(distinct)


@given(scores=SCORES, seed=st.integers(0, 2**16))
def test_row_order_changes_nothing(scores, seed) -> None:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, size=len(scores))
    shuffle = rng.permutation(len(scores))
    one, other = RankedList.of(y, scores), RankedList.of(y[shuffle], scores[shuffle])
    for name in ("scores", "ends", "positives", "negatives"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@given(scores=SCORES)
def test_the_order_is_descending(scores) -> None:
    y = np.zeros(len(scores))
    for ranked in (RankedList.of(y, scores), RankedList.of(y, scores, np.ones(len(scores)))):
        assert sorted(ranked.order) == list(range(len(scores)))
        assert np.all(np.diff(scores[ranked.order]) <= 0)
    assert np.all(np.diff(scores[descending_order(scores)]) <= 0)


@given(scores=SCORES, seed=st.integers(0, 2**16), text=st.booleans())
def test_queries_are_ranked_each_on_its_own(scores, seed, text) -> None:
    qid = np.random.default_rng(seed).integers(0, 5, size=len(scores))
    names = np.array([f"query {q}" for q in qid]) if text else qid
    ranked = RankedQueries.of(scores, names)
    assert ranked.n_queries == len(set(qid))
    for q, name in enumerate(ranked.queries):
        block = slice(ranked.starts[q], ranked.starts[q + 1])
        assert sorted(ranked.order[block]) == np.flatnonzero(names == name).tolist()
        assert np.all(np.diff(ranked.scores[block]) <= 0)
    np.testing.assert_array_equal(ranked.scores, scores[ranked.order])


LONG = {
    "normal": lambda rng, n: rng.normal(size=n),
    "few values": lambda rng, n: rng.integers(-3, 3, size=n).astype(float),
    "all equal": lambda rng, n: np.zeros(n),
    "signed zeros": lambda rng, n: rng.choice([-0.0, 0.0], size=n),
    "neighbours": lambda rng, n: 1 + rng.integers(0, 1000, size=n) * np.finfo(float).eps,
    "all sizes": lambda rng, n: np.ldexp(rng.choice([-1.0, 1.0], n), rng.integers(-1070, 1020, n)),
}


@pytest.mark.parametrize("kind", LONG)
def test_long_lists_are_ordered_exactly(kind: str) -> None:
    scores = LONG[kind](np.random.default_rng(0), 30_000)
    order = descending_order(scores)
    assert np.array_equal(np.sort(order), np.arange(30_000))
    np.testing.assert_array_equal(scores[order], np.sort(scores)[::-1])
    ranked = RankedQueries.of(scores)
    np.testing.assert_array_equal(ranked.scores, scores[ranked.order])
    np.testing.assert_array_equal(ranked.scores, np.sort(scores)[::-1])


def test_without_queries_there_is_one_list() -> None:
    ranked = RankedQueries.of(np.array([0.1, 0.9, 0.5]))
    assert ranked.n_queries == 1
    assert ranked.order.tolist() == [1, 2, 0]


def test_a_ranked_list_cannot_be_changed() -> None:
    ranked = RankedList.of(np.array([0, 1]), np.array([0.0, 1.0]))
    with pytest.raises(AttributeError):
        ranked.scores = np.zeros(2)
