"""KernelLogisticRanker against scikit-learn and a general optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from naive_margin import logistic_objective
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from toprank import KernelLogisticRanker, metrics
from toprank.margin import logistic, matrices
from toprank.margin.logistic import LogisticProblem, fit_logistic

KERNELS = {
    "rbf": lambda a, b: rbf_kernel(a, b, gamma=0.4),
    "laplacian": lambda a, b: laplacian_kernel(a, b, gamma=0.4),
    "poly": lambda a, b: polynomial_kernel(a, b, gamma=0.4, degree=2, coef0=0.5),
}


def draw(seed: int, n: int = 80, d: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=n) > 1).astype(float)
    return X, y, rng.integers(1, 4, n).astype(float)


def test_reaches_the_optimum_of_a_general_optimiser() -> None:
    X, y, weight = draw(0)
    fitted = fit_logistic(LogisticProblem(X, y, weight))
    best = optimize.minimize(
        logistic_objective, np.zeros(4), args=(X, y, weight), method="BFGS", options={"gtol": 1e-6}
    )
    np.testing.assert_allclose(np.append(fitted.coefficients, fitted.intercept), best.x, atol=1e-5)
    assert fitted.gradient_norm <= 1e-8


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_linear_kernel_equals_logistic_regression(C: float) -> None:
    X, y, weight = draw(1)
    peer = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, y, sample_weight=weight)
    model = KernelLogisticRanker("linear", C, scale=False).fit(X, y, weight)
    np.testing.assert_allclose(model.coef_, peer.coef_[0], rtol=1e-4, atol=1e-6)
    rows = KernelLogisticRanker("linear", C, scale=False).fit(sparse.csr_matrix(X), y, weight)
    np.testing.assert_allclose(rows.coef_, model.coef_, rtol=1e-7)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_exact_kernel_equals_logistic_regression_on_its_features(kernel: str, C: float) -> None:
    X, y, weight = draw(2)
    K = KERNELS[kernel](X, X)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-10 * values[-1]
    features = vectors[:, kept] * np.sqrt(values[kept])
    peer = LogisticRegression(C=C, tol=1e-10, max_iter=50_000, solver="newton-cholesky")
    expected = peer.fit(features, y, sample_weight=weight).decision_function(features)
    model = KernelLogisticRanker(kernel, C, gamma=0.4, degree=2, coef0=0.5, scale=False)
    scores = model.fit(X, y, weight).decision_function(X)
    np.testing.assert_allclose(scores - scores[0], expected - expected[0], atol=1e-5)
    # new rows are scored by the same kernel expansion
    Z = np.random.default_rng(9).normal(size=(7, X.shape[1]))
    raw = KERNELS[kernel](Z, model.expansion_.landmarks) @ model.expansion_.dual_coef
    np.testing.assert_allclose(model.decision_function(Z), raw - model.offset_, atol=1e-9)


def test_many_columns_go_through_conjugate_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, weight = draw(3, d=20)
    expected = fit_logistic(LogisticProblem(X, y, weight))
    monkeypatch.setattr(matrices, "EXPLICIT_COLUMNS", 5)
    iterated = fit_logistic(LogisticProblem(X, y, weight))
    np.testing.assert_allclose(iterated.coefficients, expected.coefficients, rtol=1e-6, atol=1e-8)


def test_a_first_guess_from_a_sample_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, weight = draw(4, n=2000)
    expected = fit_logistic(LogisticProblem(X, y, weight))
    monkeypatch.setattr(logistic, "_LARGE", 500)
    guessed = fit_logistic(LogisticProblem(X, y, weight))
    assert guessed.n_iter < expected.n_iter
    np.testing.assert_allclose(guessed.coefficients, expected.coefficients, rtol=1e-7)
    rare = np.zeros(2000)
    rare[0] = 1  # a sample may miss the only positive
    assert np.isfinite(fit_logistic(LogisticProblem(X, rare, weight)).coefficients).all()


def test_single_precision_features_give_the_same_model() -> None:
    X, y, weight = draw(5)
    single = fit_logistic(LogisticProblem(X.astype(np.float32), y, weight))
    expected = fit_logistic(LogisticProblem(X.astype(np.float32).astype(np.float64), y, weight))
    np.testing.assert_allclose(single.coefficients, expected.coefficients, rtol=1e-10)


def test_nystroem_is_close_to_the_exact_kernel() -> None:
    X, y, _ = draw(6, n=900)
    exact = KernelLogisticRanker(random_state=0).fit(X, y)
    near = KernelLogisticRanker(exact_rows=0, n_components=150, random_state=0).fit(X, y)
    assert len(near.expansion_.landmarks) == 150
    difference = near.decision_function(X) - exact.decision_function(X)
    assert np.abs(difference).mean() < 0.1 * exact.decision_function(X).std()
    assert metrics.roc_auc(y, near.decision_function(X)) == pytest.approx(
        metrics.roc_auc(y, exact.decision_function(X)), abs=0.01
    )
    assert exact.score(X, y) > KernelLogisticRanker("linear").fit(X, y).score(X, y) + 0.05


@pytest.mark.parametrize("exact_rows", [1000, 0])
def test_weights_are_copies_even_with_drawn_landmarks(exact_rows: int) -> None:
    X, y, weight = draw(7, n=200)
    weight -= 1
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    model = KernelLogisticRanker(exact_rows=exact_rows, n_components=20, random_state=3)
    weighted = model.fit(X, y, weight).decision_function(X)
    repeated = model.fit(X[copies], y[copies]).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6, atol=1e-6)


def test_separable_rows_stay_finite() -> None:
    X, y = np.array([[-1e6], [-1.0], [1.0], [1e6]]), np.array([0, 0, 1, 1])
    for kernel in ("linear", *KERNELS):
        for C in (1e-6, 1.0, 1e6):
            model = KernelLogisticRanker(kernel, C).fit(X, y)
            assert np.isfinite(model.decision_function(X)).all()


def test_bad_parameters_and_early_stops_are_told() -> None:
    X, y, _ = draw(8)
    with pytest.raises(ValueError, match="'C' parameter of KernelLogisticRanker must be"):
        KernelLogisticRanker(C=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="relative gradient"):
        KernelLogisticRanker(max_iter=1).fit(X, y)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_constant_columns_are_no_failure(kernel: str) -> None:
    X = np.full((50, 2), 0.3)
    model = KernelLogisticRanker(kernel, random_state=0).fit(X, np.arange(50) % 5 == 0)
    assert np.ptp(model.decision_function(X)) == 0.0
