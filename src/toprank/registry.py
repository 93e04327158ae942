"""The public estimators by name; each is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

__all__ = [
    "ESTIMATORS",
    "MEMBERS",
    "PEERS",
    "RELATIONAL",
    "RELATIONAL_TRANSFORMERS",
    "TRANSFORMERS",
    "WRAPPERS",
    "all_estimators",
    "estimator",
]

# Rankers of tables and arrays: each keeps the contract of tests/test_contract.py.
ESTIMATORS: dict[str, str] = {
    "LogisticRanker": "toprank.margin.logistic",
    "GradientBoostingRanker": "toprank.boosting",
    "TunedLogisticBooster": "toprank.boosting.tuned",
    "RankBoost": "toprank.rules.estimators",
    "PNormPush": "toprank.rules.estimators",
    "PRankBoost": "toprank.rules.estimators",
    "RuleScorecard": "toprank.rules.scorecard",
    "PAUCBoost": "toprank.rules.partial_auc",
    "GreedyPAUC": "toprank.rules.partial_auc",
    "TreeRank": "toprank.trees.estimators",
    "RankingForest": "toprank.trees.estimators",
    "RankSVM": "toprank.margin.ranksvm",
    "RankLS": "toprank.margin.rankls",
    "KernelLogisticRanker": "toprank.margin.logistic",
    "PartialAUCSVM": "toprank.margin.partial_auc",
    "PartialAUCRanker": "toprank.margin.partial_auc",
    "AutoRanker": "toprank.automatic.ranker",
}

# Other libraries' trees, as members of an AutoRanker.
MEMBERS: dict[str, str] = {
    "LibraryBooster": "toprank.boosting.library",
}

# Rankers of relational data: their `fit` takes a RelationalData.
RELATIONAL: dict[str, str] = {
    "RelationalPRankBoost": "toprank.rules.relational.estimators",
    "RelationalRankBoost": "toprank.rules.relational.estimators",
}

# Transformers of relational data: they turn a RelationalData into columns for any ranker.
RELATIONAL_TRANSFORMERS: dict[str, str] = {
    "RelationalFeatures": "toprank.rules.relational.features",
}

# Rankers around another ranker.
WRAPPERS: dict[str, str] = {
    "CalibratedRanker": "toprank.shortlisting.calibration",
}

# Other libraries' models, for comparisons only.
PEERS: dict[str, str] = {
    "PeerRanker": "toprank.selection.peers",
}

# Transformers to put before a ranker.
TRANSFORMERS: dict[str, str] = {
    "TreePathEmbedding": "toprank.margin.tree_path",
    "TableEncoder": "toprank.encoding",
}


def estimator(name: str) -> type:
    """Return the estimator class called `name`.

    Examples
    --------
    >>> estimator("LogisticRanker").__name__
    'LogisticRanker'
    """
    relational = {**RELATIONAL, **RELATIONAL_TRANSFORMERS}
    modules = {**ESTIMATORS, **relational, **TRANSFORMERS, **WRAPPERS, **PEERS, **MEMBERS}
    if name not in modules:
        raise ValueError(f"unknown estimator {name!r}; known: {', '.join(sorted(modules))}")
    return getattr(import_module(modules[name]), name)


def all_estimators() -> dict[str, type]:
    """Return every public ranker of tables, by name."""
    return {name: estimator(name) for name in ESTIMATORS}
