"""Model files: save, load, describe.

A model file is a zip archive of

- `header.json`: the format, the class, the versions it was written with, a digest of each other member;
- `schema.json`: the columns with their kinds and categories, and the classes;
- `summary.json`: what the training rows looked like (where they were given);
- `model.json`: parameters and fitted state as plain data;
- `arrays.skops`: its arrays, in skops' format;
- `boosters/0.json`, ...: boosters in XGBoost's JSON.

Nothing in it is code, and everything is checked before compiled code sees it.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from toprank._version import __version__
from toprank.columns import as_frame, is_table
from toprank.persistence.archive import MOST_BYTES, read_archive, write_archive
from toprank.persistence.arrays import pack_pools, unpack_pools
from toprank.persistence.decoding import Decoder
from toprank.persistence.encoding import Encoder
from toprank.persistence.errors import ModelFileError, require
from toprank.persistence.estimator_checks import is_wrapper
from toprank.persistence.migrations import FORMAT, MEMBER_NAMES, digests, migrate, read_json
from toprank.persistence.probe import columns_of, probe
from toprank.persistence.summary import check_summary, summarise

__all__ = ["ModelFile", "describe", "load", "save"]

StrPath = str | os.PathLike[str]
_WRITTEN_WITH = ("numpy", "scikit-learn", "skops", "xgboost", "xgboost-cpu")


@dataclass(frozen=True)
class ModelFile:
    """What a model file says about itself.

    Attributes
    ----------
    class_name : str
        The class of the model.
    header : dict
        `format`, `toprank` (the version it was written with), `class`, `written_with` (other
        versions).
    schema : dict
        `columns` (a list of dicts with `name`, `kind` and, of categories, `categories`) and
        `classes`.
    summary : dict or None
        The training summary, where training rows were given to `save`.
    """

    class_name: str
    header: dict[str, Any]
    schema: dict[str, Any]
    summary: dict[str, Any] | None = field(default=None, repr=False)


def save(model: Any, path: StrPath, X: Any = None, y: Any = None) -> None:
    """Save a fitted model in a file that cannot run code when it is opened.

    The file takes its place whole or not at all, and only after it was opened for a trial.

    Parameters
    ----------
    model : fitted estimator
        Any estimator of the library, or a scikit-learn pipeline or calibrator around one.
    path : path
        The file, by custom with the extension ``.toprank``.
    X : array or table, optional
        The training rows: a summary of them is kept in the file, and no row. Rows that are
        scored later can be compared with it. A model that was loaded keeps its summary.
    y : array, optional
        The labels of these rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import make_classification
    >>> from toprank import LogisticRanker, load, save
    >>> X, y = make_classification(200, random_state=0)
    >>> model = LogisticRanker().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.toprank"
    ...     save(model, path, X, y)
    ...     again = load(path)
    >>> bool((again.decision_function(X) == model.decision_function(X)).all())
    True
    """
    from sklearn.utils.validation import check_is_fitted

    from toprank.tables import atomic_path

    check_is_fitted(model)
    members = _members_of(model, X, y)
    with atomic_path(path) as temporary:
        with temporary.open("wb") as file:
            try:
                write_archive(members, file)
            except Exception as error:
                if type(error).__name__ != "LargeZipFile":
                    raise
                raise ValueError(
                    f"the model takes more than {MOST_BYTES / 2**30:.1f} GiB, which is more than "
                    "a model file holds; train a smaller one"
                ) from error
        with temporary.open("rb") as file:
            _trial(model, file, X)


def load(path: StrPath) -> Any:
    """Open a model file.

    No code from the file is run, and nothing in it can bring the process down.

    Parameters
    ----------
    path : path

    Returns
    -------
    model : fitted estimator
        It scores as the one that was saved. With a training summary in the file it has the
        attribute `training_summary_`.

    Raises
    ------
    ModelFileError
        When the file is damaged, hostile, or from a later version; the message is one line.
    OSError
        When there is no such file, or it may not be read.
    """
    with Path(path).open("rb") as file:
        return _load(file, str(path))


def describe(path: StrPath) -> ModelFile:
    """Say what is in a model file without putting the model together.

    Parameters
    ----------
    path : path

    Returns
    -------
    description : ModelFile
    """
    with Path(path).open("rb") as file, _one_line(str(path)):
        _, description = _open(file)
        return description


@contextmanager
def _one_line(name: str) -> Iterator[None]:
    """Turn whatever damage leads to into a `ModelFileError` of one line."""
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{name}: {_plain(str(error))}") from error.__cause__
    except Exception as error:
        # damage may surface in any library on the way, as any kind of error
        reason = _plain(str(error)) or type(error).__name__
        raise ModelFileError(f"{name}: it is damaged ({reason})") from error


def _plain(text: str) -> str:
    """The first line of a message, without what a terminal would act upon."""
    line = next(iter(text.strip().splitlines()), "")
    return "".join(c if c.isprintable() else "?" for c in line[:300])


def _load(file: BinaryIO, name: str) -> Any:
    with _one_line(name):
        members, description = _open(file)
        model = _model_of(members, description)
        if description.header["probed"]:
            probe(model)
        if description.summary is not None:
            model.training_summary_ = description.summary
        return model


def _open(file: BinaryIO) -> tuple[dict[str, bytes], ModelFile]:
    """Members in the newest format, intact, and what they say."""
    members, header = migrate(read_archive(file, MEMBER_NAMES))
    for name in ("schema.json", "model.json", "arrays.skops"):
        require(name in members, f"it lacks {name}")
    require(
        header.get("digests") == digests(members), "its members are not those it was saved with"
    )
    for name in ("toprank", "class"):
        require(isinstance(header.get(name), str), f"its header names no {name}")
    require(type(header.get("probed")) is bool, "its header is incomplete")
    schema = read_json(members["schema.json"], "schema")
    summary = None
    if "summary.json" in members:
        summary = read_json(members["summary.json"], "training summary")
        check_summary(summary)
    return members, ModelFile(header["class"], header, schema, summary)


def _model_of(members: dict[str, bytes], description: ModelFile) -> Any:
    """Put the model together and hold it against what the file says about it."""
    names = [name for name in members if name.startswith("boosters/")]
    boosters = {int(name[9:-5]): members[name] for name in names}
    require(sorted(boosters) == list(range(len(names))), "its boosters are misnumbered")
    decoder = Decoder(
        unpack_pools(members["arrays.skops"]), [boosters[k] for k in range(len(names))]
    )
    model = decoder.whole(read_json(members["model.json"], "model"))
    require(type(model).__name__ == description.class_name, "its header names another class")
    scores = any(
        hasattr(model, name) for name in ("decision_function", "predict_proba", "transform")
    )
    require(scores, "what it holds is no model")
    require(schema_of(model) == description.schema, "its schema is not that of its model")
    require(description.header["probed"] or not _is_ours(model), "its header skips a check")
    return model


def _members_of(model: Any, X: Any, y: Any) -> dict[str, bytes]:
    """All members of the file of a model."""
    encoded = Encoder().whole(_without_summary(model))
    members = {
        "schema.json": _text(schema_of(model), indent=1),
        "model.json": _text(encoded.tree),
        "arrays.skops": pack_pools(encoded.pools),
    }
    members |= {f"boosters/{k}.json": text for k, text in enumerate(encoded.boosters)}
    summary = getattr(model, "training_summary_", None) if X is None else summarise(model, X, y)
    if summary is not None:
        members["summary.json"] = _text(summary, indent=1)
    header = {
        "format": FORMAT,
        "toprank": __version__,
        "class": type(model).__name__,
        "written_with": _versions(),
        "probed": _can_be_probed(model),
        "digests": digests(members),
    }
    return {"header.json": _text(header, indent=1), **members}


def _without_summary(model: Any) -> Any:
    """The model without its summary, which has a member of its own."""
    if not hasattr(model, "training_summary_"):
        return model
    from copy import copy

    bare = copy(model)
    vars(bare).pop("training_summary_", None)
    return bare


def _text(content: Any, indent: int | None = None) -> bytes:
    return json.dumps(content, indent=indent, ensure_ascii=False).encode()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in _WRITTEN_WITH:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _is_ours(model: Any) -> bool:
    """Whether the estimator, or the one that it wraps, is the library's own."""
    inner = model.estimator_ if is_wrapper(model) else model
    return type(inner).__module__.startswith("toprank.")


def _can_be_probed(model: Any) -> bool:
    """Whether made-up rows go through: always in our own estimators, mostly in pipelines."""
    if _is_ours(model):
        return True
    try:
        probe(model)
    except Exception:  # an encoder that refuses unknown categories, say
        return False
    return True


def _trial(model: Any, file: BinaryIO, X: Any) -> None:
    """Open a new file before it takes its place, and compare the scores of some rows."""
    again = _load(file, "the model cannot be stored")
    if X is None or not hasattr(model, "decision_function"):
        return
    rows = as_frame(X).iloc[:100] if is_table(X) else X[:100]
    before, after = (np.asarray(m.decision_function(rows)) for m in (model, again))
    if not np.array_equal(before, after, equal_nan=True):
        raise RuntimeError(
            f"the file of this {type(model).__name__} does not score as the model does; nothing was "
            "written. Please report it"
        )


def schema_of(model: Any) -> dict[str, Any]:
    """Columns, kinds, categories and classes of a model, as plain data.

    Examples
    --------
    >>> from toprank import LogisticRanker
    >>> schema_of(LogisticRanker().fit([[0.0], [1.0], [2.0]], [0, 0, 1]))
    {'columns': [{'name': 'x0', 'kind': 'number'}], 'classes': [0, 1]}
    """
    classes = getattr(model, "classes_", np.empty(0))
    described: dict[str, Any] = {"columns": [], "classes": np.asarray(classes).tolist()}
    if hasattr(model, "schema_"):
        schema = model.schema_
        described["columns"] = [{"name": c, "kind": "argument"} for c in schema.target.columns]
        described["predicates"] = [str(p.name) for p in schema.predicates]
        return described
    columns = columns_of(model)
    for name, values in zip(columns.names, columns.categories, strict=True):
        column: dict[str, Any] = {"name": name, "kind": "number" if values is None else "category"}
        if values is not None:
            column["categories"] = values.tolist()
        described["columns"].append(column)
    return described
