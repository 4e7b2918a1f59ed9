"""The rows under results/ are from the version that their folder names."""

from pathlib import Path

import pytest

from airpass.study.store import decode

RESULTS = Path(__file__).parent.parent / "results"
WITHOUT_VERSION = ("0.1.0",)  # stored none in its rows


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*/**/rows.parquet")), ids=lambda path: path.parent.name)
def test_rows_are_from_one_version(path: Path) -> None:
    version = path.relative_to(RESULTS).parts[0]
    found = {row.version for row in decode(path)}
    assert found == ({""} if version in WITHOUT_VERSION else {version})
