"""The library stays carryable: only the seams import what the standard library does not have."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

UTILS = Path(__file__).resolve().parents[3] / "plugins" / "module_utils"
ALLOWED = {"_kube.py": {"kubernetes", "urllib3"}, "_http.py": {"httpx"}}


def imported(path: Path) -> set[str]:
    """Top-level names of absolute imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(str(node.module).split(".")[0])
    return found


@pytest.mark.parametrize("path", sorted(UTILS.rglob("*.py")), ids=lambda path: path.name)
def test_imports(path: Path) -> None:
    foreign = imported(path) - set(sys.stdlib_module_names)
    assert foreign <= ({"ansible"} if path.parent.name == "_module" else ALLOWED.get(path.name, set()))


def test_every_file_of_the_library_is_private_or_a_modules_body() -> None:
    names = [path.name for path in UTILS.glob("*.py")]
    assert names
    assert all(name.startswith("_") for name in names)
