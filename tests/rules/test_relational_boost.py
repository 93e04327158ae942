"""Boosted clauses: what they find, what they promise as estimators, and bad input."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from relational_worlds import friends
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from toprank import Mode, RelationalData, RelationalPRankBoost, RelationalRankBoost
from toprank.base import BaseRanker
from toprank.datasets import make_relational
from toprank.metrics import average_precision, roc_auc
from toprank.rules.boosters import VARIANTS, PRankBooster, RankBooster, contributions
from toprank.rules.ensemble import BoostedRules
from toprank.rules.relational.clause import Atom, Clause, Constant, Variable
from toprank.rules.relational.coverage import Coverage
from toprank.rules.relational.search import RelationalLimits, RelationalSource

MODELS = {
    "RankBoost": RelationalRankBoost(6, random_state=0),
    **{weak: RelationalPRankBoost(6, weak=weak, random_state=0) for weak in VARIANTS},
}
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module")
def people() -> tuple[RelationalData, np.ndarray]:
    return friends(n=150)


@pytest.fixture(scope="module")
def fitted(people) -> Callable[[str], Any]:
    """The models of all names, each fitted once for all tests that only read it."""
    return cache(lambda name: clone(MODELS[name]).fit(*people))


def booster(cls: type, data: RelationalData, coverage: Coverage, y: np.ndarray, **keywords):
    source = RelationalSource(data, coverage, RelationalLimits(), np.random.RandomState(0))
    return cls(source, y, **keywords)


# -- what is learnt --------------------------------------------------------------------------------


def planted(rule: dict) -> Clause:
    """The planted rule of generated data: capital letters are variables."""

    def term(text: str) -> Variable | Constant:
        return Variable(text) if text[0].isupper() else Constant(text)

    head, *body = (Atom(p, tuple(map(term, terms))) for p, terms in (rule["head"], *rule["body"]))
    return Clause(head, tuple(body))


@pytest.mark.parametrize("weak", ["clause", "path", "mix1"])
def test_the_planted_rule_is_found(weak: str) -> None:
    dataset = make_relational(3000, skew=40, random_state=0)
    data = RelationalData.from_dataset(dataset)
    model = RelationalPRankBoost(10, weak=weak, random_state=0).fit(data, dataset.y)
    wanted = set(planted(dataset.rule).body)
    found = [clause for kept in model.rounds_ for clause in kept.rules]
    assert any(set(clause.body) == wanted for clause in found)
    test = make_relational(3000, skew=40, random_state=1)
    assert model.score(RelationalData.from_dataset(test), test.y) > 0.7


def test_a_variable_that_only_a_second_literal_needs_is_found_by_looking_ahead() -> None:
    n = 40
    names = np.array([f"t{k:02d}" for k in range(n)])
    cars = np.array([f"c{k:02d}" for k in range(n)])
    tables = {
        "has_car": pd.DataFrame({"train": names, "car": cars}),
        "short": pd.DataFrame({"car": cars[::4]}),
    }
    data = RelationalData(tables, pd.DataFrame({"train": names}), target="east")
    y = (np.arange(n) % 4 == 0).astype(int)
    model = RelationalPRankBoost(1, random_state=0).fit(data, y)
    assert str(model.rounds_[0].rules[0]) == "east(A) :- has_car(A,B), short(B)"
    blind = RelationalPRankBoost(1, lookahead=0, language="paper", random_state=0)
    with pytest.warns(UserWarning, match="found no rule"):
        blind.fit(data, y)
    assert len(blind.rounds_) == 0
    np.testing.assert_array_equal(blind.predict(data), np.zeros(n))


@every_model
def test_it_learns(name: str, fitted) -> None:
    model = fitted(name)
    other, y_other = friends(seed=5, n=150)
    assert model.score(other, y_other) > 0.75
    assert roc_auc(y_other, model.decision_function(other)) > 0.75
    assert model.rules_["rule"].str.contains("friends(A,B), smokes(B)", regex=False).any()


def test_rankboost_lowers_the_pair_loss_as_the_naive_sum_says(people) -> None:
    data, y = people
    with Coverage(data.background, data.codes()) as coverage:
        scores, before = np.zeros(len(y)), 0.0
        rounds = booster(RankBooster, data, coverage, y)
        for _ in range(8):
            found = next(rounds)
            scores += contributions(rounds.depth, found.levels, found.step)
            pairs = np.exp(-(scores[y == 1][:, None] - scores[y == 0][None, :]))
            assert found.log_loss == pytest.approx(np.log(pairs.mean()))
            assert found.log_loss < before
            before = found.log_loss


@pytest.mark.parametrize("weak", ["clause", "path"])
def test_prankboost_keeps_its_weights_and_depths(weak: str, people) -> None:
    data, y = people
    with Coverage(data.background, data.codes()) as coverage:
        rounds = booster(PRankBooster, data, coverage, y, weak=weak)
        for _ in range(5):
            found = next(rounds)
            assert rounds.weights[y == 1].sum() == pytest.approx(1)
            assert rounds.weights[y == 0].sum() == pytest.approx((y == 0).sum() / (y == 1).sum())
            for a, b in zip(found.rules, found.rules[1:], strict=False):
                assert not Counter(t.predicate for t in a.body) - Counter(
                    t.predicate for t in b.body
                )


# -- promises of an estimator ----------------------------------------------------------------------


@every_model
def test_scores_stages_explanations_and_sql_agree(name: str, people, fitted) -> None:
    data, model = people[0], fitted(name)
    scores = model.decision_function(data)
    *_, last = model.staged_decision_function(data)
    np.testing.assert_allclose(last, scores, rtol=1e-12, atol=1e-12)
    explained = model.explain(data).groupby("row")["adds"].sum()
    np.testing.assert_allclose(
        explained.reindex(range(len(data)), fill_value=0) - model.offset_, scores, atol=1e-12
    )
    connection = duckdb.connect()
    for predicate, source in data.background.sources.items():
        connection.register(predicate, source.table)
    connection.register("who; else?", data.examples)
    rows = connection.execute(model.to_sql("who; else?", score="how ill")).df()
    merged = data.examples.merge(rows, on="person")
    np.testing.assert_allclose(merged["how ill"], scores, rtol=1e-9, atol=1e-9)
    assert (model.predict(data) == model.classes_[1]).tolist() == (scores > 0).tolist()
    assert len(model.n_evaluated_) == len(model.rounds_)
    assert (model.n_evaluated_ > 0).all()


@every_model
def test_seeds_threads_copies_and_row_order(name: str, people, fitted) -> None:
    (data, y), model = people, fitted(name)
    scores = model.decision_function(data)
    np.testing.assert_array_equal(
        clone(model).set_params(n_jobs=1).fit(data, y).decision_function(data), scores
    )
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(data), scores)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = clone(model).fit(data[order], y[order])
    np.testing.assert_allclose(shuffled.decision_function(data), scores, rtol=1e-8, atol=1e-10)


@every_model
def test_a_weight_is_a_number_of_copies(name: str, people) -> None:
    data, y = people
    weight = np.random.default_rng(1).integers(0, 3, size=len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    weighted = clone(MODELS[name]).fit(data, y, sample_weight=weight).decision_function(data)
    repeated = clone(MODELS[name]).fit(data[copies], y[copies]).decision_function(data)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-6, atol=1e-8)


def test_one_base_lies_between_the_estimator_and_all_rankers() -> None:
    classes = RelationalPRankBoost.__mro__
    assert classes[:3] == (RelationalPRankBoost, BoostedRules, BaseRanker)
    parameters = set(RelationalPRankBoost().get_params())
    assert parameters - set(RelationalRankBoost().get_params()) == {"weak", "switch_at"}


def test_labels_of_all_types(people, fitted) -> None:
    data, y = people
    expected = fitted("clause").decision_function(data)
    for labels in (y.astype(bool), np.where(y == 1, "yes", "no"), 2 * y - 1):
        model = clone(MODELS["clause"]).fit(data, labels)
        np.testing.assert_array_equal(model.decision_function(data), expected)
        assert set(model.predict(data)) <= set(labels)


def test_scikit_learn_can_split_it(people) -> None:
    data, y = people
    model = RelationalPRankBoost(3, random_state=0)
    assert (cross_val_score(model, data, y, cv=3, error_score="raise") > 0.5).all()
    search = GridSearchCV(model, {"weak": ["clause", "path"]}, cv=2, error_score="raise").fit(
        data, y
    )
    assert search.best_params_["weak"] in {"clause", "path"}


def test_early_stopping_cuts_the_ensemble(people) -> None:
    data, y = people
    model = RelationalPRankBoost(
        60, early_stopping_rounds=5, validation_fraction=0.3, random_state=0
    ).fit(data, y)
    assert len(model.rounds_) == model.best_iteration_ == np.argmax(model.validation_scores_) + 1
    assert len(model.validation_scores_) <= model.best_iteration_ + 5
    stalled = RelationalPRankBoost(30, weak="mix4", switch_at="stall", random_state=0).fit(data, y)
    assert len(stalled.validation_scores_) == len(stalled.rounds_)


def test_an_interruption_keeps_the_rounds_done_so_far(
    people, fitted, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, y = people
    whole = fitted("clause")
    calls, best = [], RelationalSource.best

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) > 3:
            raise KeyboardInterrupt
        return best(self, *arguments)

    monkeypatch.setattr(RelationalSource, "best", interrupted)
    with pytest.warns(UserWarning, match="keeping the 3 of 6 rounds"):
        model = RelationalPRankBoost(6, random_state=0).fit(data, y)
    assert [k.rules for k in model.rounds_] == [k.rules for k in whole.rounds_[:3]]
    assert np.isfinite(model.decision_function(data)).all()


# -- limits ----------------------------------------------------------------------------------------


def test_limits_are_kept(people) -> None:
    data, y = people
    for length in (1, 2, 3):
        model = RelationalPRankBoost(4, weak="path", max_length=length, random_state=0).fit(data, y)
        assert max(len(rule) for kept in model.rounds_ for rule in kept.rules) <= length
    flat = RelationalPRankBoost(4, max_depth=0, random_state=0).fit(data, y)
    variables = {
        t for kept in flat.rounds_ for r in kept.rules for atom in r.body for t in atom.terms
    }
    assert all(v == Variable("A") for v in variables if isinstance(v, Variable))
    few = RelationalPRankBoost(4, max_evaluated=3, random_state=0).fit(data, y)
    assert (few.n_evaluated_ <= 3 * RelationalLimits().n_seeds).all()
    quick = RelationalPRankBoost(4, max_seconds=1e-9, random_state=0)
    with pytest.warns(UserWarning, match="stopped after max_seconds"):
        quick.fit(data, y)
    assert len(quick.rounds_) == 0
    slow = RelationalPRankBoost(2, max_seconds=60.0, random_state=0).fit(data, y)
    assert len(slow.rounds_) == 2


# -- other backgrounds, bad input ------------------------------------------------------------------


def test_new_examples_and_other_backgrounds() -> None:
    data, y = friends()
    model = RelationalPRankBoost(4, random_state=0).fit(data, y)
    table = data.examples.iloc[[4, 2]]
    np.testing.assert_array_equal(
        model.decision_function(table), model.decision_function(data)[[4, 2]]
    )
    strangers = pd.DataFrame({"person": ["nobody at all", None]})
    uncovered = model.decision_function(strangers)
    np.testing.assert_array_equal(uncovered, np.full(2, -model.offset_))
    empty = {name: source.table.slice(0, 0) for name, source in data.background.sources.items()}
    types = {p.name: p.types for p in (data.schema.target, *data.schema.predicates)}
    nothing = RelationalData(empty, data.examples, target="ill", types=types)
    np.testing.assert_array_equal(model.decision_function(nothing), np.full(len(y), -model.offset_))
    # types that are inferred anew, and differently, do not matter: the model's are used
    inferred = RelationalData(
        {n: s.table for n, s in data.background.sources.items()}, data.examples, target="ill"
    )
    np.testing.assert_array_equal(model.decision_function(inferred), model.decision_function(data))
    loaded = pickle.loads(pickle.dumps(model))
    with pytest.raises(ValueError, match="loaded without its background"):
        loaded.decision_function(table)


def test_hostile_names_and_constants_in_clauses() -> None:
    name, column = 'x"; DROP TABLE examples; --', "it's; select"
    values = ["o'neil; --", 'say "hi"']
    tables = {
        name: pd.DataFrame({"select": list("abcd"), column: [values[0]] * 2 + [values[1]] * 2})
    }
    examples = pd.DataFrame({"from": list("abcd")})
    types = {"where": ["key"], name: ["key", "value"]}
    modes = [Mode(name, ("+", "#"))]
    data = RelationalData(tables, examples, target="where", types=types, modes=modes)
    model = RelationalPRankBoost(1, random_state=0).fit(data, [1, 1, 0, 0])
    assert str(model.rounds_[0].rules[0]) == (
        """where(A) :- 'x"; DROP TABLE examples; --'(A,'o''neil; --')"""
    )
    connection = duckdb.connect()
    connection.register("given", tables[name])
    connection.execute('CREATE TABLE "x""; DROP TABLE examples; --" AS SELECT * FROM given')
    connection.register("some examples", examples)
    rows = connection.execute(model.to_sql("some examples")).df().sort_values("from")
    np.testing.assert_allclose(rows["score"], model.decision_function(data))
    assert model.predict(data).tolist() == [1, 1, 0, 0]


def test_bad_input_gets_clear_errors(people) -> None:
    data, y = people
    model = RelationalPRankBoost(2)
    with pytest.raises(TypeError, match="learns from a RelationalData"):
        model.fit(data.examples, y)
    with pytest.raises(ValueError, match="one class"):
        model.fit(data, np.ones_like(y))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(data, np.where(np.arange(len(y)) == 3, np.nan, y))
    with pytest.raises(ValueError, match=r"inconsistent|length"):
        model.fit(data, y[:-1])
    with pytest.raises(ValueError, match="[Nn]egative"):
        model.fit(data, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="class"):
        model.fit(data, y, sample_weight=1.0 - y)
    with pytest.raises(TypeError, match="takes a RelationalData"):
        model.fit(data, y).decision_function([1, 2])
    apart = RelationalData(
        {"p": pd.DataFrame({"x": [1, 2]})},
        pd.DataFrame({"person": list("ab")}),
        types={"target": ["person"], "p": ["thing"]},
    )
    with pytest.raises(ValueError, match="nothing joins with the arguments"):
        model.fit(apart, [0, 1])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("weak", "stump"), ("switch_at", -1), ("n_estimators", 0), ("learning_rate", 0),
        ("max_length", 0), ("max_depth", -1), ("recall", 0), ("lookahead", -1),
        ("max_evaluated", 0), ("max_seconds", 0), ("early_stopping_rounds", 0),
        ("seed_choice", "first"), ("n_seeds", 0), ("language", "prolog"),
    ],
)  # fmt: skip
def test_bad_parameters_are_named(parameter: str, value, people) -> None:
    with pytest.raises(ValueError, match=parameter):
        RelationalPRankBoost(**{parameter: value}).fit(*people)
    with pytest.raises(ValueError, match="step"):
        RelationalRankBoost(step="long").fit(*people)


@pytest.mark.data
def test_uwcse_by_area_beats_chance_by_far(data_dir) -> None:
    folder = data_dir / "relational" / "uwcse"
    train = RelationalData.from_folder(folder, where={"fold": [1, 2, 3, 4]})
    test = RelationalData.from_folder(folder, where={"fold": 5})
    model = RelationalPRankBoost(20, random_state=0).fit(train, train.labels)
    ranked = average_precision(test.labels, model.decision_function(test))
    assert ranked > 20 * test.labels.mean()
