"""Models for MLflow: the python_function flavour around a model file, which runs no code when it is opened.

Needs ``pip install toprank[mlflow]`` to write; what was written, any server of MLflow models loads and calls.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

from toprank.folds import scores_of
from toprank.persistence.files import load, save

__all__ = ["log_model", "save_model"]

FILE = "model.toprank"


def save_model(model: Any, path: Any, X: Any = None, y: Any = None, **options: Any) -> Any:
    """Write a fitted model as a folder that MLflow can load and serve.

    Parameters
    ----------
    model : fitted estimator
        Whatever `toprank.save` takes.
    path : path
        A folder that does not exist yet.
    X, y : table and array, optional
        Training rows: the file then knows what they look like, and MLflow the types of the columns.
    **options
        Of ``mlflow.pyfunc.save_model``, such as `metadata` or `pip_requirements`.

    Examples
    --------
    >>> from toprank.persistence import mlflow as toprank_mlflow
    >>> toprank_mlflow.save_model(model, "fraud")  # doctest: +SKIP
    >>> mlflow.pyfunc.load_model("fraud").predict(rows)["score"]  # doctest: +SKIP
    """
    return _write("save_model", model, X, y, path=str(path), **options)


def log_model(model: Any, name: str, X: Any = None, y: Any = None, **options: Any) -> Any:
    """Log a fitted model to the current run of MLflow, as `save_model` writes it.

    Parameters
    ----------
    model, X, y
        As for `save_model`.
    name : str
        Of the model within the run.
    **options
        Of ``mlflow.pyfunc.log_model``, such as `registered_model_name`.
    """
    return _write("log_model", model, X, y, name=name, **options)


def _write(function: str, model: Any, X: Any, y: Any, **options: Any) -> Any:
    """Hand a model file to one of MLflow's writers."""
    try:
        import mlflow
    except ImportError as error:
        raise ImportError("models for MLflow need its package: install toprank[mlflow]") from error
    if X is not None and "signature" not in options:
        answer = FileModel(model).predict(X[:100])
        options["signature"] = mlflow.models.infer_signature(X[:100], answer)
    options = {"pip_requirements": ["toprank[cpu]"]} | options
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / FILE
        save(model, file, X, y)
        write = getattr(mlflow.pyfunc, function)
        return write(loader_module=__name__, data_path=str(file), **options)


class FileModel:
    """What MLflow calls: a table in, a table with the score of each row out.

    Examples
    --------
    >>> import pandas as pd
    >>> from toprank import LogisticRanker
    >>> X = pd.DataFrame({"amount": [1.0, 2.0, 3.0, 9.0]})
    >>> FileModel(LogisticRanker().fit(X, [0, 0, 1, 1])).predict(X).columns.tolist()
    ['score']
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, model_input: Any, params: Any = None) -> pd.DataFrame:
        """Return `score` and, from a calibrated model, `probability`."""
        scores = scores_of(self.model, model_input)
        table = pd.DataFrame({"score": scores})
        if hasattr(self.model, "calibration_"):
            table["probability"] = self.model.calibration_(scores)
        return table


def _load_pyfunc(path: str, model_config: Any = None) -> FileModel:
    """Load what `save_model` wrote; MLflow calls this."""
    return FileModel(load(path))
