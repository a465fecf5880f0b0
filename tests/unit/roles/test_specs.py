"""Every role keeps its contract: spec equals defaults, main files are tables of contents, phases are short."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
ROLES = sorted(path.parent.parent for path in ROOT.glob("roles/*/meta/main.yml"))
TASK_FILES = sorted(path for folder in ("roles", "playbooks") for path in (ROOT / folder).glob("**/tasks/*.yml"))
LIMIT = 100

every_role = pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@every_role
def test_defaults_equal_the_argument_spec_in_keys_and_values(role: Path) -> None:
    options = load(role / "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    defaults = load(role / "defaults/main.yml") or {}
    optional = {name: option["default"] for name, option in options.items() if not option.get("required")}
    assert optional == defaults


@every_role
def test_every_input_has_the_roles_prefix_a_type_and_a_description(role: Path) -> None:
    for entry in load(role / "meta/argument_specs.yml")["argument_specs"].values():
        for name, option in (entry.get("options") or {}).items():
            assert name.startswith(f"{role.name}_")
            assert {"type", "description"} <= set(option), name


@every_role
def test_the_main_file_is_a_table_of_contents(role: Path) -> None:
    tasks = load(role / "tasks/main.yml")
    allowed = {"name", "ansible.builtin.import_tasks", "ansible.builtin.include_tasks", "when", "tags", "vars"}
    assert [task for task in tasks if not set(task) <= allowed] == []


@every_role
def test_a_role_has_its_phases_its_readme_and_its_scenario(role: Path) -> None:
    for name in ("tasks/preflight.yml", "tasks/verify.yml", "README.md", "molecule/default/molecule.yml"):
        assert (role / name).is_file(), name
    assert list((role / "molecule/default/tests").glob("test_*.py"))


@every_role
def test_every_variable_of_a_role_says_whose_it_is(role: Path) -> None:
    variables = load(role / "vars/main.yml") if (role / "vars/main.yml").is_file() else {}
    assert [name for name in variables or {} if not name.startswith(f"__{role.name}_")] == []


@pytest.mark.parametrize("path", TASK_FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_task_file_is_long(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LIMIT


def test_nothing_that_is_installed_knows_of_the_rehearsal() -> None:
    files = [path for folder in ("roles", "playbooks", "plugins") for path in (ROOT / folder).rglob("*") if path.is_file()]
    texts = [path for path in files if path.suffix != ".pyc"]
    assert texts
    assert [str(path.relative_to(ROOT)) for path in texts if b"rehears" in path.read_bytes().lower()] == []
