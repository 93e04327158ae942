"""Clauses over relational data, learnt and scored set at a time in DuckDB."""
