"""A fit on relational data never fails silently: it says what happened, why, and what to do."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from relational_worlds import friends

from toprank import Mode, RelationalData, RelationalPRankBoost
from toprank.rules.relational.bottom import Saturation

IDS = [f"p{k}" for k in range(20)]
Y = np.arange(20) % 4 == 0


def data_of(tables: dict, types: dict | None = None, modes: list | None = None) -> RelationalData:
    examples = pd.DataFrame({"id": IDS})
    return RelationalData(tables, examples, target="ill", types=types, modes=modes)


def warning_of(data: RelationalData, **parameters) -> str:
    model = RelationalPRankBoost(3, random_state=0, **parameters)
    with pytest.warns(UserWarning, match="RelationalPRankBoost") as caught:
        model.fit(data, Y.astype(int))
    assert len(model.rounds_) == 0
    return str(caught[0].message)


def test_ids_that_no_fact_has_are_named() -> None:
    tables = {"smokes": pd.DataFrame({"who": [name.upper() for name in IDS]})}
    text = warning_of(data_of(tables, {"ill": ["person"], "smokes": ["person"]}), language="paper")
    assert "found no rule, so every example has the same score" in text
    assert "no fact names the arguments of any positive example" in text
    assert "no fact is about 5 of 5 positives (100%), such as id = 'p0'" in text
    assert "case, spaces, prefixes, text against numbers" in text


def test_most_positives_without_facts_are_counted() -> None:
    tables = {"smokes": pd.DataFrame({"who": ["p0", *(n for n in IDS if not n.endswith("0"))]})}
    types = {"ill": ["person"], "smokes": ["person"]}
    data = data_of(
        {"smokes": tables["smokes"][lambda t: ~t["who"].isin(["p4", "p8", "p16"])]}, types
    )
    assert "no fact is about 3 of 5 positives (60%)" in warning_of(data, language="paper")


def test_positives_without_facts_are_named_although_a_rule_was_found() -> None:
    """A rule for the few positives that facts are about is not a model of the others."""
    ids = [f"p{k}" for k in range(200)]
    y = np.arange(200) % 4 == 0
    known = [k for k in range(200) if not y[k] or k < 12]
    kinds = ["bad" if y[k] else "good" for k in known]
    visit = pd.DataFrame({"id": [ids[k] for k in known], "kind": kinds})
    types = {"ill": ["id"], "visit": ["id", "kind"]}
    data = RelationalData({"visit": visit}, pd.DataFrame({"id": ids}), target="ill", types=types)
    with pytest.warns(UserWarning, match=r"no fact is about 47 of 50 positives \(94%\)"):
        model = RelationalPRankBoost(2, language="paper", random_state=0).fit(data, y)
    assert "visit(A,bad)" in str(model.rounds_[0].rules[-1])


def test_what_only_a_larger_language_could_say_is_named() -> None:
    tables = {"smokes": pd.DataFrame({"who": [n for n, y in zip(IDS, Y, strict=True) if not y]})}
    data = data_of(tables, {"ill": ["person"], "smokes": ["person"]})
    text = warning_of(data, language="paper")
    assert "clauses could not use comparison, negation, count" in text
    model = RelationalPRankBoost(3, random_state=0).fit(data, Y.astype(int))
    assert str(model.rounds_[0].rules[-1]) == "ill(A) :- not smokes(A)"


def test_tables_that_never_join_are_named() -> None:
    tables = {
        "smokes": pd.DataFrame({"who": IDS}),
        "price": pd.DataFrame({"thing": ["a", "b"], "worth": ["x", "y"]}),
    }
    types = {"ill": ["person"], "smokes": ["person"], "price": ["thing", "worth"]}
    text = warning_of(data_of(tables, types))
    assert "the table 'price', of the types thing, worth, is not reached" in text
    assert "larger n_seeds (now 5), max_depth (2), recall (10) or max_length (4)" in text


def test_odd_columns_are_named_when_data_are_made() -> None:
    tables = {"visit": pd.DataFrame({"who": IDS, "code": [f"c{k}" for k in range(20)]})}
    data = data_of(tables)
    (note,) = data.notes
    assert note.startswith("column 'code' of table 'visit' looks like an id (each of its 20 values")
    assert note in warning_of(data, language="paper")
    assert data_of(tables, {"visit": ["id", "code"]}).notes == ()


def test_tables_without_facts_are_named() -> None:
    nobody = pd.DataFrame({"who": pd.Series([], dtype=str)})
    tables = {"smokes": pd.DataFrame({"who": IDS}), "drinks": nobody}
    text = warning_of(data_of(tables, {"ill": ["id"], "smokes": ["id"], "drinks": ["id"]}))
    assert "there are no facts in 'drinks'" in text


def test_an_early_end_says_why() -> None:
    data, y = friends()
    assert (
        RelationalPRankBoost(2, random_state=0).fit(data, y).stop_reason_ == "all 2 rounds were run"
    )
    model = RelationalPRankBoost(60, early_stopping_rounds=2, random_state=0).fit(data, y)
    assert model.stop_reason_ in {
        "the validation metric did not improve any more",
        "all 60 rounds were run",
    }


def test_searches_that_ran_out_of_time_are_counted() -> None:
    data, y = friends()
    with pytest.warns(
        UserWarning, match=r"searches for a clause were stopped after max_seconds \(1e-09"
    ):
        RelationalPRankBoost(2, max_seconds=1e-9, random_state=0).fit(data, y)


def test_joins_that_are_too_large_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toprank.rules.relational.coverage.MIN_JOIN_ROWS", 1.0)
    monkeypatch.setattr("toprank.rules.relational.coverage.ROWS_PER_EXAMPLE", 1e-9)
    tables = {"smokes": pd.DataFrame({"who": IDS[:9], "what": ["a", "b", "c"] * 3})}
    data = data_of(tables, {"ill": ["id"], "smokes": ["id", "what"]})
    text = warning_of(data, language="paper", n_seeds=1)
    assert "literals were left out because their joins would have had more than" in text
    assert "declare modes in which it is no input (+)" in text


# -- names and columns that SQL or the language cannot take ---------------------------------------------


def test_tables_that_differ_only_in_case_are_refused() -> None:
    frame = pd.DataFrame({"who": IDS})
    with pytest.raises(ValueError, match="'Smokes', 'smokes' have names that differ only in case"):
        data_of({"smokes": frame, "Smokes": frame})


def test_a_table_called_examples_is_not_confused_with_the_examples() -> None:
    tables = {"Examples": pd.DataFrame({"who": [n for n, y in zip(IDS, Y, strict=True) if y]})}
    data = data_of(tables, {"ill": ["id"], "Examples": ["id"]})
    model = RelationalPRankBoost(1, random_state=0).fit(data, Y.astype(int))
    with pytest.raises(ValueError, match="has a table 'Examples' already.*another name"):
        model.to_sql()
    assert 'FROM "people"' in model.to_sql("people")


def test_columns_of_lists_are_refused_when_data_are_made() -> None:
    table = pa.table({"who": IDS, "tags": pa.array([["a"]] * 20)})
    with pytest.raises(ValueError, match=r"visit.tags holds VARCHAR\[\], which cannot be"):
        data_of({"visit": table})
    # it may be left out
    RelationalData({"visit": table}, pd.DataFrame({"id": IDS}), arguments={"visit": ["who"]})


def test_a_column_without_any_value_is_no_obstacle() -> None:
    visit = pd.DataFrame({"who": [n for n, y in zip(IDS, Y, strict=True) if y], "note": None})
    model = RelationalPRankBoost(1, random_state=0).fit(data_of({"visit": visit}), Y.astype(int))
    assert str(model.rounds_[0].rules[-1]) == "ill(A) :- visit(A,_)"


# -- the bottom clause ---------------------------------------------------------------------------------


def hub_world(n: int = 300) -> tuple[RelationalData, np.ndarray]:
    """People with a city (a hub), calls between them, and a planted rule about their own plan."""
    rng = np.random.default_rng(1)
    names = np.array([f"n{k:04d}" for k in range(n)])[rng.permutation(n)]
    calls = rng.integers(0, n, size=(20 * n, 2))
    plan = rng.choice(["basic", "gold", "team"], n, p=[0.6, 0.3, 0.1])
    tables = {
        "call": pd.DataFrame({"a": names[calls[:, 0]], "b": names[calls[:, 1]]}),
        "plan": pd.DataFrame({"who": names, "kind": plan}),
        "city": pd.DataFrame({"who": names, "place": rng.choice(["x", "y"], n)}),
    }
    types = {
        "target": ["person"],
        "call": ["person", "person"],
        "plan": ["person", "kind"],
        "city": ["person", "place"],
    }
    modes = [Mode("call", ("+", "-")), Mode("call", ("-", "+")), Mode("plan", ("+", "#"))]
    modes += [Mode("city", ("+", "-")), Mode("city", ("-", "+"))]
    data = RelationalData(tables, pd.DataFrame({"who": names}), types=types, modes=modes)
    return data, (plan == "team").astype(int)


def test_raising_recall_never_loses_a_seeds_own_facts() -> None:
    data, y = hub_world()
    for head in data.codes()[np.flatnonzero(y)[:6]]:
        before: dict[int, set] = {}
        for recall in (1, 10, 50, 200):
            bottom = Saturation(data.schema, recall=recall, max_facts=500).of(data.background, head)
            own = {
                j: {fact for fact in facts if head[0] in fact} for j, facts in bottom.facts.items()
            }
            for j, facts in before.items():
                assert facts <= own[j]
            before = own


@pytest.mark.parametrize("recall", [10, 50])
def test_the_planted_rule_is_found_at_any_recall(recall: int) -> None:
    data, y = hub_world()
    model = RelationalPRankBoost(
        1, recall=recall, language="paper", lookahead=0, max_length=2, random_state=0
    ).fit(data, y)
    assert str(model.rounds_[0].rules[-1]) == "target(A) :- plan(A,team)"


def test_a_hub_is_no_input_of_inferred_modes() -> None:
    n = 1000
    people = pd.DataFrame({"id": [f"p{k}" for k in range(n)], "sex": ["m", "f"] * (n // 2)})
    data = RelationalData({"person": people}, people[["id"]].iloc[:50])
    assert {str(mode) for mode in data.schema.modes} == {"person(+id,-sex)", "person(+id,#sex)"}
