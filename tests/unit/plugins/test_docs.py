"""Documentation of every module equals its argument spec."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = "ansible_collections.gpunode.serving.plugins"
MODULES = sorted(path.stem for path in (ROOT / "plugins/modules").glob("[a-z]*.py"))
SPEC_KEYS = ("type", "elements", "choices", "default", "required")


def documented(name: str) -> dict[str, Any]:
    """Options as the module's documentation and its fragments give them."""
    data = yaml.safe_load(importlib.import_module(f"{PACKAGE}.modules.{name}").DOCUMENTATION)
    options = dict(data["options"])
    for fragment in data.get("extends_documentation_fragment", []):
        module = importlib.import_module(f"{PACKAGE}.doc_fragments.{fragment.rsplit('.', 1)[1]}")
        options |= yaml.safe_load(module.ModuleDocFragment.DOCUMENTATION)["options"]
    return options


def contract(option: dict[str, Any]) -> dict[str, Any]:
    """What documentation and specification must agree on."""
    return {key: option[key] for key in SPEC_KEYS if option.get(key) not in (None, False)}


@pytest.mark.parametrize("name", MODULES)
def test_options_equal_the_argument_spec(name: str) -> None:
    spec = importlib.import_module(f"{PACKAGE}.module_utils._module.{name}").ARGUMENT_SPEC
    options = documented(name)
    assert set(options) == set(spec)
    for option, wanted in spec.items():
        assert contract(options[option]) == contract(wanted), option
        assert options[option]["description"]


@pytest.mark.parametrize("name", MODULES)
def test_examples_and_results_are_documented(name: str) -> None:
    module = importlib.import_module(f"{PACKAGE}.modules.{name}")
    data = yaml.safe_load(module.DOCUMENTATION)
    assert data["module"] == name
    assert {"check_mode", "diff_mode"} <= set(data["attributes"])
    assert all("name" in task for task in yaml.safe_load(module.EXAMPLES))
    assert all({"description", "returned", "type"} <= set(entry) for entry in yaml.safe_load(module.RETURN).values())


@pytest.mark.parametrize("name", MODULES)
def test_a_module_file_is_documentation_and_main(name: str) -> None:
    source = (ROOT / f"plugins/modules/{name}.py").read_text(encoding="utf-8")
    code = source.split('"""\n\nfrom ansible.module_utils.basic')[1]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
