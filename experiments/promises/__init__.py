"""Do promises hold? False positive rates, precisions and probabilities, promised and measured."""
