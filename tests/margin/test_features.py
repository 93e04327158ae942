"""Scaling of columns, kernels as features, the draw of landmarks."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

import toprank
from toprank.base import TrainingData
from toprank.margin import base, matrices
from toprank.margin.base import KernelMap, choose_landmarks
from toprank.margin.matrices import fit_scaler, scale_rows


def test_moments_equal_those_of_copies(rng: np.random.Generator, monkeypatch) -> None:
    X = rng.normal(size=(50, 4)) * [1, 1e-5, 1e7, 0] + [0, 3, -1e7, 5]
    X[rng.random(X.shape) < 0.3] = 0
    weight = rng.integers(0, 3, 50).astype(float)
    copies = np.repeat(X, weight.astype(int), axis=0)
    monkeypatch.setattr(matrices, "_BLOCK", 30)  # several blocks
    for rows in (X, X.astype(np.float64, order="F"), sparse.csr_matrix(X)):
        scaler = fit_scaler(rows[weight > 0], weight[weight > 0])
        np.testing.assert_allclose(scaler.mean_, copies.mean(axis=0), rtol=1e-10)
        np.testing.assert_allclose(scaler.var_, copies.var(axis=0), rtol=1e-8)


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
    off = scale_rows(fit_scaler(X, enabled=False), X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(off, X)
    assert off is not X


def test_constant_columns_do_not_blow_up() -> None:
    X = np.full((1000, 2), 0.1)
    X[:, 1] = 1e15
    scaled = scale_rows(fit_scaler(X), X)
    assert np.abs(scaled).max() <= 1.0


@pytest.mark.parametrize("kernel", base.KERNELS)
def test_features_of_all_rows_reproduce_the_kernel(kernel: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(60, 3))
    scaler = fit_scaler(X)
    kernel_map = KernelMap.of(data_of(X, X[:, 0] > 0), scaler, kernel, random_state=0)
    features = kernel_map.transform(X)
    exact = kernel_map.function(X, scale_rows(scaler, X))
    np.testing.assert_allclose(features @ features.T, exact, atol=1e-6)
    rows = sparse.csr_matrix(X)
    plain = fit_scaler(rows, enabled=False)
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
    with pytest.raises(ValueError, match="OneHotEncoder.*before it in a Pipeline"):
        model.fit(pd.DataFrame({"country": ["NL", "DE"] * 20, "amount": X[:, 0]}), y)
    X[3, 1] = np.nan
    for rows in (X, pd.DataFrame(X, columns=["a", "b"]), sparse.csr_matrix(X)):
        with pytest.raises(ValueError, match=f"NaN.*{name}.*SimpleImputer.*Pipeline"):
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
