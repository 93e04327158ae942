"""The one error that opening a model file gives."""

from __future__ import annotations

__all__ = ["ModelFileError", "require"]


class ModelFileError(ValueError):
    """A model file that cannot be opened; the message is one line."""


def require(condition: bool, message: str) -> None:
    """Raise a `ModelFileError` unless the condition holds."""
    if not condition:
        raise ModelFileError(message)
