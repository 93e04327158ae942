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
    A weight of 2 is the row twice, of 0 the row absent.
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
