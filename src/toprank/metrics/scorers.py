"""The metrics as scikit-learn scorers, for ``scoring=`` in searches and cross-validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sklearn import config_context
from sklearn.metrics import make_scorer

from toprank.metrics.registry import METRICS
from toprank.metrics.roc import preference_auc

__all__ = ["SCORERS", "get_scorer"]

RESPONSES = ("decision_function", "predict_proba")


def get_scorer(name: str, **parameters: Any) -> Any:
    """Make a scorer of a metric.

    Scorers of metrics that know queries ask for `qid` through metadata routing: enable it with
    ``sklearn.set_config(enable_metadata_routing=True)`` and hand `qid` to ``fit`` of the search.
    Those that are lower for better rankings change their sign, as scikit-learn expects.

    Parameters
    ----------
    name : str
        Name of a metric, a key of `SCORERS`.
    **parameters
        Parameters of the metric, such as ``k=100``.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(random_state=0)
    >>> model = LogisticRegression().fit(X, y)
    >>> round(get_scorer("precision_at_k", k=10)(model, X, y), 2)
    1.0
    """
    if name == "preference_auc":
        return make_scorer(preference_auc, response_method=RESPONSES, **parameters)
    if name not in METRICS:
        known = ", ".join([*METRICS, "preference_auc"])
        raise ValueError(f"Unknown metric {name!r}. Known: {known}.")
    metric = METRICS[name]
    metric.parameters(parameters)  # raises where one is unknown
    scorer = make_scorer(
        metric.function,
        response_method=RESPONSES,
        greater_is_better=metric.greater_is_better,
        **parameters,
    )
    if metric.takes_queries:
        with config_context(enable_metadata_routing=True):
            scorer = scorer.set_score_request(qid=True)
    return scorer


class _Scorers(Mapping[str, Any]):
    """Scorers by name, each made when it is asked for.

    Libraries that extend scikit-learn's metadata routing when they are imported (imbalanced-learn) break
    routed scorers that were made before; one made on demand knows what is there.
    """

    def __getitem__(self, name: str) -> Any:
        if name not in self._names():
            raise KeyError(name)
        return get_scorer(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    @staticmethod
    def _names() -> list[str]:
        return [*METRICS, "preference_auc"]


SCORERS: Mapping[str, Any] = _Scorers()
