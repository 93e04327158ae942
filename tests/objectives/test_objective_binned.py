"""Gradients from histograms against the exact ones, on one worker and on three."""

from __future__ import annotations

import numpy as np
import pytest
from cases import PAIRS, SMOOTH, make

from toprank import objectives
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


@pytest.mark.parametrize("name", ["ap_sigmoid", "pairwise_logistic", "lambda_auc", "ap_softmax"])
@pytest.mark.parametrize("for_trees", [False, True])
def test_three_workers_are_one(rng, name, for_trees):
    """The workers run one after the other; `combine` hands them the result of a first run."""
    objective = objectives.get(name)
    y, scores, _ = make(rng, 900, objective)
    parts = np.array_split(rng.permutation(900), 3)
    parts.append(np.array([], dtype=int))  # a worker without rows
    whole = binned_gradient_hessian(objective, y, scores, n_points=256, for_trees=for_trees)

    def run(part, combine):
        return binned_gradient_hessian(
            objective, y[part], scores[part], n_points=256, for_trees=for_trees, combine=combine
        )

    combined: list[np.ndarray] = []
    reduce = {"sum": np.sum, "min": np.min, "max": np.max}
    for how in ("min", "max", "sum"):
        gathered = [_array_of_call(len(combined), combined, part, run) for part in parts]
        assert {asked for asked, _ in gathered} == {how}
        combined.append(reduce[how]([array for _, array in gathered], axis=0))
    for part in parts:
        counter = iter(range(3))
        gradient, hessian = run(part, lambda array, how, counter=counter: combined[next(counter)])
        np.testing.assert_allclose(gradient, whole[0][part], atol=1e-12 * np.abs(whole[0]).max())
        np.testing.assert_allclose(hessian, whole[1][part], atol=1e-12 * whole[1].max())


def _array_of_call(number, combined, part, run):
    """What a worker hands to its n-th call of `combine`, and how it wants it combined."""
    seen = []

    def combine(array, how):
        if len(seen) == number:
            seen.append((how, array))
            raise InterruptedError
        seen.append(None)
        return combined[len(seen) - 1]

    with pytest.raises(InterruptedError):
        run(part, combine)
    return seen[-1]


def test_scaled_for_trees_like_the_exact_form(rng):
    objective = objectives.get("ap_sigmoid")
    y, scores, _ = make(rng, 2000, objective)
    exact = objective.scaled_gradient_hessian(objectives.ScoredList.of(y, scores))
    binned = binned_gradient_hessian(objective, y, scores, for_trees=True)
    for ours, theirs in zip(binned, exact, strict=True):
        assert np.abs(ours - theirs).max() < 1e-5 * np.abs(theirs).max()


def test_too_many_grades():
    with pytest.raises(ValueError, match="labels 0, 1, ..., 255"):
        binned_gradient_hessian(objectives.get("pairwise_logistic"), [0, 300], [0.0, 1.0])
