"""Zip archives with known members, checked before anything is unpacked.

Only the plain form that `write_archive` makes is read: no comment, nothing before or after, no zip64, no
encryption, members stored or deflated, each name known and there once. What a member declares is held
against what the file can hold, so that a small file cannot ask for a large part of the memory.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Mapping
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from toprank.persistence.errors import require

__all__ = ["read_archive", "write_archive"]

MOST_MEMBERS = 10_000
MOST_BYTES = 2**31 - 2**20  # of the file; more would need zip64
RATIO = 200  # a member above a megabyte may not be packed more tightly than this
SMALL = 2**20
_EPOCH = (1980, 1, 1, 0, 0, 0)  # no clock in the file
_END = struct.Struct("<4s4H2LH")  # the end of the central directory
_ENTRY = 46 + 300  # bytes of one entry of the directory, with a name of reasonable length


def write_archive(members: Mapping[str, bytes], target: BinaryIO) -> None:
    """Write members in their order, deflated where that helps.

    Examples
    --------
    >>> import io, re
    >>> buffer = io.BytesIO()
    >>> write_archive({"a.json": b"{}"}, buffer)
    >>> read_archive(buffer, re.compile("a.json"))
    {'a.json': b'{}'}
    """
    with ZipFile(target, "w", allowZip64=False) as archive:
        for name, data in members.items():
            info = ZipInfo(name, date_time=_EPOCH)
            packed = len(zlib.compress(data, 6)) if len(data) < MOST_BYTES else len(data)
            tight = len(data) > SMALL and packed * RATIO < 2 * len(data)  # never near the limit
            info.compress_type = ZIP_STORED if tight or packed >= len(data) else ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, data, compresslevel=6)


def read_archive(source: BinaryIO, names: re.Pattern[str]) -> dict[str, bytes]:
    """Check an archive and return its members.

    Parameters
    ----------
    source : binary file
    names : compiled pattern
        What the whole name of a member may be.
    """
    _check_ends(source)
    source.seek(0)
    with ZipFile(source) as archive:
        infos = archive.infolist()
        _check_members(infos, names)
        members = {}
        for info in infos:
            data = archive.read(info)
            require(len(data) == info.file_size, f"member {info.filename!r} is cut short")
            members[info.filename] = data
        return members


def _check_ends(source: BinaryIO) -> None:
    """Check that the file begins and ends as a plain zip archive does."""
    size = source.seek(0, io.SEEK_END)
    require(size >= _END.size, "it is not a model file (too short)")
    require(size <= MOST_BYTES, "it is larger than a model file can be")
    source.seek(0)
    require(source.read(4) == b"PK\x03\x04", "it is not a model file (not a zip archive)")
    source.seek(size - _END.size)
    magic, disk, start_disk, here, total, length, offset, comment = _END.unpack(
        source.read(_END.size)
    )
    require(magic == b"PK\x05\x06" and comment == 0, "it is cut short or has something appended")
    require(disk == start_disk == 0 and here == total, "it is one part of several")
    require(
        0 < total <= MOST_MEMBERS and length <= MOST_MEMBERS * _ENTRY, "it has too many members"
    )
    require(offset + length + _END.size == size, "it is not laid out as a model file is")


def _check_members(infos: list[ZipInfo], names: re.Pattern[str]) -> None:
    """Check names and declared sizes."""
    seen = set()
    for info in infos:
        name = info.filename
        known = names.fullmatch(name) is not None
        require(known, f"it holds {name[:60]!r}, which does not belong in a model file")
        require(name not in seen, f"it holds {name!r} twice")
        seen.add(name)
        require(info.flag_bits & 0x1 == 0, f"member {name!r} is encrypted")
        plain = info.compress_type in (ZIP_STORED, ZIP_DEFLATED)
        require(plain, f"member {name!r} is packed in an unknown way")
        declared = info.file_size
        stored = info.compress_type == ZIP_STORED
        fits = declared == info.compress_size if stored else declared <= MOST_BYTES
        require(fits, f"member {name!r} declares {declared} bytes, which it cannot hold")
        packed = declared > SMALL and declared > RATIO * info.compress_size
        require(not packed, f"member {name!r} is packed too tightly to be trusted")
    total = sum(info.file_size for info in infos)
    require(total <= MOST_BYTES, f"it declares {total} bytes in all, too many")
