"""RankSVM and the pair sums beneath it, against pairs in lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_margin import bent_hinge, laplacian_of_pairs, pair_list, rank_svm_objective
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from toprank import RankSVM, datasets, metrics
from toprank.margin import matrices, ranksvm
from toprank.margin.ranksvm import GradedPairs, PairProblem, solve

BENDS = [np.inf, 2.0, 0.3, 1e-3]
POWER = {"hinge": 1, "squared_hinge": 2}


def draw(
    seed: int, n: int = 60, levels: int = 3, n_queries: int = 4, d: int = 5
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = rng.integers(0, levels, n).astype(float)
    X[:, 0] += 0.5 * y
    return X, y, rng.integers(0, n_queries, n), rng.integers(1, 4, n).astype(float)


def pair_differences(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, qid: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Differences as a two-class problem: half of them turned round."""
    higher, lower, pair_weight = pair_list(y, weight, qid)
    sign = np.where(np.arange(len(higher)) % 2 == 0, 1.0, -1.0)
    return sign[:, None] * (X[higher] - X[lower]), sign, pair_weight


# -- sums over pairs -----------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 4),  # label
            st.integers(0, 3),  # query
            st.sampled_from([-3.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 7.0]),  # score: many ties
            st.sampled_from([0.5, 1.0, 2.0, 3.0]),  # weight
        ),
        min_size=2,
        max_size=40,
    ),
    bend=st.sampled_from(BENDS),
    stretch=st.sampled_from([1e-6, 1.0, 1e3]),
)
def test_sums_over_pairs_equal_loops(rows, bend: float, stretch: float) -> None:
    y, qid, scores, weight = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    qid = np.unique(qid, return_inverse=True)[1]
    scores = stretch * scores
    pairs = GradedPairs.of(y, weight, qid)
    higher, lower, pair_weight = pair_list(y, weight, qid)
    assert pairs.total == pytest.approx(pair_weight.sum())
    sums = pairs.sums(scores, bend)
    r = (1 - scores[higher]) + scores[lower]
    loss, slope, curved = bent_hinge(r, bend)
    size = 1 + pair_weight.sum() * (1 + np.abs(scores).max()) ** 2
    assert sums.loss == pytest.approx(pair_weight @ loss, abs=1e-12 * size)
    assert sums.hinge == pytest.approx(pair_weight @ np.maximum(r, 0), abs=1e-12 * size)
    assert sums.derivative == pytest.approx(pair_weight @ slope, abs=1e-12 * size)
    gradient = np.zeros(len(y))
    np.add.at(gradient, higher, -pair_weight * slope)
    np.add.at(gradient, lower, pair_weight * slope)
    np.testing.assert_allclose(sums.gradient, gradient, atol=1e-12 * size)
    # a residual within rounding of a bend may fall on either side of it
    if not len(r) or min(np.abs(r).min(), np.abs(r - bend).min()) > 1e-9:
        L = laplacian_of_pairs(len(y), higher, lower, pair_weight * curved)
        v = np.random.default_rng(0).normal(size=len(y))
        np.testing.assert_allclose(sums.degree, np.diag(L), atol=1e-12 * size)
        np.testing.assert_allclose(pairs.hessian_product(sums, v), L @ v, atol=1e-12 * size)


@pytest.mark.parametrize("bend", BENDS)
@pytest.mark.parametrize("levels", [2, 3, 9])
def test_hessian_of_dense_sparse_and_single_precision_rows(
    bend: float, levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toprank.margin.ranksvm._BLOCK", 35)  # several blocks
    X, y, qid, weight = draw(0, levels=levels)
    X[np.abs(X) < 0.4] = 0
    X = X.astype(np.float32).astype(np.float64)
    pairs = GradedPairs.of(y, weight, qid)
    scores = X @ np.array([0.5, 0.3, -0.2, 0.1, 0.0])
    higher, lower, pair_weight = pair_list(y, weight, qid)
    curved = bent_hinge((1 - scores[higher]) + scores[lower], bend)[2]
    expected = X.T @ laplacian_of_pairs(len(y), higher, lower, pair_weight * curved) @ X
    sums = pairs.sums(scores, bend)
    for rows in (X, sparse.csr_matrix(X), X.astype(np.float32)):
        np.testing.assert_allclose(pairs.hessian(sums, rows), expected, atol=1e-10)


@pytest.mark.parametrize("bend", BENDS[:3])
def test_gradient_and_hessian_product_are_derivatives(
    bend: float, rng: np.random.Generator
) -> None:
    _, y, qid, weight = draw(1)
    pairs = GradedPairs.of(y, weight, qid)
    scores, v, h = rng.normal(size=len(y)), rng.normal(size=len(y)), 1e-6
    up, down = pairs.sums(scores + h * v, bend), pairs.sums(scores - h * v, bend)
    here = pairs.sums(scores, bend)
    assert (up.loss - down.loss) / (2 * h) == pytest.approx(here.gradient @ v, rel=1e-6)
    assert (up.hinge - down.hinge) / (2 * h) == pytest.approx(
        -sum(
            w * ((1 - scores[i] + scores[j]) > 0) * (v[i] - v[j])
            for i, j, w in zip(*pair_list(y, weight, qid), strict=True)
        ),
        rel=1e-6,
    )
    np.testing.assert_allclose(
        (up.gradient - down.gradient) / (2 * h),
        pairs.hessian_product(here, v),
        rtol=1e-5,
        atol=1e-5,
    )


def test_pairwise_gradients_sum_to_zero_and_ignore_the_order_of_rows(
    rng: np.random.Generator,
) -> None:
    _, y, qid, weight = draw(2, n=300)
    scores, order = np.round(rng.normal(size=300), 1), rng.permutation(300)
    sums = GradedPairs.of(y, weight, qid).sums(scores, np.inf)
    assert sums.gradient.sum() == pytest.approx(0, abs=1e-9)
    mixed = GradedPairs.of(y[order], weight[order], qid[order]).sums(scores[order], np.inf)
    assert mixed.loss == pytest.approx(sums.loss)
    np.testing.assert_allclose(mixed.gradient, sums.gradient[order], atol=1e-10)


# -- the optimum ---------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.001, 0.1, 10.0])
@pytest.mark.parametrize(("levels", "n_queries"), [(2, 1), (2, 5), (4, 3)])
def test_equals_linear_svc_on_all_pair_differences(
    loss: str, C: float, levels: int, n_queries: int
) -> None:
    X, y, qid, weight = draw(3, levels=levels, n_queries=n_queries)
    D, sign, pair_weight = pair_differences(X, y, weight, qid)
    peer = LinearSVC(
        loss=loss, C=C, fit_intercept=False, tol=1e-9, max_iter=1_000_000, dual=loss == "hinge"
    ).fit(D, sign, sample_weight=pair_weight)
    ranker = RankSVM(C=C, loss_scale="sum", loss=loss, scale=False, tol=1e-9)
    ranker.fit(X, y, sample_weight=weight, qid=qid)
    np.testing.assert_allclose(ranker.coef_, peer.coef_[0], rtol=1e-4, atol=1e-4)
    value = rank_svm_objective(ranker.coef_, X, y, weight, qid, C, POWER[loss])
    assert ranker.objective_ == pytest.approx(value, rel=1e-10)
    theirs = rank_svm_objective(peer.coef_[0], X, y, weight, qid, C, POWER[loss])
    assert ranker.objective_ - ranker.duality_gap_ <= theirs * (1 + 1e-10)
    assert ranker.duality_gap_ <= 1e-9 * ranker.objective_


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_certificate_holds_at_every_tolerance(loss: str) -> None:
    X, y, qid, weight = draw(4, n=120)
    pairs = GradedPairs.of(y, weight, qid)
    problem = PairProblem(X, pairs, 1.0, loss)
    best = solve(problem, tol=1e-9).objective
    for tol in (1.0, 1e-1, 1e-2, 1e-4):
        rough = solve(problem, tol=tol)
        assert rough.objective - rough.gap <= best * (1 + 1e-9)
        assert rough.objective >= best * (1 - 1e-9)
        assert rough.gap <= tol * rough.objective


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_many_columns_go_through_conjugate_gradients(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, qid, weight = draw(5, d=12)
    pairs = GradedPairs.of(y, weight, qid)
    problem = PairProblem(X, pairs, 0.1, loss)
    expected = solve(problem, tol=1e-7)
    monkeypatch.setattr(matrices, "EXPLICIT_COLUMNS", 3)
    iterated = solve(problem, tol=1e-7)
    assert iterated.gap <= 1e-7 * iterated.objective
    assert iterated.objective == pytest.approx(expected.objective, rel=2e-7)
    wide = np.random.default_rng(0).normal(size=(30, 1500))
    model = RankSVM(loss=loss).fit(wide, np.arange(30) % 2)
    assert metrics.roc_auc(np.arange(30) % 2, model.decision_function(wide)) == 1.0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_first_guess_from_a_sample_changes_nothing(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n_queries in (1, 300):
        X, y, qid, weight = draw(6, n=1500, n_queries=n_queries)
        pairs = GradedPairs.of(y, weight, np.unique(qid, return_inverse=True)[1])
        problem = PairProblem(X, pairs, 0.01, loss)
        expected = solve(problem, tol=1e-8)
        monkeypatch.setattr(ranksvm, "_LARGE", 300)
        guessed = solve(problem, tol=1e-8)
        monkeypatch.undo()
        assert guessed.objective == pytest.approx(expected.objective, rel=2e-8)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_exact_kernel_equals_linear_svc_on_its_features(loss: str) -> None:
    X, y, qid, _ = draw(7, n=40, levels=2, n_queries=2)
    weight = np.ones(len(y))
    C, gamma = 0.5, 0.3
    ranker = RankSVM("rbf", C, loss_scale="sum", loss=loss, gamma=gamma, scale=False, tol=1e-9)
    ranker.fit(X, y, qid=qid)
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=gamma))
    features = vectors * np.sqrt(values)  # their inner products are the kernel
    D, sign, _ = pair_differences(features, y, weight, qid)
    peer = LinearSVC(
        loss=loss, C=C, fit_intercept=False, tol=1e-9, max_iter=1_000_000, dual=loss == "hinge"
    ).fit(D, sign)
    theirs = features @ peer.coef_[0]
    ours = ranker.decision_function(X)
    np.testing.assert_allclose(ours - ours[0], theirs - theirs[0], atol=1e-4)
    dual = ranker.expansion_.dual_coef
    norm = dual @ rbf_kernel(ranker.expansion_.landmarks, gamma=gamma) @ dual
    higher, lower, _ = pair_list(y, weight, qid)
    losses = np.maximum(1 - (ours[higher] - ours[lower]), 0) ** POWER[loss]
    assert ranker.objective_ == pytest.approx(0.5 * norm + C * losses.sum(), rel=1e-6)


# -- the estimator -------------------------------------------------------------------------------


def test_path_equals_single_fits_and_is_quicker() -> None:
    X, y, qid, weight = draw(8, n=200)
    Cs = [1.0, 0.001, 0.01, 0.1]
    model = RankSVM(loss="hinge", tol=1e-8)
    path = model.path(X, y, Cs, sample_weight=weight, qid=qid)
    assert [ranker.C for ranker in path] == sorted(Cs)
    steps = 0
    for ranker in path:
        single = RankSVM(C=ranker.C, loss="hinge", tol=1e-8).fit(X, y, weight, qid)
        np.testing.assert_allclose(ranker.coef_, single.coef_, rtol=1e-2, atol=1e-3)
        assert ranker.objective_ == pytest.approx(single.objective_, rel=2e-8)
        steps += single.n_iter_
    assert sum(ranker.n_iter_ for ranker in path) < steps
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "laplacian"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_are_copies_and_sparse_is_dense(kernel: str, loss: str) -> None:
    X, y, qid, weight = draw(9, n=80)
    weight -= 1  # some rows are absent
    X[np.abs(X) < 0.3] = 0
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    settings_ = {"kernel": kernel, "C": 0.01, "loss": loss, "tol": 1e-9, "random_state": 0}
    weighted = RankSVM(**settings_).fit(X, y, weight, qid)
    repeated = RankSVM(**settings_).fit(X[copies], y[copies], qid=qid[copies])
    scores = weighted.decision_function(X)
    np.testing.assert_allclose(scores, repeated.decision_function(X), rtol=1e-4, atol=1e-4)
    same = RankSVM(**settings_, scale=False).fit(X, y, weight, qid)
    rows = RankSVM(**settings_, scale=False).fit(sparse.csr_matrix(X), y, weight, qid)
    np.testing.assert_allclose(
        rows.decision_function(sparse.csr_matrix(X)), same.decision_function(X), atol=1e-4
    )


def test_the_mean_over_pairs_is_their_sum_over_their_number() -> None:
    X, y, qid, weight = draw(5, n=60, levels=3, n_queries=2)
    pairs = pair_list(y, weight, qid)[2].sum()
    mean = RankSVM(C=7.0, tol=1e-9).fit(X, y, weight, qid)
    summed = RankSVM(C=7.0 / pairs, loss_scale="sum", tol=1e-9).fit(X, y, weight, qid)
    np.testing.assert_allclose(mean.coef_, summed.coef_, rtol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_c_means_the_same_for_any_number_of_rows(kernel: str) -> None:
    X, y, _, _ = draw(6, n=60, levels=2, n_queries=1)
    once = RankSVM(kernel, tol=1e-9).fit(X, y)
    often = RankSVM(kernel, tol=1e-9).fit(np.tile(X, (5, 1)), np.tile(y, 5))
    assert pytest.approx(once.C_, rel=1e-9) == often.C_
    difference = often.decision_function(X) - once.decision_function(X)
    assert np.ptp(difference) < 1e-6
    if kernel == "linear":
        assert pytest.approx(50 / X.shape[1], rel=1e-9) == once.C_
    assert RankSVM(loss_scale="sum").fit(X, y).C_ == 1.0


def test_the_usual_strength_grows_with_the_rows_beyond_a_thousand(rng) -> None:
    X = rng.normal(size=(3000, 4))
    y = (X[:, 0] + rng.normal(size=3000) > 2).astype(int)
    assert pytest.approx(3 * 50 / 4, rel=1e-9) == RankSVM().fit(X, y).C_
    assert pytest.approx(50 / 4, rel=1e-9) == RankSVM().fit(X[:900], y[:900]).C_
    # a row of weight 0 is absent, the unit does not matter
    half = np.where(np.arange(3000) < 1500, 7.0, 0.0)
    assert pytest.approx(1.5 * 50 / 4, rel=1e-9) == RankSVM().fit(X, y, sample_weight=half).C_


def test_queries_keep_to_themselves(rng: np.random.Generator) -> None:
    """A shift of all rows of a query changes nothing; without queries it changes much."""
    X, y, qid, _ = draw(10, n=200, levels=2)
    shifted = X + 5 * rng.normal(size=(4, X.shape[1]))[qid]
    model = RankSVM(scale=False, C=0.1)
    np.testing.assert_allclose(
        model.fit(shifted, y, qid=qid).coef_, model.fit(X, y, qid=qid).coef_, atol=1e-6
    )
    assert np.abs(model.fit(shifted, y).coef_ - model.fit(X, y).coef_).max() > 0.01


def test_scaling_makes_units_irrelevant() -> None:
    X, y, _, weight = draw(11, n=150, levels=2)
    units = np.array([1e-6, 1.0, 1e4, 3.0, 1e9])
    plain = RankSVM(C=0.01).fit(X, y, weight)
    other = RankSVM(C=0.01).fit(X * units + 7, y, weight)
    np.testing.assert_allclose(other.coef_ * units, plain.coef_, rtol=1e-5)
    constant = np.column_stack([X, np.full(len(y), 1e9)])
    kept = RankSVM(C=0.01).fit(constant, y, weight)
    np.testing.assert_allclose(kept.coef_[:-1], plain.coef_, rtol=1e-6)


def test_separable_and_tied_rows_stay_finite() -> None:
    y = np.array([0, 0, 1, 1])
    for X in (np.array([[0.0], [1.0], [1e6], [2e6]]), np.zeros((4, 2)), 1e-300 * np.eye(4)):
        for loss in POWER:
            for C in (1e-6, 1.0, 1e6):
                model = RankSVM(C=C, loss=loss).fit(X, y)
                assert np.isfinite(model.decision_function(X)).all()


def test_a_fit_that_stops_early_says_so() -> None:
    X, y, qid, weight = draw(12)
    with pytest.warns(ConvergenceWarning, match="duality gap"):
        model = RankSVM(loss="hinge", max_iter=2).fit(X, y, weight, qid)
    assert model.duality_gap_ > 1e-6 * model.objective_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, "'C' parameter of RankSVM must be"),
        ({"loss": "square"}, "'loss' parameter of RankSVM must be"),
        ({"tol": 0}, "'tol' parameter of RankSVM must be"),
        ({"kernel": "cubic"}, "'kernel' parameter of RankSVM must be.*rbf"),
        ({"kernel": "rbf", "gamma": -1.0}, "'gamma' parameter of RankSVM must be"),
        ({"kernel": "rbf", "gamma": "auto"}, "'gamma' parameter of RankSVM must be.*scale"),
        ({"kernel": "rbf", "n_components": 0}, "'n_components' parameter of RankSVM must be"),
        ({"exact_rows": -1}, "'exact_rows' parameter of RankSVM must be"),
    ],
)
def test_bad_parameters_get_a_clear_error(parameters: dict, message: str) -> None:
    X, y, _, _ = draw(13, levels=2)
    with pytest.raises(ValueError, match=message):
        RankSVM(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="'C' parameter of RankSVM must be"):
        RankSVM().path(X, y, [1.0, -1.0])


def test_bad_queries_and_grades_get_a_clear_error() -> None:
    X, y, _, _ = draw(14)
    with pytest.raises(ValueError, match="binary"):
        RankSVM().fit(X, y)  # three labels, no queries
    with pytest.raises(ValueError, match="whole numbers"):
        RankSVM().fit(X, y - 1, qid=np.zeros(len(y)))
    with pytest.raises(ValueError, match="nothing to compare"):
        RankSVM().fit(X, y, qid=y)
    graded = RankSVM().fit(X, y, qid=np.zeros(len(y)))
    assert graded.ranks_queries_
    assert 0 <= graded.score(X, y) <= 1


def test_nystroem_is_close_to_the_exact_kernel(rng: np.random.Generator) -> None:
    X = rng.normal(size=(900, 2))
    y = (np.hypot(*X.T) + 0.2 * rng.normal(size=900) < 0.8).astype(int)
    exact = RankSVM("rbf", C=1e-3, random_state=0).fit(X, y)
    approximate = RankSVM("rbf", C=1e-3, n_components=100, exact_rows=0, random_state=0).fit(X, y)
    assert len(approximate.expansion_.dual_coef) == 100
    assert len(exact.expansion_.dual_coef) == 900
    assert metrics.roc_auc(y, exact.decision_function(X)) > 0.95
    np.testing.assert_allclose(
        approximate.decision_function(X), exact.decision_function(X), atol=0.05
    )
    assert RankSVM(C=1e-3).fit(X, y).score(X, y) < 0.6 < exact.score(X, y)


@pytest.mark.data
def test_real_queries(data_dir) -> None:
    data = datasets.load("letor_mq2008")
    X, qid = np.asarray(data.X, dtype=float), np.asarray(data.qid)
    model = RankSVM().fit(X, data.y, qid=qid)
    assert model.duality_gap_ <= 1e-6 * model.objective_
    assert metrics.ndcg(data.y, model.decision_function(X), k=10, qid=qid) > 0.45
