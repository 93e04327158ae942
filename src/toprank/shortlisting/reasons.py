"""Why rows have their scores: contributions of columns, rules that fired, splits of a tree, in sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from toprank.columns import as_frame, is_table
from toprank.folds import make_indexable, scores_of, take_rows
from toprank.formatting import to_python

__all__ = [
    "column_names",
    "contributions",
    "effects",
    "get_column",
    "global_importance",
    "importance_of",
    "reasons",
]

# Of a row and what is added to its score: the probability of a positive without and with it.
Chance = Callable[[int, float], np.ndarray]

BASE = "(base)"
MAX_TEXT = 60  # characters of a value that are shown
# Beyond so many columns occlusion looks at all of them on a few rows, and on all rows at the best of them.
SCREEN_ABOVE, SCREEN_ROWS, SCREEN_KEEPS = 200, 16, 100
CHUNK_ROWS = 20_000  # scored in one call
RARE_SHARE = 0.005  # of the training rows, below which a text is hardly known
MOSTLY_CONSTANT = 0.5  # share of one value from which others are exceptions


def reasons(
    model: Any,
    X: Any,
    n: int = 3,
    *,
    raising_only: bool = False,
    summary: dict[str, Any] | None = None,
    background: Any = None,
    scores: Any = None,
    chance: Chance | None = None,
) -> list[list[str]]:
    """Give the reasons for the score of each row, as text.

    Parameters
    ----------
    model : fitted estimator
        Any estimator of the library, a pipeline, or a `CalibratedRanker` around one.
    X : array, sparse matrix, table or RelationalData
        The rows to explain.
    n : int, default=3
        Most reasons of a row.
    raising_only : bool, default=False
        Give only what raises the score, as suits rows on a shortlist.
    summary, background, scores : optional
        As for `contributions`. The summary also places values among the training rows; a single row
        needs it or a background.
    chance : callable, optional
        Given the number of a row and what a column adds to its score, the probability of a positive without
        and with it; by default that of a `CalibratedRanker`.

    Returns
    -------
    texts : list of list of str
        For each row its reasons, the weightiest first. Boosted rules give the rules that fired,
        `TreeRank` the splits on the way to the leaf, all other models columns
        (see `contributions` for how their share is found). With a `CalibratedRanker`, or `chance`, they
        say what each column does to the chance of a positive: the probability without its contribution,
        and with it.

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import LogisticRanker
    >>> from toprank.persistence import summarise
    >>> from toprank.shortlisting import reasons
    >>> X = pd.DataFrame({"amount": [10.0, 20.0, 30.0, 900.0], "hour": [3.0, 4.0, 2.0, 3.0]})
    >>> model = LogisticRanker().fit(X, [0, 0, 0, 1])
    >>> reasons(model, X[3:], n=1, summary=summarise(model, X))
    [['amount = 900 (high: the highest of the training rows) raises the score by 2.2']]
    """
    check_is_fitted(model)
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n!r}")
    X = make_indexable(X)
    inner = _inner_ranker(model)
    if X.shape[0] == 0:
        return []
    rules = getattr(getattr(inner, "tree_", None), "rules", None)
    if hasattr(inner, "apply") and type(rules).__name__ == "LeafRankRules":  # one ranking tree
        return _path_reasons(inner, X, n, raising_only)
    if chance is None and hasattr(model, "calibration_"):
        own = scores_of(model, X) if scores is None else np.asarray(scores, dtype=np.float64)

        def chance(row: int, added: float) -> np.ndarray:
            return model.calibration_(np.array([own[row] - added, own[row]]))

    if _has_rules(inner):
        return _rule_reasons(inner, X, n, raising_only, chance)
    summary = getattr(model, "training_summary_", None) if summary is None else summary
    table = contributions(model, X, summary=summary, background=background, scores=scores)
    return _column_reasons(table, X, n, raising_only, summary, chance)


def global_importance(model: Any, X: Any, **options: Any) -> pd.DataFrame:
    """Rank the columns by how much they move the scores.

    Parameters
    ----------
    model : fitted estimator
    X : array, sparse matrix or table
        Rows to look at, such as the test rows.
    **options
        As for `effects`.

    Returns
    -------
    table : DataFrame
        `feature`, `importance` (mean absolute deviation of its contribution from the mean: what is
        the same for all rows moves none) and `share` of the total, the greatest first.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import LogisticRanker
    >>> from toprank.shortlisting import global_importance
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = (X[:, 1] > 1).astype(int)
    >>> global_importance(LogisticRanker().fit(X, y), X)["feature"][0]
    'x1'
    """
    table = _some_contributions(model, X, **options)[1]
    return _importance(table.sub(table.mean()).abs().mean())


def effects(model: Any, X: Any, **options: Any) -> pd.DataFrame:
    """Show in which direction the values of each column move the scores.

    Parameters
    ----------
    model : fitted estimator
    X : array or table
        Rows to look at, such as the test rows.
    **options
        `most_rows` (500 by default) are sampled from `X` when it has more, by `random_state`; `summary`,
        `background` and `scores` as for `contributions`.

    Returns
    -------
    table : DataFrame
        A line for each row and column: `feature`, `adds` (to the score of the row) and `level`, the
        share of the rows with a lower value; NaN for categories and missing cells.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import LogisticRanker
    >>> from toprank.shortlisting import effects
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> table = effects(LogisticRanker().fit(X, (X[:, 1] > 1).astype(int)), X)
    >>> high = table[(table["feature"] == "x1") & (table["level"] > 0.9)]
    >>> bool((high["adds"] > 0).all())
    True
    """
    X, table = _some_contributions(model, X, **options)
    places = {name: j for j, name in enumerate(column_names(X))}
    levels = np.full(table.shape, np.nan)
    for j, name in enumerate(map(str, table.columns)):
        column = get_column(X, places[name]) if name in places else pd.Series(dtype=object)
        if pd.api.types.is_numeric_dtype(column.dtype):
            levels[:, j] = (column.rank() - 1) / max(1, int(column.notna().sum()) - 1)
    features = np.repeat([str(name) for name in table.columns], len(table))
    adds = table.to_numpy(dtype=np.float64)
    return pd.DataFrame({"feature": features, "adds": adds.ravel("F"), "level": levels.ravel("F")})


def importance_of(effects: pd.DataFrame) -> pd.DataFrame:
    """Return what `global_importance` does, from what `effects` gave."""
    adds = effects["adds"] - effects.groupby("feature")["adds"].transform("mean")
    return _importance(adds.abs().groupby(effects["feature"], sort=False).mean())


def _importance(moved: pd.Series) -> pd.DataFrame:
    found = pd.DataFrame({"feature": moved.index.map(str), "importance": moved.to_numpy()})
    found["share"] = found["importance"] / (found["importance"].sum() or 1.0)
    return found.sort_values("importance", ascending=False, kind="stable", ignore_index=True)


def _some_contributions(
    model: Any,
    X: Any,
    *,
    most_rows: int = 500,
    random_state: Any = 0,
    scores: Any = None,
    **known: Any,
) -> tuple[Any, pd.DataFrame]:
    """Return a sample of the rows, and what each column adds to their scores."""
    check_is_fitted(model)
    X = make_indexable(X)
    if X.shape[0] > most_rows:
        random = check_random_state(random_state)
        sample = np.sort(random.choice(X.shape[0], most_rows, replace=False))
        X, scores = take_rows(X, sample), None if scores is None else np.asarray(scores)[sample]
    return X, contributions(model, X, scores=scores, **known)


def contributions(
    model: Any,
    X: Any,
    *,
    summary: dict[str, Any] | None = None,
    background: Any = None,
    scores: Any = None,
) -> pd.DataFrame:
    """Split the scores of rows into what each column adds.

    Parameters
    ----------
    model : fitted estimator
    X : array, sparse matrix or table
    summary : dict, optional
        Training summary (`toprank.persistence.summarise`); by default the model's own.
    background : array or table, optional
        Rows that say what is usual where there is no summary; by default `X` itself.
    scores : array of shape (n_rows,), optional
        Scores of the rows where they are known, so that occlusion need not compute them again.

    Returns
    -------
    table : DataFrame of shape (n_rows, n_columns)
        Boosted trees: SHAP values. Boosted rules: what the rules that fired add, shared equally among
        the columns that a rule looks at (for relational data, one column for each clause). Linear
        models: coefficient times the distance from the usual value. All other models, and
        pipelines: by how much the score falls when the column takes its usual value (the training median or
        most frequent category). Such one-at-a-time effects need not add up, and two columns that
        say the same can hide one another.

    Notes
    -----
    Occlusion scores every row once for each column. Beyond 200 columns all of them are tried on 16 rows, and
    only the 100 that matter most there on all rows; the others count 0.

    Examples
    --------
    >>> import numpy as np
    >>> from toprank import LogisticRanker
    >>> from toprank.shortlisting import contributions
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> table = contributions(LogisticRanker().fit(X, [0, 0, 1, 1]), X)
    >>> table.columns.tolist(), (table["x0"] > 0).tolist()
    (['x0', 'x1'], [False, False, True, True])
    """
    inner, X = _inner_ranker(model), make_indexable(X)
    if _has_rules(inner):
        return _rule_contributions(inner, X)
    if hasattr(inner, "explain"):
        return inner.explain(X).drop(columns=BASE, errors="ignore")
    summary = getattr(model, "training_summary_", None) if summary is None else summary
    usual = usual_values(X, summary, background)
    if not _is_linear(inner):
        return _occlusion(inner, X, usual, scores)
    centre = np.array([0.0 if v is None or v != v else float(v) for v in usual])
    matrix = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    if hasattr(inner, "limits_"):  # the score is of cells cut off there
        matrix, centre = np.clip(matrix, *inner.limits_), np.clip(centre, *inner.limits_)
    return pd.DataFrame((matrix - centre) * inner.coef_, columns=column_names(X))


def _inner_ranker(model: Any) -> Any:
    """Return the ranker inside a `CalibratedRanker`."""
    while hasattr(model, "staircase_") and hasattr(model, "estimator_"):
        model = model.estimator_
    return model


def _has_rules(model: Any) -> bool:
    """Whether `explain` gives the rules that fired."""
    return hasattr(model, "rounds_") and hasattr(model, "explain")


def _is_linear(model: Any) -> bool:
    """Whether the score is `X @ coef_` less a threshold."""
    is_ranker = hasattr(model, "_raw_scores") and hasattr(model, "coef_")
    embedded = getattr(model, "embedding_", None) is not None
    return is_ranker and not embedded and np.shape(model.coef_) == (model.n_features_in_,)


# -- contributions of columns ---------------------------------------------------------------------


def _rule_contributions(model: Any, X: Any) -> pd.DataFrame:
    """Share what fired rules add among the columns that they look at."""
    fired = model.explain(X)
    n_rows = X.shape[0]
    looks_at = {
        str(rule): sorted({literal.column for literal in rule.literals})
        for kept in model.rounds_
        for rule in kept.rules
        if hasattr(rule, "literals")
    }
    names = list(model.columns_.names) if hasattr(model, "columns_") else []
    table = pd.DataFrame(0.0, index=range(n_rows), columns=names)
    for rule, part in fired.groupby("rule", sort=False):
        added = np.bincount(part["row"].astype(int), part["adds"], minlength=n_rows)
        columns = looks_at.get(str(rule)) or [str(rule)]
        for column in columns:
            table[column] = table.get(column, 0.0) + added / len(columns)
    return table


def _occlusion(model: Any, X: Any, usual: list[Any], scores: Any) -> pd.DataFrame:
    """Return by how much scores fall when one column after the other takes its usual value."""
    scores = scores_of(model, X) if scores is None else np.asarray(scores)
    n_rows, n_columns = X.shape
    chosen = np.arange(n_columns)
    if sparse.issparse(X):
        chosen = np.flatnonzero(np.asarray((X != 0).sum(axis=0)).ravel())  # others are usual
    if len(chosen) > SCREEN_ABOVE:
        few = np.unique(np.linspace(0, n_rows - 1, min(SCREEN_ROWS, n_rows)).astype(np.int64))
        effects = _effects(model, take_rows(X, few), scores[few], chosen, usual)
        order = np.argsort(-np.abs(effects).mean(axis=0), kind="stable")
        chosen = np.sort(chosen[order[:SCREEN_KEEPS]])
    values = np.zeros((n_rows, n_columns))
    values[:, chosen] = _effects(model, X, scores, chosen, usual)
    return pd.DataFrame(values, columns=column_names(X))


def _effects(
    model: Any, X: Any, scores: np.ndarray, chosen: np.ndarray, usual: list[Any]
) -> np.ndarray:
    """Return the effects of some columns, several of them in one call of the model."""
    together = max(1, CHUNK_ROWS // max(1, X.shape[0]))
    effects = np.zeros((X.shape[0], len(chosen)))
    for start in range(0, len(chosen), together):
        part = chosen[start : start + together]
        blocks = [_fill(X, int(column), usual[column]) for column in part]
        if isinstance(X, pd.DataFrame):
            stacked: Any = pd.concat(blocks, ignore_index=True)
        else:
            stacked = sparse.vstack(blocks, "csr") if sparse.issparse(X) else np.vstack(blocks)
        occluded = scores_of(model, stacked).reshape(len(part), X.shape[0])
        effects[:, start : start + len(part)] = (scores - occluded).T
    return effects


# -- usual values ---------------------------------------------------------------------------------


def column_names(X: Any) -> list[str]:
    """Return the names of the columns of a table; x0, x1, ... of an array."""
    if is_table(X):
        return [str(name) for name in as_frame(X).columns]
    n_columns = X.shape[1] if hasattr(X, "shape") else len(X[0])
    return [f"x{j}" for j in range(n_columns)]


def get_column(X: Any, j: int) -> pd.Series:
    """Return a column of a frame, an array or a sparse matrix."""
    if isinstance(X, pd.DataFrame):
        return X.iloc[:, j].reset_index(drop=True)
    return pd.Series(X[:, [j]].toarray().ravel() if sparse.issparse(X) else np.asarray(X)[:, j])


def usual_values(
    X: Any, summary: dict[str, Any] | None = None, background: Any = None
) -> list[Any]:
    """Return the median or most frequent category of each column.

    They come from a training summary, else from background rows, else from `X`.

    Examples
    --------
    >>> import numpy as np
    >>> usual_values(np.array([[1.0, 9.0], [2.0, 9.0], [3.0, 7.0]]))
    [2.0, 9.0]
    """
    known = {column["name"]: column for column in (summary or {}).get("columns", [])}
    rows = make_indexable(X if background is None else background)
    places = {name: j for j, name in enumerate(column_names(rows))}
    found = []
    for j, name in enumerate(column_names(X)):
        column = get_column(rows, places.get(name, j))
        value = _usual_by_summary(known[name], column) if name in known else None
        found.append(_usual_in(column) if value is None else value)
    return found


def _fill(X: Any, column: int, value: Any) -> Any:
    """Return the rows with one column set to a value; 0 in a sparse matrix."""
    if isinstance(X, pd.DataFrame):
        table, old = X.copy(deep=False), X.iloc[:, column]
        new = pd.Series([value] * len(old), index=old.index, dtype=object)
        try:
            new = new.astype(old.dtype)
        except (TypeError, ValueError):  # the type cannot hold the value
            new = new.infer_objects()
        table.isetitem(column, new.array)
        return table
    if sparse.issparse(X):
        keep = np.ones(X.shape[1])
        keep[column] = 0.0
        return (X @ sparse.diags(keep)).tocsr()
    filled = np.array(X, copy=True)
    filled[:, column] = np.nan if value is None else value
    return filled


def _usual_by_summary(summary: dict[str, Any], column: pd.Series) -> Any:
    """Return the usual value by a summary; None where it has none that this column could hold."""
    if summary["kind"] == "number":
        quantiles = summary["quantiles"]
        return quantiles[len(quantiles) // 2] if quantiles else None
    if not summary["shares"]:
        return None
    common = max(summary["shares"], key=summary["shares"].get)
    possible = column.cat.categories if isinstance(column.dtype, pd.CategoricalDtype) else column
    for value in pd.unique(pd.Series(possible).dropna()):
        if str(value) == common:  # a summary keeps categories as text
            return value
    return common if pd.api.types.is_string_dtype(column.dtype) else None


def _usual_in(column: pd.Series) -> Any:
    """Return the median of numbers and dates (a value that occurs), else the most frequent value."""
    present = column.dropna()
    if not len(present):
        return None
    if pd.api.types.is_numeric_dtype(column.dtype) or column.dtype.kind in "mM":
        ordered = present.sort_values(kind="stable")
        return to_python(ordered.iloc[(len(ordered) - 1) // 2])
    return to_python(present.mode().iloc[0])


# -- reasons as text ------------------------------------------------------------------------------


def _rule_reasons(
    model: Any, X: Any, n: int, raising_only: bool, chance: Chance | None
) -> list[list[str]]:
    """Return the rules that fired; one that fired in several rounds is named once.

    What a rule adds counts by the share of training rows that it does not hold for: one that holds for nearly
    all of them tells rows apart as little as a constant.
    """
    texts: list[list[str]] = [[] for _ in range(X.shape[0])]
    fired = model.explain(X)
    if not len(fired):
        return texts
    covered = {
        str(rule): float(held)
        for kept in model.rounds_
        for rule, held in zip(kept.rules, kept.positives + kept.negatives, strict=True)
    }
    widest = max(covered.values()) or 1.0
    fired = fired.astype({"row": np.int64, "adds": np.float64})
    summed = fired.groupby(["row", "rule"], sort=False, as_index=False)["adds"].sum()
    held = summed["rule"].map(covered).to_numpy(dtype=np.float64)
    # never quite 0: a rule that is alone still says something
    summed["weight"] = summed["adds"].to_numpy() * (1.0 - 0.99 * held / widest)
    for row, part in summed.groupby("row", sort=False):
        for k in _largest(part["weight"].to_numpy(), n, raising_only):
            rule, added = part["rule"].iloc[k], float(part["adds"].iloc[k])
            texts[int(row)].append(f"{rule} {_moves(int(row), added, chance)}")
    return texts


def _column_reasons(
    table: pd.DataFrame,
    X: Any,
    n: int,
    raising_only: bool,
    summary: dict[str, Any] | None,
    chance: Chance | None,
) -> list[list[str]]:
    """Return the columns that add most, with their values; in chances where scores have probabilities."""
    known = {column["name"]: column for column in (summary or {}).get("columns", [])}
    texts: list[list[str]] = []
    for row, added in enumerate(table.to_numpy()):
        texts.append([])
        for j in _rare_last(_largest(added, n, raising_only), table, X, row, known):
            name = str(table.columns[j])
            value = X.iat[row, j] if isinstance(X, pd.DataFrame) else X[row, j]
            described = _describe(name, value, known.get(name))
            texts[-1].append(f"{described} {_moves(row, float(added[j]), chance)}")
    return texts


def _largest(values: np.ndarray, n: int, raising_only: bool) -> np.ndarray:
    """Return the positions of the largest contributions that are not zero."""
    size = values if raising_only else np.abs(values)
    order = np.argsort(-size, kind="stable")[:n]
    return order[size[order] > 1e-12 * max(1.0, float(np.abs(values).max(initial=0.0)))]


def _rare_last(
    chosen: np.ndarray, table: pd.DataFrame, X: Any, row: int, known: dict[str, dict[str, Any]]
) -> list[int]:
    """Put texts that training hardly knew, as those of merchants, behind all other reasons.

    What a model has learnt of a handful of rows is mostly noise.
    """

    def is_rare(j: int) -> bool:
        column = known.get(str(table.columns[j]))
        if column is None or column["kind"] != "category" or not isinstance(X, pd.DataFrame):
            return False
        value: Any = X.iat[row, j]
        return column["shares"].get(str(value), 0.0) < RARE_SHARE and not pd.isna(value)

    return sorted(chosen.tolist(), key=is_rare)


def _moves(row: int, added: float, chance: Chance | None) -> str:
    """Say what a contribution does to the chance of a positive, or to the score where that is all there is."""
    verb = "raises" if added > 0 else "lowers"
    by_score = f"{verb} the score by {abs(added):.2g}"
    if chance is None:
        return by_score
    before, after = (_percent(float(p)) for p in chance(row, added))
    if before == after:
        return f"{by_score} (chance {after} either way)"
    return f"{verb} the chance from {before} to {after}"


def _describe(name: str, value: Any, column: dict[str, Any] | None) -> str:
    """Describe a value and its place among the training rows."""
    if pd.isna(value):
        share = "" if column is None else f" (as in {_percent(column['missing'])} of training rows)"
        return f"{name} is missing{share}"
    shown = str(value)
    if isinstance(value, (bool, np.bool_)):
        shown = shown.lower()
    elif isinstance(value, (int, float, np.number)):
        number = float(value)
        shown = (
            f"{number:.2f}".rstrip("0").rstrip(".") if 1 <= abs(number) < 1e9 else f"{number:.3g}"
        )
    elif len(shown) > MAX_TEXT:
        shown = shown[: MAX_TEXT - 3] + "..."
    place = "" if column is None else _place(value, column)
    return f"{name} = {shown}" + (f" ({place})" if place else "")


def _place(value: Any, column: dict[str, Any]) -> str:
    """Say where a value lies among the training rows, by their summary."""
    if column["kind"] == "category":
        share = column["shares"].get(str(value))
        if share is None:
            return "rare in training" if column["others"] > 0 else "not seen in training"
        return f"{'rare: ' if share < 0.05 else ''}{_percent(share)} of training rows"
    quantiles = np.asarray(column["quantiles"], dtype=np.float64)
    try:
        value = float(value)
    except (TypeError, ValueError):
        return ""
    if not len(quantiles) or quantiles[0] == quantiles[-1] == value:
        return ""
    lower, higher = int(np.sum(quantiles < value)), int(np.sum(quantiles > value))
    distinct, counts = np.unique(quantiles, return_counts=True)
    plain = len(distinct) <= 2 or counts.max() >= MOSTLY_CONSTANT * len(quantiles)
    if plain and lower < len(quantiles) > higher:
        # "high" and "low" say little of two values, or of one beside exceptions
        share = (len(quantiles) - lower - higher) / len(quantiles)
        return f"as in {_percent(share)} of training rows" if share else "rare in training"
    for beyond, end, names in (
        (lower, quantiles[-1], ("high", "above", "highest")),
        (higher, quantiles[0], ("low", "below", "lowest")),
    ):
        if beyond == len(quantiles):
            return f"{names[0]}: {names[1]} all training rows"
        if beyond > 75:  # of the 101 points
            at_end = value == end
            place = f"the {names[2]} of the" if at_end else f"{names[1]} {beyond - 1}% of"
            return f"{names[0]}: {place} training rows"
    return "usual"


def _percent(share: float) -> str:
    return f"{100 * share:.2g}%" if share < 0.995 else "100%"


def _path_reasons(model: Any, X: Any, n: int, raising_only: bool) -> list[list[str]]:
    """Return for each row the conditions on its way to the leaf, by how they change the share of positives.

    A split sends a union of boxes to each side; of it, the box that holds the row is named.
    """
    from toprank.trees.reading import side_rules

    leaves, tree = model.apply(X), model.tree_
    share = tree.weights[:, 0] / tree.weights.sum(axis=1)  # of positives in each node
    texts: list[list[str]] = [[] for _ in range(len(leaves))]
    for leaf in np.unique(leaves):
        rows = np.flatnonzero(leaves == leaf)
        part = take_rows(X, rows)
        if getattr(model, "columns_", None) is not None and not hasattr(part, "columns"):
            part = pd.DataFrame(np.asarray(part), columns=list(model.columns_.names))
        steps = [
            (parent, int((tree.left if left else tree.right)[parent]))
            for parent, left in tree.path(int(leaf))
        ]
        change = {step: share[step[1]] - share[step[0]] for step in steps}
        size = change if raising_only else {step: abs(change[step]) for step in steps}
        for step in sorted(steps, key=lambda step: -size[step]):
            if size[step] <= 0:
                continue
            goes_left = int(tree.left[step[0]] == step[1])
            exact = side_rules(model, step[0], goes_left)
            shown = side_rules(model, step[0], goes_left, mention_missing=False)
            verb = "raises" if change[step] > 0 else "lowers"
            before, after = (f"{100 * share[node]:.3g}%" for node in step)
            for rule, short in zip(exact, shown, strict=True):
                for row in rows[rule.mask(part)] if len(short) else ():
                    if len(texts[row]) < n:
                        texts[row].append(
                            f"{short} {verb} the share of positives from {before} to {after}"
                        )
    return texts
