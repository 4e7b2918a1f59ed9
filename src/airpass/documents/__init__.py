"""Results as JSON documents, written and read; docs/reference/formats.md describes them.

Python writes floating-point numbers with as many digits as are needed to read the same number again, so a
result that is read has the bits of the one that was written. A design does not store its channels, as they
follow from scenario and antennas; its scores are checked when it is read.
"""

from airpass.documents.common import FORMAT_VERSION
from airpass.documents.reading import (
    certificate_from,
    described_damage,
    fresh_draws_from,
    layout_certificate_from,
    life_from,
    read,
    tolerance_from,
)
from airpass.documents.writing import (
    book_document,
    certificate_document,
    design_document,
    draws_document,
    encode,
    fresh_draws_document,
    history_rows,
    layout_certificate_document,
    life_document,
    life_rows,
    link_document,
    selection_document,
    set_document,
    tolerance_document,
    track_document,
    training_document,
    training_table,
)

__all__ = [
    "FORMAT_VERSION",
    "book_document",
    "certificate_document",
    "certificate_from",
    "described_damage",
    "design_document",
    "draws_document",
    "encode",
    "fresh_draws_document",
    "fresh_draws_from",
    "history_rows",
    "layout_certificate_document",
    "layout_certificate_from",
    "life_document",
    "life_from",
    "life_rows",
    "link_document",
    "read",
    "selection_document",
    "set_document",
    "tolerance_document",
    "tolerance_from",
    "track_document",
    "training_document",
    "training_table",
]
