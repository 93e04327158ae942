"""Checkpoints: the trees of a fit so far, in a folder, so that a fit that was broken off can go on."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from toprank.boosting.xgboost_helpers import require_xgboost
from toprank.exchange import ALONE, Exchange
from toprank.tables import atomic_path, write_text

__all__ = ["Checkpoint", "fingerprint"]

EVERY = 25


class _Progress(NamedTuple):
    """What a checkpoint holds."""

    booster: Any
    n_rounds: int
    history: list[float]
    finished: bool


@dataclass(frozen=True)
class Checkpoint:
    """One booster's place in a folder of checkpoints.

    The trees are XGBoost's JSON; a note beside them says of which fit they are, after how many rounds, and
    what the file must look like, so that neither another fit's nor a damaged file is taken up.

    Attributes
    ----------
    folder : path
        Made if it does not exist.
    number : int
        Of the booster in its fit.
    fit : str
        Fingerprint of the fit: of its parameters and data.
    every : int
        Rounds between two checkpoints.
    exchange : Exchange
        The workers of the fit: the first of them writes, and they go on only from what all of them find.
    """

    folder: str
    number: int
    fit: str
    every: int = EVERY
    exchange: Exchange = ALONE

    @property
    def _trees(self) -> Path:
        return Path(self.folder) / f"booster-{self.number}.json"

    @property
    def _note(self) -> Path:
        return Path(self.folder) / f"booster-{self.number}.note.json"

    def write(
        self, booster: Any, n_rounds: int, history: list[float], *, finished: bool = False
    ) -> None:
        """Keep the booster: completely or not at all."""
        if self.exchange.rank != 0:
            return
        os.makedirs(self.folder, exist_ok=True)
        trees = bytes(booster.save_raw(raw_format="json"))
        with atomic_path(self._trees) as temporary:
            temporary.write_bytes(trees)
        note = {
            "fit": self.fit, "rounds": n_rounds, "history": list(history), "finished": finished,
            "sha256": hashlib.sha256(trees).hexdigest(),
        }  # fmt: skip
        write_text(json.dumps(note), self._note)

    def read(self) -> _Progress | None:
        """Return what was kept of this fit, or None; what cannot be used is named in a warning."""
        found = self._read()
        rounds = -1.0 if found is None else float(found.n_rounds)
        least, most = self.exchange.combine(np.array([rounds, -rounds]), "min") * [1, -1]
        return found if least == most else None  # workers at different rounds would wait for ever

    def _read(self) -> _Progress | None:
        if not self._note.exists():
            return None
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            trees = self._trees.read_bytes()
            same = note["fit"] == self.fit
            whole = hashlib.sha256(trees).hexdigest() == note["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            same, whole = True, False
        if not same or not whole:
            why = "is of another fit (other parameters or data)" if not same else "is damaged"
            warnings.warn(
                f"the checkpoint {self._trees} {why} and is not used; it will be overwritten",
                UserWarning,
                stacklevel=2,
            )
            return None
        booster = require_xgboost().Booster()
        booster.load_model(bytearray(trees))
        return _Progress(booster, int(note["rounds"]), note["history"], bool(note["finished"]))


def fingerprint(ranker: Any, settings: Any, *figures: Any) -> str:
    """Return a text that changes with the parameters of a fit and with figures of its data.

    Examples
    --------
    >>> from toprank import GradientBoostingRanker
    >>> fingerprint(GradientBoostingRanker(), 1) == fingerprint(GradientBoostingRanker(), 2)
    False
    """
    parameters = {k: v for k, v in ranker.get_params().items() if k not in ("n_jobs", "verbose")}
    text = json.dumps([{k: repr(v) for k, v in parameters.items()}, repr(settings), repr(figures)])
    text = re.sub(r" at 0x[0-9a-f]+", "", text)  # where a function lies differs between processes
    return hashlib.sha256(text.encode()).hexdigest()
