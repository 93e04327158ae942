"""Boosted rules: weak rankers found on tables or relational data, and the boosters that add them up."""
