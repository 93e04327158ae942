"""The parts of a fit that one process, a stream of files and a cluster share: boosters, weights, threshold."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from copy import copy
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from toprank import objectives
from toprank.base import TrainingData, threshold_for_weight
from toprank.boosting.checkpoint import Checkpoint, fingerprint
from toprank.boosting.engine import HeldOut, Rows, Validation, boost
from toprank.boosting.foreign_trees import linear_trees
from toprank.boosting.settings import FOREST_SHARE, MANY_ROWS, Callback, Settings
from toprank.boosting.xgboost_helpers import predict_margin, quantile_matrix, require_xgboost
from toprank.exchange import ALONE, Exchange
from toprank.folds import QUARTERS, Split, SplitKeys, inner_splits
from toprank.parallel import thread_count
from toprank.stopping import ValidationMetric

__all__ = [
    "booster_weights",
    "checkpoints",
    "companions",
    "fit_boosters",
    "settings_objectives",
    "warn_if_constant",
]

SEARCH_RATE, SEARCH_ROUNDS, SEARCH_PATIENCE = 0.2, 500, 60
SLOW_ROWS = 2_000  # below, half that rate
MOST_ROUNDS = 900  # of the seeds of one objective together
# of the trees' lift above chance that a linear model must reach to be averaged with them
LINEAR_LIFT = 0.9
# XGBoost's threads have little to share out in a table of fewer cells, and much to wait for
FEW_CELLS = 1_000_000

# Given a ranker that says how many threads there are, and a seed: a booster that is averaged with the others.
Companion = Callable[[Any, int], Any]
# Given such a ranker, and callbacks: a booster and its validation values.
Boost = Callable[[Any, Sequence[Callback]], tuple[Any, list[float]]]


def settings_objectives(settings: Settings) -> list[objectives.Objective]:
    """Return the objective of each booster."""
    return [objectives.get(name) for name in settings.objectives for _ in range(settings.n_seeds)]


def checkpoints(
    folder: str | os.PathLike[str] | None,
    ranker: Any,
    settings: Settings,
    data: TrainingData,
    exchange: Exchange = ALONE,
) -> Callable[[int], Checkpoint | None]:
    """Return the checkpoint of the k-th booster of a fit, if there is a folder for them."""
    if folder is None:
        return lambda number: None
    weights = data.weights
    figures = np.array([len(data.y), weights.sum(), weights @ data.y, weights @ data.y**2], float)
    figures = exchange.combine(figures, "sum")
    fit = fingerprint(
        ranker, settings, [float(f"{f:.10g}") for f in figures], ranker.columns_.names
    )
    return lambda number: Checkpoint(str(Path(folder)), number, fit, exchange=exchange)


def choose_splits(data: TrainingData, keys: SplitKeys, seed: int) -> list[Split]:
    """Return the splits that rounds are chosen by: three folds, or of many rows one quarter to judge by."""
    many = len(data.y) >= MANY_ROWS
    splits = inner_splits(data.y > 0, keys, n_splits=QUARTERS if many else 3, random_state=seed)
    return splits[:1] if many else splits


def choose_rounds(
    ranker: Any,
    data: TrainingData,
    splits: Sequence[Split],
    settings: Settings,
    metric: ValidationMetric,
    graded: bool,
) -> tuple[Settings, float]:
    """Return the settings with the rounds, and a learning rate that suits them, that inner validation likes.

    How long to boost depends on how noisy the labels are, which no count of rows or positives tells: the
    first objective is boosted quickly on part of the rows and measured on the others after each round. The
    best round of the mean curve is gone to in twice as many steps of half the size, unless it is late. The
    more rounds, the fewer seeds. Also return the metric at that round.
    """
    seed = int(check_random_state(ranker.random_state).randint(2**31 - 1))
    rate = ranker.learning_rate or SEARCH_RATE / (1 + (len(data.y) < SLOW_ROWS))
    trial = replace(settings, n_estimators=SEARCH_ROUNDS, learning_rate=rate)
    objective = settings_objectives(settings)[0]

    def search(k: int, ranker: Any, callbacks: Sequence[Callback]) -> tuple[Any, list[float]]:
        held_out = Validation(data.rows(splits[k].test), metric, graded, SEARCH_PATIENCE)
        return boost(
            ranker, data.rows(splits[k].train), objective, trial, seed, validation=held_out,
            callbacks=callbacks, label=f"choosing the rounds, {k + 1} of {len(splits)}",
        )  # fmt: skip

    tasks = [partial(search, k) for k in range(len(splits))]
    curves = [curve for _, curve in run_boosters(ranker, tasks, data)]
    rounds, value = best_round(mean_curve(curves), metric.greater_is_better)
    if ranker.learning_rate is None and rounds <= SEARCH_ROUNDS // 2:
        rounds, rate = 2 * rounds, rate / 2
    n_seeds = ranker.n_seeds or int(np.clip(MOST_ROUNDS // rounds, 1, settings.n_seeds))
    chosen = replace(settings, n_estimators=rounds, learning_rate=rate, n_seeds=n_seeds)
    if settings.linear_share and ranker.linear_share is None:
        parts = [(data.rows(split.train), data.rows(split.test)) for split in splits]
        linear, chance = np.mean([linear_value(ranker, *part, metric) for part in parts], axis=0)
        lift = (linear - chance) / (value - chance) if value != chance else 1.0
        chosen = replace(chosen, linear_share=settings.linear_share * (lift >= LINEAR_LIFT))
    return chosen, value


def linear_value(
    ranker: Any, train: TrainingData, test: TrainingData, metric: ValidationMetric
) -> tuple[float, float]:
    """Return a metric of held-out rows by the linear model, and by chance."""
    margin = predict_margin(linear_trees(ranker, train), test.X)
    known = (test.sample_weight, test.qid)
    return metric(test.y, margin, *known), metric(test.y, np.zeros(len(test.y)), *known)


def run_boosters(
    ranker: Any, tasks: Sequence[Boost], data: TrainingData
) -> list[tuple[Any, list[float]]]:
    """Boost several times: side by side on a small table, or else each with all threads.

    Side by side, Ctrl-C ends those that are running, which keep the rounds they have done, as it does one
    after the other. Who wants to watch (`verbose`) sees one after the other.
    """
    threads = thread_count(ranker.n_jobs)
    small = not isinstance(data.X, Rows) and np.prod(data.X.shape) < FEW_CELLS
    if not small or ranker.verbose or min(threads, len(tasks)) == 1:
        return [task(ranker, ()) for task in tasks]
    own = copy(ranker)
    own.n_jobs = max(threads // len(tasks), 1)
    return _side_by_side(own, tasks, min(threads, len(tasks)))


def _side_by_side(
    ranker: Any, tasks: Sequence[Boost], at_once: int
) -> list[tuple[Any, list[float]]]:
    stop = threading.Event()
    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(task, ranker, [lambda _: stop.is_set()]) for task in tasks]
        try:
            wait(futures)
        except KeyboardInterrupt:
            stop.set()
            warnings.warn("interrupted: keeping the rounds done so far", stacklevel=5)
        return [future.result() for future in futures]


def mean_curve(curves: Sequence[Sequence[float]]) -> np.ndarray:
    """Return the mean over splits of a metric after each round.

    One that stopped early keeps its last value from there on, so that no round after its end looks better
    than it would have been.
    """
    longest = max(map(len, curves))
    return np.mean([[*c, *[c[-1]] * (longest - len(c))] for c in curves], axis=0)


def best_round(curve: np.ndarray, greater_is_better: bool = True) -> tuple[int, float]:
    """Return the round, from 1, at which a curve smoothed over a tenth of its length is best, and its value."""
    width = 2 * (len(curve) // 20) + 1
    padded = np.pad(curve, width // 2, mode="edge")
    smooth = np.convolve(padded, np.full(width, 1 / width), mode="valid")
    best = int(np.argmax(smooth if greater_is_better else -smooth))
    return best + 1, float(smooth[best])


def booster_weights(
    settings: Settings,
    margins: np.ndarray,
    weights: np.ndarray,
    exchange: Exchange = ALONE,
) -> np.ndarray:
    """Return the weight of each booster in the score, in units of the first objective's scores.

    The boosters of one objective count alike. Objectives differ in the scale of their scores, so their
    means are brought to one standard deviation over the training rows. `margins` has a row for each
    booster.
    """
    n_kinds, n_seeds = len(settings.objectives), settings.n_seeds
    shares = np.full(n_kinds, 1.0 / n_kinds)
    sizes = np.full(n_kinds, n_seeds)
    for present, share in (
        (settings.random_trees > 0, FOREST_SHARE),
        (settings.linear_share > 0, settings.linear_share),
    ):
        if present:
            shares = np.append((1 - share) * shares, share)
            sizes = np.append(sizes, 1)
    if len(shares) == 1:
        return np.full(n_seeds, 1.0 / n_seeds)
    means = [part.mean(axis=0) for part in np.split(margins, np.cumsum(sizes)[:-1])]
    sums = exchange.combine(np.array([weights.sum(), *(weights @ mean for mean in means)]), "sum")
    centres = sums[1:] / sums[0]
    squares = [weights @ (mean - centre) ** 2 for mean, centre in zip(means, centres, strict=True)]
    spread = np.sqrt(exchange.combine(np.array(squares), "sum") / sums[0])
    scale = np.divide(spread[0] or 1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    return np.repeat(shares * scale / sizes, sizes)


def fit_boosters(
    ranker: Any,
    data: TrainingData,
    settings: Settings,
    *,
    score: Callable[[Sequence[Any]], np.ndarray],
    others: Sequence[Companion] = (),
    starts: Sequence[Any] = (),
    validation: Validation | HeldOut | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    whole: TrainingData | None = None,
) -> None:
    """Grow the boosters of a ranker whose columns and classes are known, weight them, set the threshold.

    Parameters
    ----------
    data : TrainingData
        The rows to boost on. On a cluster `data.X` are the `Rows` of one worker, and all of them call this
        at once.
    score : callable
        Returns the margins of the rows of `whole`, one row of the answer for each booster.
    others : sequence of callables
        The `companions` that the settings ask for.
    starts : sequence of xgboost.Booster
        Boosters to go on from, the companions last.
    whole : TrainingData, optional
        The rows that decide on weights and threshold, if they are others: with those that were held out.
    """
    whole = data if whole is None else whole
    exchange = data.X.exchange if isinstance(data.X, Rows) else ALONE
    kinds = settings_objectives(settings)
    starts = list(starts) or [None] * settings.n_boosters
    seeds = check_random_state(ranker.random_state).randint(2**31 - 1, size=settings.n_boosters)
    kept = checkpoints(checkpoint, ranker, settings, data, exchange)

    def task(k: int, ranker: Any, more: Sequence[Callback]) -> tuple[Any, list[float]]:
        return boost(
            ranker, data, kinds[k], settings, int(seeds[k]), validation=validation,
            start=starts[k], callbacks=[*callbacks, *more], checkpoint=kept(k + 1),
            label=f"boosting {kinds[k].name}, {k + 1} of {len(kinds)}",
        )  # fmt: skip

    def companion(k: int, ranker: Any, _: Sequence[Callback]) -> tuple[Any, list[float]]:
        return starts[k] or others[k - len(kinds)](ranker, int(seeds[k])), []

    tasks: list[Boost] = [partial(task, k) for k in range(len(kinds))]
    tasks += [partial(companion, len(kinds) + k) for k in range(len(others))]
    if callbacks or checkpoint is not None:  # which expect one booster after the other
        results = [task(ranker, ()) for task in tasks]
    else:
        results = run_boosters(ranker, tasks, data)
    ranker.boosters_ = [booster for booster, _ in results]
    for booster in ranker.boosters_:
        booster.set_param({"nthread": thread_count(ranker.n_jobs)})
    margins = score(ranker.boosters_)
    ranker.booster_weights_ = booster_weights(settings, margins, whole.weights, exchange)
    names = [kind.name for kind in kinds[:: settings.n_seeds]]
    ranker.chosen_ = asdict(settings) | {"objectives": names}
    ranker.n_estimators_ = ranker.boosters_[0].num_boosted_rounds()
    ranker.validation_scores_ = results[0][1]
    # of 4 bytes where the margins are
    raw_scores = ranker.booster_weights_.astype(margins.dtype) @ margins
    warn_if_constant(raw_scores, settings, exchange)
    ranker._forget_calibration()
    ranker.offset_ = _threshold(raw_scores, whole, exchange)


def warn_if_constant(scores: np.ndarray, settings: Settings, exchange: Exchange = ALONE) -> None:
    """Say so, and what may be the cause, when all rows of all workers have one score."""
    ends = np.array([-scores.min(initial=np.inf), scores.max(initial=-np.inf), len(scores)])
    lowest, highest, most = exchange.combine(ends, "max") * np.array([-1.0, 1.0, 1.0])
    if most > 1 and lowest == highest and exchange.rank == 0:
        warnings.warn(
            "all scores are equal: no tree found a split. There may be too few positives for "
            f"min_child_weight={settings.min_child_weight:.3g} (try a smaller one), the columns "
            "may hold nothing that tells positives from negatives, or the penalties are too strong",
            stacklevel=4,
        )


def _threshold(scores: np.ndarray, data: TrainingData, exchange: Exchange) -> float:
    """Return the cut that flags rows of the weight of all positives; only the first rows of the list travel.

    Rows whose score lies below twice that weight have no say, but for the one that comes next.
    """
    weight = data.sample_weight
    own = np.count_nonzero(data.y) if weight is None else weight @ (data.y > 0)
    total = float(exchange.combine(np.array([own], dtype=np.float64), "sum")[0])
    n_first = int(2 * total) + 3
    ones = np.broadcast_to(1.0, len(scores)) if weight is None else weight
    first = scores
    if weight is None and len(scores) > n_first:
        first = np.partition(scores, len(scores) - n_first)[-n_first:]
    whole = exchange.gather(np.stack((first, ones[: len(first)])))[0]
    if np.ptp(whole[0]) == 0:  # one tie group fills what was gathered
        whole = exchange.gather(np.stack((scores, ones)))[0]
    return threshold_for_weight(total, whole[0], whole[1])


# -- what is averaged with the boosters ---------------------------------------------------------------

ROWS_PER_LEAF = 2
MOST_LEVELS = 20  # of a random tree: in much deeper ones SHAP values lose all their digits


def companions(settings: Settings, rows: Callable[[int], TrainingData]) -> list[Companion]:
    """Return what makes the random forest and the linear model that the settings ask for, in this order.

    `rows` gives the rows that they learn from, or a sample of them, by a seed.
    """
    makers: list[Companion] = []
    if settings.random_trees:
        makers.append(
            lambda ranker, seed: random_trees(ranker, rows(seed), settings.random_trees, seed)
        )
    if settings.linear_share:
        makers.append(lambda ranker, seed: linear_trees(ranker, rows(seed)))
    return makers


def random_trees(ranker: Any, data: TrainingData, n_trees: int, seed: int) -> Any:
    """Grow deep trees on bootstrap samples, each split the best of a few random columns (Breiman 2001).

    A leaf holds the share of positives among its rows, less the share among all rows, over the variance
    of a label: the Newton step of the logistic loss from the base rate.

    Returns
    -------
    booster : xgboost.Booster
        Its margin is the mean of the trees.
    """
    random = np.random.default_rng(seed)
    chance = data.weights / data.weights.sum()
    n_rows = int(np.count_nonzero(chance))
    share = float(chance @ (data.y > 0))
    variance = share * (1 - share)
    gradient, hessian = share - (data.y > 0), variance
    n_columns = data.X.shape[1]
    parameters = {
        "objective": "reg:squarederror",
        "base_score": 0.0,
        "disable_default_eval_metric": True,
        "seed": seed,
        "eta": 1 / n_trees,
        "tree_method": "hist",
        "max_depth": MOST_LEVELS,
        "min_child_weight": ROWS_PER_LEAF * variance,
        "lambda": 1e-3 * variance,
        "colsample_bynode": min(max(np.sqrt(n_columns), 1.01) / n_columns, 1.0),
        "max_bin": ranker.max_bins,
        "device": ranker.device,
        "nthread": thread_count(ranker.n_jobs),
    }
    matrix = quantile_matrix(
        data.X, ranker.columns_, max_bin=ranker.max_bins, sample_weight=data.sample_weight,
        n_jobs=ranker.n_jobs,
    )  # fmt: skip
    booster = require_xgboost().Booster(parameters, [matrix])
    for number in range(n_trees):
        drawn = random.multinomial(n_rows, chance)
        booster.boost(
            matrix, number, grad=(drawn * gradient).astype(np.float32),
            hess=(drawn * hessian).astype(np.float32),
        )  # fmt: skip
    return booster
