"""What a user would lose if the Go parts drifted: the versions promised, the lock, a build that explains itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rehearsal import goparts
from rehearsal.config import K3S_VERSION
from rehearsal.goparts import PARTS, GoPart
from rehearsal.workshop import CommandError, RehearsalError, Workshop

every_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)


@dataclass
class FakeGo(Workshop):
    """A workshop whose compiler writes a file, writes nothing, or fails; it keeps what it was asked."""

    version: str = "go1.26.8"
    leaves_nothing: bool = False
    fails_with: str = ""
    builds: list[list[str]] = field(default_factory=list)
    environments: list[Mapping[str, str]] = field(default_factory=list)

    def run(self, argv, *, cwd=None, env=None, stdin=None, timeout=None):  # type: ignore[no-untyped-def]
        words = [str(word) for word in argv]
        if "env" in words:
            return f"{self.version}\namd64\n"
        self.builds.append(words)
        self.environments.append(env)
        if self.fails_with:
            raise CommandError(words, 1, self.fails_with)
        if "build" in words and not self.leaves_nothing:
            Path(words[words.index("-o") + 1]).write_text("program")
        return ""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GoPart:
    """One part of one command in a module folder of its own."""
    part = GoPart(
        name="toy",
        upstream="example.org/toy/v2",
        commands={"toyd": "example.org/toy/v2/cmd/toyd"},
        links={"toyctl": "toyd"},
        variables={"example.org/toy/v2.Version": "v{version}"},
        needs=("libtoy-dev",),
    )
    module = tmp_path / "go" / "toy"
    module.mkdir(parents=True)
    (module / "go.mod").write_text("module toys\n\nrequire example.org/toy/v2 v2.0.1 // indirect\n")
    (module / "go.sum").write_text("example.org/toy/v2 v2.0.1 h1:one=\n")
    monkeypatch.setattr(goparts, "GO_MODULES", tmp_path / "go")
    monkeypatch.setattr(goparts, "PARTS", (part,))
    return part


@pytest.fixture
def workshop(tmp_path: Path) -> FakeGo:
    return FakeGo(root=tmp_path / "cache", log_path=tmp_path / "log")


def replacements(go_mod: str) -> list[re.Match[str]]:
    return list(re.finditer(r"^(?:replace)?\s*(?P<old>\S+) => (?P<new>\S+)(?: (?P<version>\S+))?$", go_mod, re.MULTILINE))


# ---- what is in the repository


@every_part
def test_upstream_is_locked_by_hash(part: GoPart) -> None:
    version = goparts.part_version(part)
    assert re.search(
        rf"^{re.escape(part.upstream)} v{re.escape(version)} h1:\S+=$", (part.module / "go.sum").read_text(), re.MULTILINE
    )


@every_part
def test_go_mod_tidy_would_keep_every_command(part: GoPart) -> None:
    go_mod = (part.module / "go.mod").read_text()
    for package in part.commands.values():
        if package == ".":
            assert (part.module / "main.go").is_file()
        else:
            assert re.search(rf"^(?:tool)?\s*{re.escape(package)}$", go_mod, re.MULTILINE), f"no tool line for {package}"


@every_part
def test_no_module_comes_from_anywhere_else(part: GoPart) -> None:
    """A replacement by a folder or by a fork would make go.sum's hashes say nothing about upstream."""
    for replacement in replacements((part.module / "go.mod").read_text()):
        assert replacement["old"] == replacement["new"]


@every_part
def test_links_lead_to_programs_of_the_same_part(part: GoPart) -> None:
    assert set(part.links.values()) <= set(part.commands)


def test_two_parts_never_give_the_same_file() -> None:
    files = [name for part in PARTS for name in part.files]
    assert len(files) == len(set(files))


def test_every_staging_module_of_kubernetes_is_at_its_version() -> None:
    part = goparts.find_part("kubernetes")
    go_mod = (part.module / "go.mod").read_text()
    staging = "v0." + goparts.part_version(part).split(".", 1)[1]
    replaced = {match["old"]: match["version"] for match in replacements(go_mod)}
    assert set(replaced.values()) == {staging}
    required = dict(re.findall(rf"^(?:require)?\s*(\S+) (v0\.0\.0|{re.escape(staging)})(?: // indirect)?$", go_mod, re.MULTILINE))
    assert required.keys() <= replaced.keys()


def test_node_reports_the_release_that_the_sources_are_of() -> None:
    part = goparts.find_part("kubernetes")
    assert K3S_VERSION.split("+")[0] == f"v{goparts.part_version(part)}"
    assert part.variables["k8s.io/component-base/version.gitVersion"] == K3S_VERSION
    assert part.variables["k8s.io/component-base/version.gitMinor"] == goparts.part_version(part).split(".")[1]


def test_every_component_of_kubernetes_can_be_called_by_its_name() -> None:
    part = goparts.find_part("kubernetes")
    dispatched = set(re.findall(r'^\t"(kube[a-z-]+)":|name == "(kubectl)"', (part.module / "main.go").read_text(), re.MULTILINE))
    assert {first or second for first, second in dispatched} == set(part.links)


# ---- building


def test_artifact_has_the_programs_and_links_and_nothing_else(workshop: FakeGo, toy: GoPart) -> None:
    folder = goparts.build_part(workshop, "toy")
    assert sorted(path.name for path in folder.iterdir()) == toy.files == ["toyctl", "toyd"]
    assert (folder / "toyctl").readlink() == Path("toyd")


def test_build_is_static_stripped_and_cannot_move_the_lock(workshop: FakeGo, toy: GoPart) -> None:
    goparts.build_part(workshop, "toy")
    (words,) = workshop.builds
    assert "-ldflags=-s -w -X=example.org/toy/v2.Version=v2.0.1" in words
    assert {"-trimpath", "-buildvcs=false"} <= set(words)
    assert workshop.environments == [
        {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off", "GOOS": "linux", "GOARCH": "amd64"}
    ]


def test_same_sources_are_built_once(workshop: FakeGo, toy: GoPart) -> None:
    assert goparts.build_part(workshop, "toy") == goparts.build_part(workshop, "toy")
    assert len(workshop.builds) == 1


@pytest.mark.parametrize("name", ["go.mod", "go.sum", "main.go"])
def test_changed_source_is_built_again(workshop: FakeGo, toy: GoPart, name: str) -> None:
    before = goparts.build_part(workshop, "toy")
    with (toy.module / name).open("a") as handle:
        handle.write("// changed\n")
    assert goparts.build_part(workshop, "toy") != before


def test_other_compiler_builds_again(workshop: FakeGo, toy: GoPart) -> None:
    before = goparts.build_part(workshop, "toy")
    workshop.version = "go1.27.0"
    assert goparts.build_part(workshop, "toy") != before


def test_modules_are_fetched_for_parts_that_are_yet_to_be_built(workshop: FakeGo, toy: GoPart) -> None:
    goparts.fetch_all(workshop)
    assert workshop.builds == [["go", "list", "-deps", '-f={{""}}', "example.org/toy/v2/cmd/toyd"]]


def test_nothing_is_fetched_for_a_part_that_is_there(workshop: FakeGo, toy: GoPart) -> None:
    goparts.build_part(workshop, "toy")
    workshop.builds.clear()
    goparts.fetch_all(workshop)
    assert workshop.builds == []


def test_failed_fetch_is_left_to_the_build(workshop: FakeGo, toy: GoPart) -> None:
    workshop.fails_with = "dial tcp: no route to host"
    goparts.fetch_all(workshop)
    with pytest.raises(RehearsalError, match="no route to host"):
        goparts.build_part(workshop, "toy")


# ---- errors


def test_unknown_part_lists_the_known(workshop: FakeGo, toy: GoPart) -> None:
    with pytest.raises(RehearsalError, match=r"no Go part 'etdc'; there are: toy"):
        goparts.build_part(workshop, "etdc")


def test_failed_build_names_part_package_module_and_remedy(workshop: FakeGo, toy: GoPart) -> None:
    workshop.fails_with = "fatal error: toy.h: No such file"
    with pytest.raises(RehearsalError) as caught:
        goparts.build_part(workshop, "toy")
    for text in ("part toy", "example.org/toy/v2/cmd/toyd", str(toy.module / "go.mod"), "libtoy-dev", "toy.h"):
        assert text in str(caught.value)


def test_build_without_a_program_names_part_and_module(workshop: FakeGo, toy: GoPart) -> None:
    workshop.leaves_nothing = True
    with pytest.raises(RehearsalError) as caught:
        goparts.build_part(workshop, "toy")
    assert "toyd of part toy" in str(caught.value)
    assert str(toy.module) in str(caught.value)
    assert not list((workshop.root / "artifacts").glob("part-toy-????????????"))


def test_missing_module_is_said_with_its_path(workshop: FakeGo, toy: GoPart) -> None:
    (toy.module / "go.mod").unlink()
    with pytest.raises(RehearsalError, match=r"cannot read .*/toy/go\.mod: .*part toy"):
        goparts.build_part(workshop, "toy")


def test_upstream_that_is_not_required_is_said(workshop: FakeGo, toy: GoPart) -> None:
    (toy.module / "go.mod").write_text("module toys\n\nreplace example.org/toy/v2 => example.org/fork v2.0.1\n")
    with pytest.raises(RehearsalError, match=r"does not require example\.org/toy/v2"):
        goparts.build_part(workshop, "toy")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("require example.org/a v1.2.3\n", "v1.2.3"),
        ("require (\n\texample.org/a v1.2.3 // indirect\n)\n", "v1.2.3"),
        ("require example.org/a/v2 v2.0.0\n", None),
        ("replace example.org/a => example.org/a v1.2.3\n", None),
        ("tool example.org/a\n", None),
        ("// example.org/a v1.2.3\n", None),
    ],
)
def test_required_version(text: str, version: str | None) -> None:
    assert goparts.required_version(text, "example.org/a") == version
