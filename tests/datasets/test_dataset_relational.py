"""The relational generator: the planted rule means what it says."""

from __future__ import annotations

import json

import naive_datasets
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toprank.datasets import make_relational


def coverage(data):
    """The planted rule, by joins."""
    tables = data.tables
    kinds = tables["device_kind"].query("kind == 'emulator'")
    payees = tables["uses"].merge(kinds, on="device")["payee"].unique()
    transfer = tables["transfer"]
    reached = transfer[(transfer["band"] == "large") & transfer["payee"].isin(payees)]["account"]
    online = tables["opened"].query("channel == 'online'")["account"]
    account = data.examples["account"]
    return (account.isin(reached) & account.isin(online)).to_numpy()


def test_joins_agree_with_trying_every_binding():
    data = make_relational(150, skew=9, random_state=0)
    expected = naive_datasets.covered(data.tables, data.rule, data.examples["account"])
    np.testing.assert_array_equal(coverage(data), expected)


@settings(max_examples=25)
@given(
    n=st.integers(60, 600),
    skew=st.floats(2.0, 20.0),
    noise=st.floats(0.0, 0.8),
    seed=st.integers(0, 1000),
)
def test_precision_and_recall_of_the_rule_are_as_asked(n, skew, noise, seed):
    data = make_relational(n, skew=skew, noise=noise, random_state=seed)
    covered, positives = coverage(data), round(n / (1 + skew))
    assert data.y.sum() == covered.sum() == positives
    assert (covered & (data.y == 1)).sum() == positives - round(noise * positives)


def test_each_literal_alone_is_common():
    data = make_relational(20_000, random_state=0)
    assert (data.tables["opened"]["channel"] == "online").mean() > 0.4
    assert data.tables["transfer"].query("band == 'large'")["account"].nunique() > 4000
    assert data.y.mean() < 0.01


def test_distractors_tell_nothing():
    data = make_relational(40_000, skew=9, n_distractors=2, random_state=1)
    labels = pd.Series(data.y, index=data.examples["account"])
    for k in (1, 2):
        table = data.tables[f"attribute_{k}"]
        shares = labels[table["account"]].groupby(table[f"value_{k}"].to_numpy()).mean()
        assert shares.between(0.08, 0.12).all()


def test_the_published_size():
    data = make_relational(281_071, random_state=0)
    assert len(data.y) == 281_071
    assert data.y.sum() == 1874
    assert coverage(data).sum() == 1874


def test_the_schema_describes_the_tables():
    data = make_relational(3000, random_state=0)
    assert json.loads(json.dumps(data.schema)) == data.schema
    assert set(data.schema["predicates"]) == set(data.tables)
    for name, facts in data.schema["predicates"].items():
        table = data.tables[name]
        assert facts["arguments"] == table.columns.tolist()
        assert facts["rows"] == len(table)
        assert len(facts["argument_types"]) == len(facts["arguments"])
        assert facts["modes"][0].startswith(f"{name}(+")
    assert data.schema["examples"]["arguments"] == data.examples.columns.tolist()
    assert data.schema["examples"]["positives"] == data.y.sum()
    types = {predicate: facts["argument_types"] for predicate, facts in
             data.schema["predicates"].items()}  # fmt: skip
    variables: dict[str, set[str]] = {}
    for predicate, arguments in data.rule["body"]:
        for argument, kind in zip(arguments, types[predicate], strict=True):
            if argument[0].isupper():
                variables.setdefault(argument, set()).add(kind)
    assert all(len(kinds) == 1 for kinds in variables.values())  # variables join equal types


def test_folds_share_out_the_positives():
    data = make_relational(6000, skew=19, n_folds=4, random_state=0)
    counts = pd.Series(data.y).groupby(data.extra["fold"]).sum()
    assert counts.index.tolist() == [1, 2, 3, 4]
    assert counts.max() - counts.min() <= 1


def test_the_seed_fixes_all_and_facts_are_distinct():
    first, again = (make_relational(2000, skew=20, random_state=5) for _ in range(2))
    for name, table in first.tables.items():
        pd.testing.assert_frame_equal(table, again.tables[name])
        assert not table.duplicated().any()
    np.testing.assert_array_equal(first.y, again.y)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_examples": 50}, "positives"),
        ({"n_examples": 50, "skew": 0.2, "noise": 0.5}, "positives"),
        ({"noise": 1.0}, "noise"),
        ({"skew": 0}, "skew"),
        ({"n_distractors": -1}, "n_distractors"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_relational(**arguments)
