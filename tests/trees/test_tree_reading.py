"""Reading a tree: rules that cover the rows of their leaf, SQL, text, pictures."""

from __future__ import annotations

import duckdb
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from toprank import TreeRank, metrics
from toprank.rule import Rule
from toprank.trees import export_text, leaf_region, leaf_rules, plot_roc, plot_tree, roc_vertices

mpl.use("Agg")


def frame(n: int = 500, seed: int = 0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "amount": np.round(rng.gamma(1.0, 100.0, size=n), 2),
            'odd "name"': rng.normal(size=n),
            "country": rng.choice(["NL", "DE", "FR", "X'X", "ES"], size=n),
            "visits": rng.integers(0, 9, size=n),
        }
    )
    score = (table["amount"] > 120) + table["country"].isin(["X'X", "ES"]) + rng.normal(size=n)
    table.loc[rng.random(n) < 0.15, "amount"] = None
    table.loc[rng.random(n) < 0.15, "country"] = None
    return table, (score > 1.2).to_numpy().astype(int)


@pytest.fixture(scope="module")
def fitted():
    table, y = frame()
    return TreeRank(4, leafrank_depth=4).fit(table, y), table, y


def test_regions_cover_exactly_the_rows_of_their_leaves(fitted) -> None:
    model, table, _ = fitted
    fresh, _ = frame(seed=1)
    fresh.loc[::7, "country"] = "never seen"
    for rows in (table, fresh):
        leaf = model.apply(rows)
        for node in model.tree_.leaves:
            np.testing.assert_array_equal(leaf_region(model, node).mask(rows), leaf == node)


def test_sql_covers_the_same_rows(fitted) -> None:
    model, _, _ = fitted
    fresh, _ = frame(seed=2)
    fresh.loc[::7, "country"] = "never seen"
    leaf = model.apply(fresh)
    with duckdb.connect() as connection:
        connection.register("fresh", fresh.assign(row=np.arange(len(fresh))))
        for node in model.tree_.leaves:
            where = leaf_region(model, node).sql()
            found = connection.sql(f"SELECT row FROM fresh WHERE {where} ORDER BY row").fetchnumpy()
            np.testing.assert_array_equal(found["row"], np.flatnonzero(leaf == node))


def test_rules_of_a_leaf_cover_each_of_its_rows_once(fitted) -> None:
    model, table, _ = fitted
    fresh, _ = frame(seed=3)
    fresh.loc[::7, "country"] = "never seen"
    for rows in (table, fresh):
        leaf = model.apply(rows)
        for node in model.tree_.leaves:
            rules = leaf_rules(model, node)
            covered = sum(rule.mask(rows).astype(int) for rule in rules)
            np.testing.assert_array_equal(covered, leaf == node)
    with duckdb.connect() as connection:
        connection.register("fresh", fresh)
        for node in model.tree_.leaves[:3]:
            where = " OR ".join(f"({rule.sql()})" for rule in leaf_rules(model, node))
            count = connection.sql(f"SELECT count(*) FROM fresh WHERE {where}").fetchall()
            assert count == [((leaf == node).sum(),)]
    assert leaf_rules(model, 0) == (Rule(),)
    crowded = max(model.tree_.leaves, key=lambda node: len(leaf_rules(model, node)))
    with pytest.raises(ValueError, match="leaf_region"):
        leaf_rules(model, crowded, max_rules=1)


def test_inner_nodes_and_the_root(fitted) -> None:
    model, table, _ = fitted
    assert str(leaf_region(model, 0)) == "every row"
    assert leaf_region(model, 0).sql() == "TRUE"
    assert leaf_region(model, 0).mask(table).all()
    left = int(model.tree_.left[0])
    assert leaf_region(model, left).mask(table).sum() == model.tree_.weights[left].sum()
    with pytest.raises(ValueError, match="nodes 0 to"):
        leaf_region(model, model.tree_.n_nodes)


def test_one_cut_a_split_makes_plain_rules() -> None:
    table, y = frame()
    model = TreeRank(3, leafrank_depth=1).fit(table, y)
    leaf = model.apply(table)
    for node in model.tree_.leaves:
        rule = leaf_region(model, node).rule
        np.testing.assert_array_equal(rule.mask(table), leaf == node)
        assert str(rule) == str(leaf_region(model, node))


def test_regions_of_rare_and_unseen_categories() -> None:
    """400 shops do not fit the bins, and one declared colour never occurs in training."""
    rng = np.random.default_rng(6)
    n, colours = 1500, ["red", "green", "blue", "white"]
    table = pd.DataFrame(
        {
            "shop": rng.integers(0, 400, size=n).astype(str),
            "colour": pd.Categorical(rng.choice(colours[:3], size=n), categories=colours),
        }
    )
    table.loc[rng.random(n) < 0.3, "colour"] = None
    odd = table["shop"].astype(int) % 2 == 1
    y = (odd | (table["colour"] == "red") & (rng.random(n) < 0.9)).to_numpy().astype(int)
    model = TreeRank(3, leafrank_depth=2, max_bins=50).fit(table, y)
    fresh = table.assign(colour=pd.Categorical(rng.choice(colours, size=n), categories=colours))
    fresh.loc[::5, "shop"] = "never seen"
    for rows in (table, fresh):
        leaf = model.apply(rows)
        for node in model.tree_.leaves:
            np.testing.assert_array_equal(leaf_region(model, node).mask(rows), leaf == node)
    white = fresh.assign(colour=pd.Categorical(["white"] * n, categories=colours))
    np.testing.assert_array_equal(
        model.apply(white), model.apply(fresh.assign(colour=None).astype({"colour": "object"}))
    )


def test_a_union_is_not_a_rule(fitted) -> None:
    model, _, _ = fitted
    regions = [leaf_region(model, node) for node in model.tree_.leaves]
    union = next(r for r in regions if any(len(rules) > 1 for rules in r.parts))
    with pytest.raises(ValueError, match="leafrank_depth=1"):
        _ = union.rule


def test_arrays_have_columns_too() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 1], nan=2.0) + rng.normal(size=300) > 0.5).astype(int)
    model = TreeRank(3).fit(X, y)
    for node in model.tree_.leaves:
        region = leaf_region(model, node)
        np.testing.assert_array_equal(region.mask(X), model.apply(X) == node)


def test_missing_values_are_only_mentioned_where_there_were_some() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0).astype(int)
    model = TreeRank(2).fit(X, y)
    best = model.tree_.leaves[0]
    assert "missing" in " ".join(str(leaf_region(model, node)) for node in model.tree_.leaves)
    quiet = leaf_region(model, best, mention_missing=False)
    assert "missing" not in str(quiet)
    np.testing.assert_array_equal(quiet.mask(X), model.apply(X) == best)


def test_svms_have_no_rules() -> None:
    X = np.random.default_rng(5).normal(size=(60, 2))
    model = TreeRank(2, splitter="svm", random_state=0).fit(X, (X[:, 0] > X[:, 1]).astype(int))
    with pytest.raises(ValueError, match="LeafRank"):
        leaf_region(model, 1)
    assert "left where" not in export_text(model)


def test_vertices_are_the_corners_of_the_curve(fitted) -> None:
    model, table, y = fitted
    fpr, tpr = roc_vertices(model)
    assert len(fpr) == model.n_leaves_ + 1
    scores = model.decision_function(table)
    for k, node in enumerate(model.tree_.leaves):
        flagged = scores >= model.tree_.scores[node] - model.offset_
        assert tpr[k + 1] == pytest.approx(flagged[y == 1].mean())
        assert fpr[k + 1] == pytest.approx(flagged[y == 0].mean())
    assert np.trapezoid(tpr, fpr) == pytest.approx(metrics.roc_auc(y, scores), abs=1e-12)


def test_text_names_every_node(fitted) -> None:
    model, _, _ = fitted
    text = export_text(model)
    leaves = [line for line in text.splitlines() if ": leaf " in line]
    numbers = [int(line.split(": leaf ")[1].split(",")[0]) for line in leaves]
    np.testing.assert_array_equal(numbers, model.tree_.leaves)
    assert text.count("split gains") == model.n_leaves_ - 1
    assert "country in {" in text or "country not in {" in text
    short = export_text(model, max_depth=0, decimals=1)
    assert short.endswith("(not shown)")
    assert "left where" not in export_text(model, rules=False)


def test_pictures(fitted) -> None:
    import matplotlib.pyplot as plt

    model, table, y = fitted
    figure, (first, second) = plt.subplots(1, 2)
    notes = plot_tree(model, ax=first, fontsize=5)
    assert len(notes) == model.tree_.n_nodes
    assert "AUC +" in notes[0].get_text()
    places = {node: note.xy for node, note in enumerate(notes)}
    for node in np.flatnonzero(~model.tree_.is_leaf):
        left, right = places[model.tree_.left[node]], places[model.tree_.right[node]]
        assert left[0] < places[node][0] < right[0]
        assert left[1] == right[1] < places[node][1]
    assert len(plot_tree(model, max_depth=1, ax=first)) == 3
    assert plot_roc(model, table, y, ax=second) is second
    lines = second.get_lines()
    np.testing.assert_array_equal(lines[0].get_xydata(), np.column_stack(roc_vertices(model)))
    np.testing.assert_allclose(lines[1].get_xydata(), lines[0].get_xydata())
    assert len(second.get_lines()[0].get_xdata()) == model.n_leaves_ + 1
    plt.close(figure)


def test_no_two_nodes_of_a_picture_overlap() -> None:
    import matplotlib.pyplot as plt

    table, y = frame()
    figure, ax = plt.subplots()
    notes = plot_tree(TreeRank(5).fit(table, y), ax=ax)
    figure.canvas.draw()
    boxes = [note.get_bbox_patch().get_window_extent() for note in notes]
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:k])
    sizes = [note.get_fontsize() for note in notes]
    assert sizes[0] > sizes[-1]
    plt.close(figure)
