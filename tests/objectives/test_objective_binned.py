"""Gradients from histograms against the exact ones, on one worker and on three."""

from __future__ import annotations

import numpy as np
import pytest
from cases import PAIRS, SMOOTH, make

from toprank import objectives
from toprank.boosting.gradients import TreeGradients
from toprank.exchange import ALONE, Exchange
from toprank.objectives.binned import binned_gradient_hessian

CLOSE = [c for c in SMOOTH if not getattr(c.objective, "surrogate", "")]


@pytest.mark.parametrize("case", CLOSE, ids=str)
@pytest.mark.parametrize("weights", [False, True])
def test_smooth_objectives_lose_next_to_nothing(rng, case, weights):
    y, scores, extra = make(rng, 3000, case.objective, weights=weights)
    exact = case.objective.gradient_hessian(y, scores, **extra)
    binned = binned_gradient_hessian(case.objective, y, scores, **extra)
    for ours, theirs in zip(binned, exact, strict=True):
        assert np.abs(ours - theirs).max() < 2e-5 * np.abs(theirs).max()


@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_every_objective_keeps_its_direction(rng, case):
    y, scores, _ = make(rng, 3000, case.objective)
    exact, _ = case.objective.gradient_hessian(y, scores)
    gradient, hessian = binned_gradient_hessian(case.objective, y, scores)
    cosine = exact @ gradient / (np.linalg.norm(exact) * np.linalg.norm(gradient))
    assert cosine > 0.999
    assert (hessian > 0).all()


class Played(Exchange):
    """One of several workers that run one after the other: it plays back what the others have said.

    A run that reaches the first thing not said yet notes what it would say, and is broken off.
    """

    def __init__(self, rank, size, said):
        self.rank, self.size, self.said, self.calls = rank, size, said, 0
        self.own = None

    def combine(self, array, how):
        self.calls += 1
        if self.calls > len(self.said):
            self.own = how, array
            raise InterruptedError
        return self.said[self.calls - 1].copy()


def play(run, parts):
    """Return what each worker gets from `run(part, exchange)`."""
    said = []
    reduce = {"sum": np.sum, "min": np.min, "max": np.max}
    while True:
        workers = [Played(rank, len(parts), said) for rank in range(len(parts))]
        try:
            return [run(part, worker) for part, worker in zip(parts, workers, strict=True)]
        except InterruptedError:
            for part, worker in zip(parts, workers, strict=True):
                worker.calls = 0
                with pytest.raises(InterruptedError):
                    run(part, worker)
        (how,) = {worker.own[0] for worker in workers}
        said.append(reduce[how]([worker.own[1] for worker in workers], axis=0))


@pytest.mark.parametrize("name", ["ap_sigmoid", "lambda_map", "lambda_auc", "ap_softmax"])
@pytest.mark.parametrize("weights", [False, True])
def test_workers_are_one(rng, name, weights):
    objective = objectives.get(name)
    y, scores, extra = make(rng, 900, objective, weights=weights)
    weight = extra.get("sample_weight")
    parts = [*np.array_split(rng.permutation(900), 3), np.array([], dtype=int)]  # one without rows

    def run(part, exchange):
        own = None if weight is None else weight[part]
        return binned_gradient_hessian(
            objective, y[part], scores[part], sample_weight=own, n_points=256, exact_rows=100,
            exact_positives=60, exchange=exchange,
        )  # fmt: skip

    whole = run(np.arange(900), ALONE)
    for part, (gradient, hessian) in zip(parts, play(run, parts), strict=True):
        np.testing.assert_allclose(gradient, whole[0][part], atol=1e-12 * np.abs(whole[0]).max())
        np.testing.assert_allclose(hessian, whole[1][part], atol=1e-12 * whole[1].max())


@pytest.mark.parametrize(
    "name", ["lambda_map", "lambda_mrr", "lambda_ndcg", "lambda_auc", "lambda_precision"]
)
@pytest.mark.parametrize("decimals", [1, 6])  # many ties, and hardly any
def test_positives_and_the_top_of_the_list_keep_their_ranks(rng, name, decimals):
    objective = objectives.get(name)
    y = (rng.random(40_000) < 0.01).astype(float)
    scores = (rng.normal(size=40_000) + 2 * y).round(decimals).astype(np.float32)
    exact = objective.gradient_hessian(y, scores)
    found = binned_gradient_hessian(objective, y, scores, exact_rows=4_000)
    for ours, theirs in zip(found, exact, strict=True):
        assert np.abs(ours - theirs).max() < 1e-5 * np.abs(theirs).max()
    blurred, _ = binned_gradient_hessian(objective, y, scores, exact_rows=0, exact_positives=0)
    assert np.abs(blurred - exact[0]).max() > np.abs(found[0] - exact[0]).max()


@pytest.mark.parametrize("rate", [0.002, 0.05])
@pytest.mark.parametrize(
    "name",
    ["lambda_map", "lambda_ndcg", "lambda_auc", "lambda_mauc", "lambda_precision", "ap_sigmoid"],
)
def test_long_lists_are_within_what_is_promised(rng, name, rate):
    """Where "auto" takes the histogram, on one machine and on a cluster, it is all but exact."""
    objective, n = objectives.get(name), 300_000
    y = (rng.random(n) < rate).astype(float)
    scores = (3 * (rng.normal(size=n) + y)).astype(np.float32)
    assert TreeGradients(objective, y).form == "binned"
    exact = objective.gradient_hessian(y, scores)[0]
    found = binned_gradient_hessian(objective, y, scores)[0]
    assert np.abs(found - exact).max() < 1e-5 * np.abs(exact).max()


@pytest.mark.parametrize(
    "objective",
    [
        objectives.get("lambda_precision", k=50_000),
        objectives.get("lambda_mauc", fpr=(0.0, 0.1)),
        objectives.get("pauc"),
    ],
    ids=str,
)
def test_edges_among_rows_that_are_not_told_apart_are_not_binned(rng, objective):
    y = (rng.random(300_000) < 0.01).astype(float)
    assert TreeGradients(objective, y).form == "exact"
    short = objectives.get("lambda_precision", k=100)
    assert TreeGradients(short, y).form == "binned"
    assert TreeGradients(short, y, np.full(len(y), 1e-3)).form == "exact"


@pytest.mark.parametrize("surrogate", ["hinge", "sigmoid", "logistic"])
@pytest.mark.parametrize("fpr", [(0.0, 0.1), (0.02, 0.07), (0.0, 1e-5)])
def test_partial_auc_ranks_only_what_it_needs(rng, surrogate, fpr):
    objective = objectives.get("pauc", a=fpr[0], b=fpr[1], surrogate=surrogate)
    y = (rng.random(20_000) < 0.01).astype(float)
    scores = (rng.normal(size=20_000) + 2 * y).round(2)  # ties at the edges of the range
    all_ranked = objective.gradient_hessian(y, scores, sample_weight=np.ones(20_000))
    for ours, theirs in zip(objective.gradient_hessian(y, scores), all_ranked, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9 * np.abs(theirs).max())
        assert ours.any()


def test_scaled_for_trees_like_the_exact_form(rng):
    objective = objectives.get("ap_sigmoid")
    y, scores, _ = make(rng, 2000, objective)
    exact = objective.scaled_gradient_hessian(objectives.ScoredList.of(y, scores))
    binned = binned_gradient_hessian(objective, y, scores, for_trees=True)
    for ours, theirs in zip(binned, exact, strict=True):
        assert np.abs(ours - theirs).max() < 1e-5 * np.abs(theirs).max()


def test_too_many_grades():
    with pytest.raises(ValueError, match="labels 0, 1, ..., 254"):
        binned_gradient_hessian(objectives.get("pairwise_logistic"), [0, 300], [0.0, 1.0])
