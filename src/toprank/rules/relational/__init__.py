"""Clauses over relational data, learnt and scored set at a time in DuckDB."""

from toprank.rules.relational.clause import Aggregate, Atom, Clause, Comparison, Constant, Variable
from toprank.rules.relational.data import RelationalData
from toprank.rules.relational.estimators import RelationalPRankBoost, RelationalRankBoost
from toprank.rules.relational.features import RelationalFeatures
from toprank.rules.relational.schema import Mode, Predicate, Schema

__all__ = [
    "Aggregate",
    "Atom",
    "Clause",
    "Comparison",
    "Constant",
    "Mode",
    "Predicate",
    "RelationalData",
    "RelationalFeatures",
    "RelationalPRankBoost",
    "RelationalRankBoost",
    "Schema",
    "Variable",
]
