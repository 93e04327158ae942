"""Formats of model files, and the way from each to the next.

A file is first read as members (name -> bytes). `MIGRATIONS[n]` turns the members of format n into those
of format n + 1; the newest format is the only one that the rest of the package knows.

Format 1 kept the schema inside the header, gave no digests, did not say whether made-up rows go through the
model, and numbered boosters in the root of the archive (`booster_0.json`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from toprank.persistence.errors import require
from toprank.registry import ESTIMATORS, RELATIONAL, TRANSFORMERS

__all__ = ["FORMAT", "MEMBER_NAMES", "digests", "migrate", "read_json"]

FORMAT = 2
HEADER = "header.json"
# Names of members in any format.
MEMBER_NAMES = re.compile(
    r"header\.json|schema\.json|summary\.json|model\.json|arrays\.skops"
    r"|boosters/[0-9]{1,5}\.json|booster_[0-9]{1,5}\.json"
)

Members = dict[str, bytes]


def read_json(data: bytes, what: str) -> Any:
    """Parse JSON that must be an object."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        first = str(error).splitlines()[0]
        require(False, f"its {what} cannot be read ({first})")
    require(isinstance(found, dict), f"its {what} cannot be read")
    return found


def digests(members: Mapping[str, bytes]) -> dict[str, str]:
    """SHA-256 of every member but the header."""
    return {
        name: hashlib.sha256(data).hexdigest() for name, data in members.items() if name != HEADER
    }


def migrate(members: Members) -> tuple[Members, dict[str, Any]]:
    """Bring members to the newest format; return them and the header."""
    require(HEADER in members, "it has no header, so it is not a model file")
    header = read_json(members[HEADER], "header")
    number = header.get("format")
    require(type(number) is int and number >= 1, "its header names no format")
    if number > FORMAT:
        newer = header.get("toprank")
        by = f" by toprank {newer}" if isinstance(newer, str) and len(newer) < 30 else ""
        require(False, f"it was written{by} in format {number}; this toprank reads up to {FORMAT}")
    for step in range(number, FORMAT):
        members, header = MIGRATIONS[step](members, header)
    return members, header


def _from_1(members: Members, header: dict[str, Any]) -> tuple[Members, dict[str, Any]]:
    """The schema moves out of the header, boosters into a folder; digests are added."""
    require("schema" in header, "its header lacks the schema")
    ours = header.get("class") in {**ESTIMATORS, **RELATIONAL, **TRANSFORMERS}
    header = {**header, "format": 2, "probed": ours}
    schema = header.pop("schema")
    moved = {}
    for name, data in members.items():
        old = re.fullmatch(r"booster_([0-9]+)\.json", name)
        moved[f"boosters/{old[1]}.json" if old else name] = data
    moved["schema.json"] = json.dumps(schema).encode()
    header["digests"] = digests(moved)
    return moved, header


Migration = Callable[[Members, dict[str, Any]], tuple[Members, dict[str, Any]]]
MIGRATIONS: dict[int, Migration] = {1: _from_1}
