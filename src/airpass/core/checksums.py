"""Checksums of the files that are read back: JSON documents, and Parquet tables.

A checksum is SHA-256 and is stored in the file. That of a JSON document is its key `sha256`, over the other
keys, so that a file may be formatted anew. That of a Parquet file covers every byte: it is written over a
placeholder in the file's metadata, and checked before the file is parsed. A file without a checksum, such as
those of airpass 0.1, is accepted as it is.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from airpass.core.errors import InvalidInput
from airpass.core.version import __version__

KEY = "sha256"  # of a JSON document
TABLE_VERSION = 2  # of Parquet files; those of airpass 0.1 have no number
_MARK = b"airpass-sha256:"
_NO_DIGEST = b"0" * 64
_SEALED = re.compile(_MARK + rb"([0-9a-f]{64})")


class Damaged(InvalidInput):
    """A stored file that is not as it was written."""


def with_checksum(document: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON document with its checksum as the last key."""
    plain = json.loads(json.dumps(document))  # keys become text, as when the file is read
    plain.pop(KEY, None)
    return {**plain, KEY: _digest(plain)}


def check_document(document: Mapping[str, Any]) -> None:
    """Raise `Damaged` if a JSON document does not fit its checksum. Without one it is accepted."""
    if KEY in document and document[KEY] != _digest(document):
        raise Damaged(
            f"does not fit its checksum, so it is damaged or was edited; after an edit, delete its key {KEY}"
        )


def _digest(document: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in document.items() if key != KEY}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def encode_table(table: Any, about: Mapping[str, str] | None = None) -> bytes:
    """A table as Parquet, with checksums of the pages and of the whole file.

    Parameters
    ----------
    table
        A `pyarrow.Table`.
    about
        Metadata.

    Returns
    -------
    bytes
        Content of the file.
    """
    import pyarrow
    from pyarrow import parquet

    seal = (_MARK + _NO_DIGEST).decode()
    notes = {**(about or {}), "format_version": str(TABLE_VERSION), "checksum": seal}
    sink = pyarrow.BufferOutputStream()
    # Without the Arrow schema, which would hold the placeholder a second time.
    with parquet.ParquetWriter(sink, table.schema, write_page_checksum=True, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(notes)
    content = bytes(sink.getvalue())
    start = content.rindex(_MARK + _NO_DIGEST) + len(_MARK)
    digest = hashlib.sha256(content).hexdigest().encode()
    return content[:start] + digest + content[start + len(digest) :]


def decode_table(content: bytes) -> Any:
    """The table of a Parquet file.

    Parameters
    ----------
    content
        Content of the file.

    Returns
    -------
    pyarrow.Table
        The table. `Damaged` is raised if a checksum does not fit, or if it is no Parquet file.
    """
    import pyarrow
    from pyarrow import parquet

    found = list(_SEALED.finditer(content))
    if found:
        start, end = found[-1].span(1)
        blank = content[:start] + _NO_DIGEST + content[end:]
        if hashlib.sha256(blank).hexdigest().encode() != found[-1].group(1):
            raise Damaged("does not fit its checksum")
    try:
        source = pyarrow.BufferReader(content)
        table = parquet.ParquetFile(source, page_checksum_verification=True).read(use_threads=False)
        table.validate(full=True)
        notes = table.schema.metadata or {}
        version = int(notes.get(b"format_version", b"1"))
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, KeyError, MemoryError) as error:
        text = str(error).strip().partition("\n")[0].partition(". ")[0]
        raise Damaged(f"not a Parquet file ({text or type(error).__name__})") from None
    if version > TABLE_VERSION:
        raise InvalidInput(
            f"has format version {version}; airpass {__version__} reads versions up to {TABLE_VERSION}: "
            "install a newer one"
        )
    if b"format_version" in notes and not found:
        raise Damaged("has no checksum, as its metadata were changed")
    return table
