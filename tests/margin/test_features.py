"""Scaling of columns, kernels as features, the draw of landmarks."""

from __future__ import annotations

import pkgutil
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

import toprank
from toprank.base import TrainingData
from toprank.margin import base, matrices
from toprank.margin.base import KernelMap, choose_landmarks
from toprank.margin.matrices import fit_scaler, scale_rows
from toprank.shortlisting.reasons import contributions


def test_moments_equal_those_of_copies(rng: np.random.Generator, monkeypatch) -> None:
    X = rng.normal(size=(50, 4)) * [1, 1e-5, 1e7, 0] + [0, 3, -1e7, 5]
    X[rng.random(X.shape) < 0.3] = 0
    weight = rng.integers(0, 3, 50).astype(float)
    copies = np.repeat(X, weight.astype(int), axis=0)
    monkeypatch.setattr(matrices, "_BLOCK", 30)  # several blocks
    for rows in (X, X.astype(np.float64, order="F"), sparse.csr_matrix(X)):
        scaler = fit_scaler(rows[weight > 0], weight[weight > 0])
        means = np.zeros(4) if sparse.issparse(rows) else copies.mean(axis=0)
        np.testing.assert_allclose(scaler.centre, means, rtol=1e-10)
        np.testing.assert_allclose(scaler.deviation, copies.std(axis=0), rtol=1e-8, atol=1e-12)


def data_of(X, positive) -> TrainingData:
    return TrainingData(X, np.asarray(positive, dtype=float), None, None)


def test_scaling_equals_scikit_learn(rng: np.random.Generator) -> None:
    X = rng.normal(size=(40, 3)) * [1, 100, 1e-3] + [5, 0, 1]
    np.testing.assert_allclose(
        scale_rows(fit_scaler(X), X), StandardScaler().fit_transform(X), atol=1e-12
    )
    rows = sparse.csr_matrix(np.where(np.abs(X) < 1, 0, X))
    expected = StandardScaler(with_mean=False).fit_transform(rows)
    scaled = scale_rows(fit_scaler(rows), rows)
    np.testing.assert_allclose(scaled.toarray(), expected.toarray())
    single = scale_rows(fit_scaler(X.astype(np.float32)), X.astype(np.float32))
    assert single.dtype == np.float64
    before = X.copy()
    off = scale_rows(fit_scaler(X, scale=False), X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(off, X)
    assert off is not X


def test_constant_columns_do_not_blow_up() -> None:
    X = np.full((1000, 2), 0.1)
    X[:, 1] = 1e15
    scaled = scale_rows(fit_scaler(X), X)
    assert np.abs(scaled).max() <= 1.0


MARGIN = [
    toprank.LogisticRanker(),
    toprank.RankSVM(),
    toprank.RankSVM("rbf", random_state=0),
    toprank.RankLS(),
    toprank.KernelLogisticRanker(random_state=0),
    toprank.PartialAUCSVM((0, 0.3)),
    toprank.PartialAUCRanker((0, 0.3), random_state=0),
    toprank.PartialAUCRanker((0, 0.3), solver="pegasos", random_state=0),
]
each_margin_ranker = pytest.mark.parametrize("ranker", MARGIN, ids=lambda r: type(r).__name__)


def rows_with(unit: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 4 == 0
    X[y] += 1.5
    X[:, 0] *= unit
    return X, y


@each_margin_ranker
@pytest.mark.parametrize("unit", [1e37, 1e-300])
def test_units_near_the_ends_of_the_floats_do_not_matter(ranker, unit) -> None:
    X, y = rows_with(1.0)
    odd, _ = rows_with(unit)
    plain, other = clone(ranker).fit(X, y), clone(ranker).fit(odd, y)
    assert other.score(odd, y) == pytest.approx(plain.score(X, y), abs=2e-3)


@each_margin_ranker
@pytest.mark.parametrize("cell", [1e15, -1e37])
def test_one_absurd_cell_is_cut_off_and_said(ranker, cell) -> None:
    X, y = rows_with(1.0)
    usual = clone(ranker).fit(X, y).score(X, y)
    X[3, 1] = cell
    with pytest.warns(UserWarning, match="absurdly large cells .*x1 hold"):
        model = clone(ranker).fit(X, y)
    assert model.score(X, y) > usual - 0.03
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    if hasattr(model, "coef_"):
        cut = np.clip(X, *model.limits_)
        np.testing.assert_allclose(scores, cut @ model.coef_ - model.offset_, atol=1e-9)
        clean, _ = rows_with(1.0)
        assert not hasattr(model.fit(clean, y), "limits_")


def test_cut_off_cells_go_with_the_model(tmp_path) -> None:
    X, y = rows_with(1.0)
    linear = toprank.RankSVM(scale="robust").fit(X, y)
    paths = toprank.PartialAUCRanker(scale="robust", embedding="tree_path", random_state=0).fit(
        X, y
    )
    far = 1e6 * X
    for model in (linear, paths, toprank.RankSVM("rbf", scale="robust", random_state=0).fit(X, y)):
        toprank.save(model, tmp_path / "model")
        again = toprank.load(tmp_path / "model")
        np.testing.assert_array_equal(again.decision_function(far), model.decision_function(far))
    parts = contributions(linear, far, background=X).to_numpy()
    centre = contributions(linear, X[:1], background=X).to_numpy().sum()
    whole = linear.decision_function(far) - linear.decision_function(X[:1])
    np.testing.assert_allclose(parts.sum(axis=1) - centre, whole, atol=1e-9)


def test_what_cannot_be_scaled_is_told() -> None:
    X, y = rows_with(1e-310)
    with pytest.warns(UserWarning, match="too small to be told apart have no say: x0"):
        toprank.RankSVM().fit(X, y)


def test_cut_off_cells_of_sparse_rows_and_weights_as_copies(rng: np.random.Generator) -> None:
    X = rng.normal(size=(100, 2)) * (rng.random((100, 2)) < 0.3)
    X[7, 1] = 1e20
    weight = rng.integers(1, 4, 100).astype(float)
    copies = np.repeat(X, weight.astype(int), axis=0)
    dense, thin = fit_scaler(X, weight), fit_scaler(sparse.csr_matrix(X), weight)
    for scaler in (dense, thin, fit_scaler(copies)):
        assert scaler.cut.tolist() == [False, True]
        np.testing.assert_allclose(scaler.deviation, dense.deviation, rtol=1e-9)
    largest = np.abs(np.delete(X[:, 1], 7)).max()
    assert 0 < dense.upper[1] <= largest
    scaled = scale_rows(thin, sparse.csr_matrix(X)).toarray()
    np.testing.assert_allclose(scaled, np.clip(X, dense.lower, dense.upper) / thin.spread)


def test_robust_scaling_cuts_off_long_tails(rng: np.random.Generator) -> None:
    X = np.exp(3 * rng.normal(size=(500, 1)))
    distance = np.abs(X - np.median(X))
    reach = 5 * np.quantile(distance, 0.95)
    scaler = fit_scaler(X, scale="robust")
    assert scaler.upper[0] == pytest.approx(np.median(X) + reach, rel=0.05)
    assert scaler.deviation[0] < fit_scaler(X).deviation[0]
    model = toprank.RankSVM(scale="robust").fit(X, X[:, 0] > 1)
    assert model.score(X, X[:, 0] > 1) > 0.9


@pytest.mark.parametrize("kernel", base.KERNELS)
def test_features_of_all_rows_reproduce_the_kernel(kernel: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 3))
    scaler = fit_scaler(X)
    kernel_map = KernelMap.of(data_of(X, X[:, 0] > 0), scaler, kernel, random_state=0)
    features = kernel_map.transform(X)
    exact = kernel_map.function(X, scale_rows(scaler, X))
    np.testing.assert_allclose(features @ features.T, exact, atol=1e-6)
    rows = sparse.csr_matrix(X)
    plain = fit_scaler(rows, scale=False)
    of_rows = KernelMap.of(data_of(rows, X[:, 0] > 0), plain, kernel, random_state=0)
    features = of_rows.transform(rows)
    np.testing.assert_allclose(features @ features.T, of_rows.function(X, X), atol=1e-6)


def test_the_nystroem_kernel_is_exact_on_its_landmarks(rng: np.random.Generator) -> None:
    X = rng.normal(size=(500, 4))
    data = data_of(X, X[:, 0] > 1)
    kernel_map = KernelMap.of(data, fit_scaler(X), exact_rows=0, n_components=40, random_state=0)
    Z = scale_rows(fit_scaler(X), X)
    chosen = [int(np.flatnonzero((row == Z).all(axis=1))[0]) for row in kernel_map.landmarks]
    features = kernel_map.transform(X)
    exact = rbf_kernel(Z, gamma=kernel_map.function.gamma)
    np.testing.assert_allclose(features[chosen] @ features.T, exact[chosen], atol=1e-6)
    assert kernel_map.function.gamma == pytest.approx(1 / 4)  # four columns of variance 1


def test_many_features_are_kept_in_single_precision(monkeypatch) -> None:
    X = np.random.default_rng(0).normal(size=(50, 2))
    kernel_map = KernelMap.of(data_of(X, X[:, 0] > 0), fit_scaler(X), random_state=0)
    double = kernel_map.transform(X)
    monkeypatch.setattr(base, "_DOUBLE_LIMIT", 100)
    single = kernel_map.transform(X)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, rtol=1e-6, atol=1e-7)


def test_landmarks_ignore_copies_and_order_and_balance_the_classes(
    rng: np.random.Generator,
) -> None:
    X = np.round(rng.normal(size=(3000, 3)), 2)
    positive = rng.random(3000) < 0.02
    settings = {"n_components": 50, "exact_rows": 100, "random_state": 5}
    chosen = choose_landmarks(X, positive, **settings)
    assert len(chosen) == 50
    assert positive[chosen].sum() == 25
    order = np.concatenate([rng.permutation(3000), rng.integers(0, 3000, 2000)])
    again = order[choose_landmarks(X[order], positive[order], **settings)]
    np.testing.assert_array_equal(X[again], X[chosen])
    as_rows = choose_landmarks(sparse.csr_matrix(X), positive, **settings)
    np.testing.assert_array_equal(as_rows, chosen)
    other = choose_landmarks(X, positive, **{**settings, "random_state": 6})
    assert not np.array_equal(other, chosen)
    few = choose_landmarks(X, np.arange(3000) < 3, **settings)
    assert (few < 3).sum() == 3
    assert len(few) == 50


def test_a_minus_zero_is_a_zero() -> None:
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 2.0]])
    assert len(choose_landmarks(X, np.array([True, False, False]), random_state=0)) == 2


def test_a_kernel_of_zeros_is_refused() -> None:
    X = np.zeros((4, 2))
    with pytest.raises(ValueError, match="zero on all rows"):
        KernelMap.of(data_of(X, np.arange(4) > 1), fit_scaler(X), "linear")


@pytest.mark.parametrize("name", sorted(toprank.margin.__all__))
def test_missing_values_and_categories_name_the_step_to_put_before(name: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    model = getattr(toprank, name)()
    kind = type(model).__name__  # a preset makes an estimator of another name
    with pytest.raises(ValueError, match="OneHotEncoder.*before it in a Pipeline"):
        model.fit(pd.DataFrame({"country": ["NL", "DE"] * 20, "amount": X[:, 0]}), y)
    X[3, 1] = np.nan
    for rows in (X, pd.DataFrame(X, columns=["a", "b"]), sparse.csr_matrix(X)):
        with pytest.raises(ValueError, match=f"NaN.*{kind}.*SimpleImputer.*Pipeline"):
            model.fit(rows, y)


@pytest.mark.parametrize(
    ("name", "module"), [("RankSVM", "ranksvm"), ("KernelLogisticRanker", "logistic")]
)
def test_progress_when_asked(name: str, module: str, capsys, monkeypatch) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    steps = []

    @contextmanager
    def progress(total, label, enabled):
        yield lambda: steps.append(enabled)

    getattr(toprank, name)().fit(X, y)
    assert capsys.readouterr() == ("", "")  # quiet by default
    monkeypatch.setattr(f"toprank.margin.{module}.progress", progress)
    model = getattr(toprank, name)(verbose=1).fit(X, y)
    assert steps == [1] * model.n_iter_


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("RankSVM", {}),
        ("RankSVM", {"kernel": "rbf", "C": 1e-3, "n_components": 80, "exact_rows": 0}),
        ("RankLS", {"kernel": "rbf", "n_components": 80, "exact_rows": 0}),
        ("KernelLogisticRanker", {"n_components": 80, "exact_rows": 0}),
    ],
)
def test_the_number_of_threads_does_not_change_the_model(name: str, parameters: dict) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(10_000, 6))  # several blocks, and several panels of columns
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=10_000) > 3).astype(int)
    fitted = [
        getattr(toprank, name)(**parameters, random_state=0, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 3, None, -1)
    ]
    first = fitted[0]
    for other in fitted[1:]:
        assert other.offset_ == first.offset_
        if parameters:
            np.testing.assert_array_equal(other.expansion_.dual_coef, first.expansion_.dual_coef)
        else:
            np.testing.assert_array_equal(other.coef_, first.coef_)


def test_threads_of_linear_algebra_are_restored_after_fits_that_overlap() -> None:
    def blas() -> list[int]:
        return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]

    before = blas()
    outer, inner = matrices.fit_threads(1), matrices.fit_threads(2)
    outer.__enter__()
    inner.__enter__()
    assert set(blas()) == {1}
    outer.__exit__(None, None, None)  # the first to start is the first to end
    assert set(blas()) == {1}
    inner.__exit__(None, None, None)
    assert blas() == before


def test_columns_of_zeros_and_ones_are_not_divided(rng) -> None:
    X = np.column_stack([rng.normal(size=90), rng.random(90) < 0.05, rng.random(90) < 0.5]).astype(
        float
    )
    for rows in (X, sparse.csr_matrix(X)):
        scaler = fit_scaler(rows)
        assert scaler.spread.tolist() == [pytest.approx(X[:, 0].std()), 1.0, 1.0]
        np.testing.assert_allclose(scaler.deviation, X.std(axis=0))
    assert fit_scaler(2.0 * X).spread[1] == pytest.approx(2.0 * X[:, 1].std())


def test_rare_categories_are_not_the_loudest(rng) -> None:
    """A hundred rare 0/1 columns of noise hide one that matters if each is blown up to unit variance."""
    X = np.hstack([rng.normal(size=(600, 1)), rng.random((600, 100)) < 0.01]).astype(float)
    y = (X[:, 0] + rng.normal(size=600) > 1.5).astype(int)
    model = toprank.LogisticRanker().fit(X[:300], y[:300])
    alone = toprank.LogisticRanker().fit(X[:300, :1], y[:300])
    lost = alone.score(X[300:, :1], y[300:]) - model.score(X[300:], y[300:])
    assert lost < 0.05


@pytest.mark.parametrize(
    ("name", "solver"),
    [
        ("LogisticRanker", "logistic.LogisticRegression.fit"),
        ("PartialAUCSVM", "partial_auc.fit_range"),
        ("PartialAUCRanker", "partial_auc.fit_range"),
    ],
)
def test_linear_algebra_has_one_thread_while_solving(name, solver, rng, monkeypatch) -> None:
    """Two threads of BLAS took ten times the processor time of one on a few hundred rows."""
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] + rng.normal(size=80) > 0.5).astype(int)
    seen, target = set(), f"toprank.margin.{solver}"
    module, attribute = target.rsplit(".", 1)
    original = getattr(pkgutil.resolve_name(module), attribute)

    def solve(*arguments, **options):
        seen.update(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas")
        return original(*arguments, **options)

    monkeypatch.setattr(target, solve)
    with threadpool_limits(2, user_api="blas"):
        getattr(toprank, name)().fit(X, y)
    assert seen == {1}
