"""Model files: save, load, describe, and the archive around a model.

A model file is a zip archive of

- `header.json`: the format, the class, the versions it was written with, a digest of each other member;
- `schema.json`: the columns with their kinds and categories, and the classes;
- `summary.json`: what the training rows looked like (where they were given);
- `model.json`: parameters and fitted state as plain data;
- `arrays/f8.bin`, ...: the cells of its arrays, little-endian, one member for each type; the trees of XGBoost's
  boosters are among them.

Nothing in it is code, and everything is checked before compiled code sees it. Only plain archives as `save`
writes are read: one member after the other, without gaps, overlaps, comments, extra fields, zip64 or
encryption, each name known and there once. What a file may unpack to, and how many values its JSON may hold,
is in proportion to its own length (`Budget`) and counted before anything is allocated: a small file cannot ask
for a large part of the memory. The same fit gives the same file, byte by byte.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, LargeZipFile, ZipFile, ZipInfo

import numpy as np

from toprank._version import __version__, versions
from toprank.columns import as_frame, is_table
from toprank.formatting import first_line
from toprank.persistence.checks import ModelFileError, is_wrapper, require
from toprank.persistence.encoding import ARRAY_TYPE, Decoder, Encoder
from toprank.persistence.schema import check_summary, probe, schema_of, summarise

__all__ = [
    "FORMAT",
    "Budget",
    "ModelFile",
    "describe",
    "load",
    "read_archive",
    "save",
    "write_archive",
]

FORMAT = 4  # of the files that are written, and the only one that is read
WRITTEN_WITH = ("python", "numpy", "scikit-learn", "xgboost", "xgboost-cpu")
MEMBER_NAMES = re.compile(
    rf"header\.json|schema\.json|summary\.json|model\.json|arrays/(?:{ARRAY_TYPE.pattern})\.bin"
)
Members = dict[str, bytes]
StrPath = str | os.PathLike[str]


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
            except LargeZipFile as error:
                raise ValueError(
                    f"the model takes more than {MAX_BYTES / 2**30:.1f} GiB, which is more than "
                    "a model file holds; train a smaller one"
                ) from error
        with temporary.open("rb") as file:
            _try_out(model, file, X)


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
        When the file is damaged, hostile, or of another format; the message is one line.
    MemoryError
        When the model is larger than the memory that is left.
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
    with Path(path).open("rb") as file, _one_line_errors(str(path)):
        return _open(file, Budget.of(file))[1]


# -- writing ------------------------------------------------------------------------------------------


def _members_of(model: Any, X: Any, y: Any) -> Members:
    """Return all members of the file of a model."""
    summary = getattr(model, "training_summary_", None) if X is None else summarise(model, X, y)
    encoder = Encoder()
    members = {
        "schema.json": _to_json(schema_of(model), indent=1),
        "model.json": _to_json(encoder.encode(model)),
    }
    members |= {f"arrays/{name}.bin": cells for name, cells in encoder.cells().items()}
    if summary is not None:
        members["summary.json"] = _to_json(summary, indent=1)
    header = {
        "format": FORMAT,
        "toprank": __version__,
        "class": type(model).__name__,
        "written_with": {k: v for k, v in versions().items() if k in WRITTEN_WITH},
        "probed": _can_be_probed(model),
        "digests": digests(members),
    }
    return {"header.json": _to_json(header, indent=1), **members}


def _to_json(content: Any, indent: int | None = None) -> bytes:
    return json.dumps(content, indent=indent, ensure_ascii=False).encode()


def digests(members: Mapping[str, bytes]) -> dict[str, str]:
    """Return the SHA-256 of every member but the header."""
    others = {name: data for name, data in members.items() if name != "header.json"}
    return {name: hashlib.sha256(data).hexdigest() for name, data in others.items()}


def _is_ours(model: Any) -> bool:
    """Whether the estimator, or the one that it wraps, is the library's own."""
    inner = model.estimator_ if is_wrapper(model) else model
    return type(inner).__module__.startswith("toprank.")


def _can_be_probed(model: Any) -> bool:
    """Whether the model scores made-up rows: our own estimators always do, pipelines mostly."""
    if _is_ours(model):
        return True
    try:
        probe(model)
    except Exception:  # an encoder that refuses unknown categories, say
        return False
    return True


def _try_out(model: Any, file: BinaryIO, X: Any) -> None:
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


# -- reading ------------------------------------------------------------------------------------------


@contextmanager
def _one_line_errors(name: str) -> Iterator[None]:
    """Turn whatever error damage leads to, in any library, into a `ModelFileError` of one line."""
    try:
        yield
    except Exception as error:
        known = isinstance(error, ModelFileError)
        if any(map(_is_out_of_memory, (error, error.__cause__))):
            raise MemoryError(
                f"{name}: there is not enough memory to open it; close other programs, or use a larger "
                "machine"
            ) from error
        reason = first_line(error) or type(error).__name__
        raise ModelFileError(
            f"{name}: {reason}" if known else f"{name}: it is damaged ({reason})"
        ) from (error.__cause__ if known else error)


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Whether memory ran out, which compiled code says in its own words."""
    return isinstance(error, MemoryError) or "bad_alloc" in str(error)


def _load(file: BinaryIO, name: str) -> Any:
    with _one_line_errors(name):
        budget = Budget.of(file)
        members, description = _open(file, budget)
        model = _model_of(members, description, budget)
        if description.header["probed"]:
            probe(model)
        if description.summary is not None:
            model.training_summary_ = description.summary
        return model


def _open(file: BinaryIO, budget: Budget) -> tuple[Members, ModelFile]:
    """Return the members, if they are intact, and what they say."""
    members = read_archive(file, budget)
    require("header.json" in members, "it has no header, so it is not a model file")
    header = budget.read_json(members["header.json"], "header")
    number, version = header.get("format"), header.get("toprank")
    require(type(number) is int and number >= 1, "its header names no format")
    writer = f" by toprank {version}" if isinstance(version, str) and len(version) < 30 else ""
    wrong = f"it was written{writer} in format {number}; this toprank reads format {FORMAT}: fit it again"
    require(number == FORMAT, wrong)
    for name in ("schema.json", "model.json"):
        require(name in members, f"it lacks {name}")
    intact = header.get("digests") == digests(members)
    require(intact, "its members are not those it was saved with")
    for name in ("toprank", "class"):
        require(isinstance(header.get(name), str), f"its header names no {name}")
    require(type(header.get("probed")) is bool, "its header is incomplete")
    summary = None
    if "summary.json" in members:
        summary = budget.read_json(members["summary.json"], "training summary")
        check_summary(summary)
    schema = budget.read_json(members["schema.json"], "schema")
    return members, ModelFile(header["class"], header, schema, summary)


def _model_of(members: Members, description: ModelFile, budget: Budget) -> Any:
    """Put the model together and compare it with what the file says about it."""
    arrays = {name[7:-4]: data for name, data in members.items() if name.startswith("arrays/")}
    model = Decoder(arrays).decode_model(budget.read_json(members["model.json"], "model"))
    require(type(model).__name__ == description.class_name, "its header names another class")
    methods = ("decision_function", "predict_proba", "transform")
    require(any(hasattr(model, name) for name in methods), "what it holds is no model")
    require(schema_of(model) == description.schema, "its schema is not that of its model")
    require(description.header["probed"] or not _is_ours(model), "its header skips a check")
    return model


# -- what a file may unpack to ------------------------------------------------------------------------

FREE_BYTES, BYTES_FOR_EACH = 2**22, 64  # a file of n bytes may unpack to 2**22 + 64 n bytes
FREE_NODES, NODES_FOR_EACH = 500_000, 2  # and hold 500,000 + 2 n values of JSON
MAX_NESTING = 400  # of JSON


class Budget:
    """What a file of a length may still unpack to, over all of its members.

    Examples
    --------
    >>> Budget(1000).read_json(b'{"a": [1, 2]}', "header")
    {'a': [1, 2]}
    """

    def __init__(self, n_bytes: int) -> None:
        self.bytes_left = FREE_BYTES + BYTES_FOR_EACH * n_bytes
        self.nodes_left = FREE_NODES + NODES_FOR_EACH * n_bytes

    @classmethod
    def of(cls, file: BinaryIO) -> Budget:
        return cls(file.seek(0, os.SEEK_END))

    def take_bytes(self, n_bytes: int) -> None:
        """Take bytes that a member declares before it is unpacked."""
        self.bytes_left -= n_bytes
        require(self.bytes_left >= 0, "it is packed too tightly to be trusted")

    def read_json(self, text: bytes, what: str) -> Any:
        """Parse JSON that must be an object, after its values were counted."""
        n_nodes, nesting = measure_json(text)
        self.nodes_left -= n_nodes
        require(self.nodes_left >= 0, f"its {what} holds more values than such a file may")
        require(nesting <= MAX_NESTING, f"its {what} cannot be read (it nests too deeply)")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ModelFileError(f"its {what} cannot be read ({first_line(error)})") from error
        require(isinstance(found, dict), f"its {what} cannot be read")
        return found


# A string, or what is left of the text where it does not end; the parser gives up there, too.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_BLOCK = 2**20


def measure_json(text: bytes) -> tuple[int, int]:
    """Return a bound on the number of values in a text of JSON, and how deeply it nests.

    Examples
    --------
    >>> measure_json(b'{"a,[": [1, 2], "b": {}}')
    (6, 2)
    """
    bare = _STRING.sub(b"", text)
    n_nodes = 1 + sum(map(bare.count, (b",", b"[", b"{")))
    deepest = level = 0
    for start in range(0, len(bare), _BLOCK):
        marks = np.frombuffer(bare, np.uint8, min(_BLOCK, len(bare) - start), start)
        opens, closes = (marks | 0x20) == ord("{"), (marks | 0x20) == ord("}")  # [ and ] too
        levels = level + np.cumsum(opens.astype(np.int8) - closes.astype(np.int8), dtype=np.int64)
        deepest, level = max(deepest, int(levels.max())), int(levels[-1])
    return n_nodes, deepest


# -- the archive --------------------------------------------------------------------------------------

MAX_MEMBERS = 1_000
MAX_BYTES = 2**31 - 2**20  # of the file; more would need zip64
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the file
_END = struct.Struct("<4s4H2LH")  # the end of the central directory
DEFLATE_LEVEL = 4  # much quicker than 6, and files are hardly larger
_LOCAL = struct.Struct("<4s5H3L2H")  # what stands before the data of a member
_ENTRY = 46 + 300  # bytes of one entry of the directory, with a name of reasonable length
_LAYOUT = "it is not laid out as a model file is"


def write_archive(members: Mapping[str, bytes], target: BinaryIO) -> None:
    """Write members in their order, deflated where that helps and stays well within the budget."""
    with ZipFile(target, "w", allowZip64=False) as archive:
        for name, data in members.items():
            info = ZipInfo(name, date_time=_EPOCH)
            info.create_system = 3  # the same bytes whatever system writes them
            info.compress_type = ZIP_DEFLATED if _may_be_packed(name, data) else ZIP_STORED
            info.external_attr = 0o644 << 16
            archive.writestr(info, data, compresslevel=DEFLATE_LEVEL)


def _may_be_packed(name: str, data: bytes) -> bool:
    """Whether deflating makes a member smaller, and not so small that a reader must take it for a bomb."""
    if len(data) >= MAX_BYTES:
        return False
    packed = len(zlib.compress(data, DEFLATE_LEVEL))
    within = 2 * len(data) <= BYTES_FOR_EACH * packed
    if within and name.endswith(".json"):
        within = measure_json(data)[0] <= NODES_FOR_EACH * packed
    return packed < len(data) and (within or len(data) < 2**16)


def read_archive(source: BinaryIO, budget: Budget | None = None) -> Members:
    """Check an archive and return its members."""
    directory = _check_ends(source)
    budget = budget or Budget.of(source)
    source.seek(0)
    with ZipFile(source) as archive:
        infos = archive.infolist()
        _check_members(infos)
        _check_layout(source, infos, directory)
        for info in infos:
            budget.take_bytes(info.file_size)
        members = {info.filename: archive.read(info) for info in infos}
    for info in infos:
        whole = len(members[info.filename]) == info.file_size
        require(whole, f"member {info.filename!r} is cut short")
    return members


def _check_ends(source: BinaryIO) -> int:
    """Check that the file begins and ends as a plain zip archive; return the place of its directory."""
    size = source.seek(0, io.SEEK_END)
    require(size >= _END.size, "it is not a model file (too short)")
    require(size <= MAX_BYTES, "it is larger than a model file can be")
    source.seek(0)
    require(source.read(4) == b"PK\x03\x04", "it is not a model file (not a zip archive)")
    source.seek(size - _END.size)
    end = _END.unpack(source.read(_END.size))
    magic, disk, start_disk, here, total, length, offset, comment = end
    require(magic == b"PK\x05\x06" and comment == 0, "it is cut short or has something appended")
    require(disk == start_disk == 0 and here == total, "it is one part of several")
    few = 0 < total <= MAX_MEMBERS and length <= MAX_MEMBERS * _ENTRY
    require(few, "it has too many members")
    require(offset + length + _END.size == size, _LAYOUT)
    return offset


def _check_members(infos: list[ZipInfo]) -> None:
    """Check names and declared sizes."""
    seen = set()
    for info in infos:
        name, declared = info.filename, info.file_size
        known = MEMBER_NAMES.fullmatch(name) is not None
        require(known, f"it holds {name[:60]!r}, which does not belong in a model file")
        require(name not in seen, f"it holds {name!r} twice")
        seen.add(name)
        require(info.flag_bits & 0x1 == 0, f"member {name!r} is encrypted")
        plain = info.compress_type in (ZIP_STORED, ZIP_DEFLATED)
        require(plain, f"member {name!r} is packed in an unknown way")
        stored = info.compress_type == ZIP_STORED
        fits = declared == info.compress_size if stored else declared <= MAX_BYTES
        require(fits, f"member {name!r} declares {declared} bytes, which it cannot hold")


def _check_layout(source: BinaryIO, infos: list[ZipInfo], directory: int) -> None:
    """Check that the members follow one another from the start of the file to its directory.

    Members that overlap would let a few bytes be unpacked thousands of times.
    """
    place = 0
    for info in infos:
        source.seek(info.header_offset)
        local = source.read(_LOCAL.size)
        own = info.header_offset == place and len(local) == _LOCAL.size and not info.extra
        require(own, _LAYOUT)
        *_, name_length, extra_length = _LOCAL.unpack(local)
        require(extra_length == 0, _LAYOUT)
        place += _LOCAL.size + name_length + info.compress_size
    require(place == directory, _LAYOUT)
