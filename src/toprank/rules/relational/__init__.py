"""Clauses over relational data, learnt and scored set at a time in DuckDB."""

from toprank.rules.relational.clause import Atom, Clause, Constant, Variable
from toprank.rules.relational.data import RelationalData
from toprank.rules.relational.estimators import RelationalPRankBoost, RelationalRankBoost
from toprank.rules.relational.schema import Mode, Predicate, Schema

__all__ = [
    "Atom",
    "Clause",
    "Constant",
    "Mode",
    "Predicate",
    "RelationalData",
    "RelationalPRankBoost",
    "RelationalRankBoost",
    "Schema",
    "Variable",
]
