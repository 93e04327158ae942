"""Safe model files: opening one never runs code and never brings the process down."""

from toprank.persistence.checks import ModelFileError
from toprank.persistence.files import ModelFile, describe, load, save
from toprank.persistence.schema import summarise

__all__ = ["ModelFile", "ModelFileError", "describe", "load", "save", "summarise"]
