"""The published tables again, and comparisons with rivals: `python -m experiments` lists them."""
