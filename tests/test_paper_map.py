"""docs/science/paper-map.md names every equation, and nothing that does not exist."""

import ast
import importlib
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
EQUATIONS = 79
ALGORITHMS = 3


def rows() -> list[list[str]]:
    lines = (ROOT / "docs" / "science" / "paper-map.md").read_text().splitlines()
    table = [line for line in lines if line.startswith("| (") or line.startswith("| Alg")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def numbers(label: str) -> list[int]:
    """[33, 34, 35] from "(33)–(35)", [4, 5] from "(4), (5)"."""
    found = [int(number) for number in re.findall(r"\((\d+)\)", label)]
    return list(range(found[0], found[1] + 1)) if "\u2013" in label else found


def test_every_equation_and_algorithm_is_there_once() -> None:
    listed = [number for row in rows() for number in numbers(row[0]) if row[0].startswith("(")]
    assert listed == list(range(1, EQUATIONS + 1))
    algorithms = [row[0] for row in rows() if row[0].startswith("Alg")]
    assert algorithms == [f"Algorithm {i}" for i in range(1, ALGORITHMS + 1)]


@pytest.mark.parametrize("row", rows(), ids=lambda row: str(row[0]))
def test_code_and_test_exist(row: list[str]) -> None:
    code = re.findall(r"`([\w.]+)`", row[2])
    tests = re.findall(r"`([\w.:]+)`", row[3])
    assert code
    assert tests
    for name in code:
        _resolve(name)
    for name in tests:
        file, *path = name.split("::")
        _find(ast.parse((ROOT / "tests" / file).read_text()), path)


def _resolve(name: str) -> None:
    parts = ["airpass", *name.split(".")]
    for split in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:split]))
        except ModuleNotFoundError:
            continue
        for part in parts[split:]:
            annotations = getattr(found, "__annotations__", {})
            assert hasattr(found, part) or part in annotations, f"{name} does not exist"
            found = getattr(found, part, None)
        return


def _find(tree: ast.Module, path: list[str]) -> None:
    body: list[ast.stmt] = tree.body
    for part in path:
        found = [
            node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == part
        ]
        assert found, f"no test {'::'.join(path)}"
        body = found[0].body
