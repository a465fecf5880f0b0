"""The promises of the whole chain. A user would lose: being able to trust `site.yml`."""

from __future__ import annotations

import base64
import json
import time

import pytest
from rehearsal import config
from rehearsal.chain import Chain
from rehearsal.report import newest_verification, overall

HUB_TOKEN = "hf_canaryOfTheChainTest0123456789"


def test_check_mode_predicts_on_a_bare_node_and_changes_nothing(chain: Chain) -> None:
    before = chain.fingerprint()
    outcome = chain.play("site.yml", "--check", "--diff")
    assert outcome.ok, chain.explain(outcome)
    assert outcome.changed > 20, "a bare node has most of it before it"
    assert chain.fingerprint() == before


WRONG = {
    "budget above the GPU's memory": (
        ["-e", "{vllm_server_args: {gpu-memory-utilization: 0.6}, vllm_server_replicas: 2}"],
        ["1.2", "gpu-memory-utilization"],
    ),
    "k3s release without a checksum": (["-e", "k3s_server_version=v1.99.9+k3s1"], ["v1.99.9+k3s1", "sha256sum-amd64.txt"]),
    "driver package that does not exist": (
        ["-e", "nvidia_driver_version=595.99.99-1"],
        ["does not offer", "nvidia-driver-cuda=595.99.99-1"],
    ),
    "driver of another branch": (["-e", "nvidia_driver_branch=111"], ["is not of branch 111"]),
    "more disk than there is": (["-e", "node_baseline_disk_free_gb=99999"], ["99999"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_stops_before_anything_is_changed(chain: Chain, case: str) -> None:
    arguments, words = WRONG[case]
    before = chain.fingerprint()
    outcome = chain.play("site.yml", *arguments)
    assert not outcome.ok
    message = "\n".join(outcome.failures)
    assert all(word in message for word in words), message
    assert outcome.changed == 0
    assert chain.fingerprint() == before


def test_taken_port_is_named_with_its_holder(chain: Chain) -> None:
    chain.node.ssh("sudo systemd-run --unit=squatter python3 -m http.server 6443")
    try:
        outcome = chain.play("site.yml")
    finally:
        chain.node.ssh("sudo systemctl stop squatter")
    message = "\n".join(outcome.failures)
    assert not outcome.ok
    assert "6443" in message, message
    assert "python3" in message, message
    assert outcome.changed == 0


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("/etc/os-release", 'ID=fedora\nNAME="Fedora Linux"\nVERSION_ID=43\n', ["Fedora"]),
        ("/proc/sys/kernel/osrelease", "6.6.87.2-microsoft-standard-WSL2\n", ["WSL2"]),
    ],
)
def test_unsupported_system_is_refused(chain: Chain, path: str, text: str, words: list[str]) -> None:
    chain.node.ssh(f"printf '%s' '{text}' | sudo tee /run/pretend >/dev/null && sudo mount --bind /run/pretend {path}")
    try:
        outcome = chain.play("site.yml")
    finally:
        chain.node.ssh(f"sudo umount {path}")
    message = "\n".join(outcome.failures)
    assert not outcome.ok
    assert all(word in message for word in words), message
    assert outcome.changed == 0


def test_unreachable_host_is_named(chain: Chain, elsewhere: tuple[str, str]) -> None:
    outcome = chain.play("site.yml", *elsewhere)
    assert not outcome.ok
    assert "Tried to reach nowhere" in "\n".join(outcome.failures), outcome.failures
    assert outcome.changed == 0


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A hub token in a file, as a user would hand it over."""
    path = tmp_path_factory.mktemp("secrets") / "token.yml"
    path.write_text(f"vllm_server_hf_token: {HUB_TOKEN}\n")
    return ("-e", f"@{path}")


def test_bare_node_becomes_a_service(chain: Chain, secrets: tuple[str, str]) -> None:
    since = time.time()
    outcome = chain.play("site.yml", "--diff", *secrets)
    assert outcome.ok, chain.explain(outcome)
    path = newest_verification(config.REPO / "results", since)
    assert path is not None
    document = json.loads(path.read_text())
    assert overall(document["checks"]) == "pass", document["checks"]
    assert document["completion"]
    assert document["labels"]["simulated"], "a result says what was simulated"


def test_second_run_changes_nothing(chain: Chain, secrets: tuple[str, str]) -> None:
    outcome = chain.play("site.yml", "--diff", *secrets)
    assert outcome.ok, chain.explain(outcome)
    assert outcome.changed == 0, outcome.recap


def test_no_secret_in_the_log(chain: Chain) -> None:
    token = chain.node.ssh("sudo cat /var/lib/rancher/k3s/server/token").stdout.strip()
    secret = token.rsplit(":", 1)[-1]
    assert len(secret) >= 16
    kept = chain.node.ssh("sudo k3s kubectl --namespace llm get secret --output yaml").stdout
    encoded = base64.b64encode(HUB_TOKEN.encode()).decode()
    assert encoded in kept, "the token reached the cluster"
    for word in (secret, HUB_TOKEN, encoded):
        assert word not in chain.log()


def test_reset_takes_it_off_again(chain: Chain) -> None:
    first = chain.play("playbooks/reset.yml", "-e", "reset_driver=true")
    assert first.ok, chain.explain(first)
    left = chain.node.ssh(
        "ls -d /usr/local/bin/k3s /var/lib/rancher/k3s /etc/rancher /run/k3s 2>/dev/null; pgrep -a containerd || true"
    )
    assert left.stdout.strip() == ""
    packages = "dpkg-query --show --showformat='${db:Status-Abbrev} ${Package}\\n' '*nvidia*' 2>/dev/null | grep '^.i'"
    files = "ls -d /etc/apt/*/*nvidia* /etc/nvidia-container-runtime 2>/dev/null"
    gpu = chain.node.ssh(f"{packages}; apt-mark showhold; {files}; true")
    assert gpu.stdout.strip() == ""
    second = chain.play("playbooks/reset.yml", "-e", "reset_driver=true")
    assert second.ok, chain.explain(second)
    assert second.changed == 0, second.recap
