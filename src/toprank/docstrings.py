"""Paragraphs that many docstrings share, written once."""

from __future__ import annotations

import re
from typing import TypeVar

__all__ = ["fill_docstring"]

Documented = TypeVar("Documented")

FRAGMENTS = {
    "X": """
X : array or table of shape (n_rows, n_columns)
""",
    "y": """
y : array of shape (n_rows,)
    Two labels; the greater one is the positive class.
""",
    "sample_weight": """
sample_weight : array of shape (n_rows,), optional
    Among weights of 1, a weight of 2 is the row twice, of 0 the row absent. All weights times a constant
    give the same model.
""",
    "class_weight": """
class_weight : dict, "balanced" or None, default=None
    Multiplies the weights of all rows of a class: a weight by label, or "balanced" for both classes the
    same in sum. The threshold of `predict` follows, as with any weights.
""",
    "pair_weight": """
sample_weight : array of shape (n_rows,), optional
    A weight of 2 is the row twice, of 0 the row absent. Weights that are not all whole numbers are
    taken relative to their mean, so their unit does not matter. There is no `class_weight`: one factor
    for all positives multiplies every pair alike and changes no ranking.
""",
    "sparse_X": """
X : array, sparse matrix or table of shape (n_rows, n_columns)
""",
    "scale": """
scale : bool or "robust", default=True
    Divide each column by its standard deviation (and centre it, if the data is dense) first; columns of 0
    and 1 are not divided. Absurd cells, more than 10,000 times as far from the median as 95% of the others,
    are cut off with a warning; "robust" cuts off all cells beyond five times that distance.
""",
    "kernel_features": """
gamma : float or "scale", default="scale"
    Width of the kernel; "scale" is one over the summed variance of the columns.
degree : int, default=3
    Degree of the polynomial kernel.
coef0 : float, default=1.0
    Constant of the polynomial kernel.
n_components : int, default=256
    Landmarks of the Nyström features, half of them positives where there are enough.
exact_rows : int, default=1000
    Up to this many distinct rows the kernel is exact.
""",
    "kernel_model": """
coef_ : ndarray of shape (n_columns,)
    With the linear kernel: coefficients on the scale of the data as given.
expansion_ : KernelExpansion
    With another kernel: landmarks and their coefficients.
""",
    "fpr": """
fpr : tuple (a, b)
    Range of false positive rates, 0 <= a < b <= 1.
""",
    "early_stopping": """
early_stopping_rounds : int or None, default=None
    Stop when the validation metric has not improved for so many rounds, and keep the best round.
validation_fraction : float, default=0.2
    Share of the rows of each class held out for early stopping.
""",
    "max_bins": """
max_bins : int, default=255
    Maximum number of bins of a column; missing values have a bin of their own.
""",
    "n_jobs": """
n_jobs : int or None, default=None
    Threads: None and -1 are all cores that this process may use (one inside a joblib worker). The
    model does not depend on it.
""",
    "random_state": """
random_state : int, RandomState or None, default=None
    Fixes everything that is drawn.
""",
    "verbose": """
verbose : int, default=0
    Above 0, show a progress bar.
""",
    "classes": """
classes_ : ndarray of shape (2,)
    The labels; the second is the positive one.
offset_ : float
    The threshold that was subtracted from the scores.
""",
    "inner_splits": """
groups : array of shape (n_rows,), optional
    Rows of one group (a customer, say) are never on both sides of an inner split, by which settings are
    chosen and early stopping goes. Give them where new rows will be of other groups.
time : array of shape (n_rows,), optional
    Numbers or dates: inner validation is by the latest rows.
gap : number or timedelta, optional
    Least distance in time between training and validation rows; a number counts days between
    dates.
""",
    "fold_splits": """
groups : array of shape (n_rows,), optional
    A group (a customer, say) is never both in training and in test. A `fit` that takes groups gets them too.
time : array of shape (n_rows,), optional
    Numbers or dates: folds that are made here are blocks of time, each scored by a model of the past alone. A
    `fit` that takes times gets them too.
gap : number or timedelta, optional
    Least distance in time between a training row and the first test row, for labels that arrive late; a
    number counts days between dates.
""",
    "sql_score": """
score : str, default="score"
    Name of the column that holds the score.
dialect : str, optional
    The database that will read it: bigquery, clickhouse, databricks, duckdb, mysql, postgres,
    redshift, snowflake, sqlite or trino. By default only what all of them read alike is
    written, names in double quotes, and text with a backslash is refused.
""",
    "clause_limits": """
max_evaluated : int or None, default=None
    Stop the search for a clause once so many were scored.
max_seconds : float or None, default=None
    Stop the search for a clause after this time; the model then depends on the machine.
""",
    "relational_search": """
max_length : int, default=4
    Most literals of a clause.
max_depth : int, default=2
    Deepest variable: how many literals lie between it and the head.
recall : int, default=10
    Most facts that one call of a mode adds to a bottom clause, where the mode does not say. It limits
    which literals are tried, never what a clause covers.
lookahead : int, default=5
    How many of the literals that introduce variables, the best ones, are at each step also tried
    together with a second literal on these variables.
language : {"extended", "paper"} or collection of str, default="extended"
    What clauses may say. "paper": atoms only. "extended" adds all of "comparison" (`C <= 0.5`,
    `C > 0.5`), "negation" (`not student(A)`), "count" (`count(publication(_,A)) >= 3`), "inequality"
    (`B != A`) and "aggregate" (`mean(C: charge(A,_,C)) > 0.1`; min, max, sum); or name some of these.
seed_choice : {"weight", "uniform"}, default="weight"
    How the positive example that a search starts from is drawn: by its weight in the ensemble now, or
    all alike. Positives that no fact names are passed over.
n_seeds : int, default=5
    Most seeds that one round tries before the fit ends for want of a clause.
max_evaluated : int or None, default=None
    Stop the search for a clause after scoring so many.
max_seconds : float or None, default=60.0
    Stop the search for a clause after this time (a warning says so); the model then depends on the
    machine.
""",
    "relational_attributes": """
schema_ : Schema
    Predicates, types and modes of the training data.
text_types_ : tuple of str
    Argument types that the training data has as text and as numbers; `to_sql` casts them to text.
stop_reason_ : str
    Why there are no more rounds.
""",
    "rule_validation": """
early_stopping_rounds : int or None, default=None
    Hold out rows, stop when `eval_metric` has not improved for so many rounds, and keep the best round.
validation_fraction : float, default=0.1
    Share of the rows of each class that is held out.
""",
    "rule_attributes": """
rules_ : DataFrame
    The rules, one line each.
rounds_ : tuple of KeptRound
    The same as data.
n_evaluated_ : ndarray
    Rules scored in each round.
validation_scores_ : ndarray
    The metric of the held-out rows after each round, if rows were held out.
best_iteration_ : int
    Rounds kept by early stopping.
""",
    "metric_input": """
y_true : array-like of shape (n_rows,)
    Labels of two classes.
scores : array-like of shape (n_rows,)
    Finite scores, higher for rows more likely positive.
""",
    "metric_options": """
sample_weight : array-like of shape (n_rows,), optional
    Weights >= 0: weight 2 is the row twice, weight 0 the row absent.
pos_label : label, optional
    The positive class; by default the greater of the two labels.
""",
    "metric_skipped": """
return_skipped : bool, default=False
    Return also how many queries were left out of the mean.
""",
    "bootstrap_options": """
level : float, default=0.95
    Confidence level.
n_resamples : int, default=1000
    Number of bootstrap resamples.
random_state : int, Generator, RandomState or None, default=0
    Fixes the resamples.
n_jobs : int or None, default=None
    Threads: None and -1 are all cores that this process may use (one inside a joblib worker). The
    answer does not depend on it.
""",
    "drawn_groups": """
groups : array-like of shape (n_rows,), optional
    The group of each row (a customer, a patient): resamples then draw whole groups, for metrics of one list
    with two classes.
""",
}
_MARK = re.compile(r"^([ \t]*)%\((\w+)\)s[ \t]*$", re.MULTILINE)


def fill_docstring(documented: Documented) -> Documented:
    """Decorate a class or function whose docstring has lines such as ``%(n_jobs)s``.

    Each such line becomes the shared paragraph of that name, indented like the line.

    Examples
    --------
    >>> @fill_docstring
    ... def fit(n_jobs=None):
    ...     '''Learn.
    ...
    ...     Parameters
    ...     ----------
    ...     %(n_jobs)s
    ...     '''
    >>> "n_jobs : int or None" in fit.__doc__
    True
    """

    def fragment(match: re.Match[str]) -> str:
        indent, lines = match[1], FRAGMENTS[match[2]].strip("\n").splitlines()
        return "\n".join(indent + line if line else line for line in lines)

    if documented.__doc__:  # absent under python -OO
        documented.__doc__ = _MARK.sub(fragment, documented.__doc__)
    return documented
