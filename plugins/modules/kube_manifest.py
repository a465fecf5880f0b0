"""Apply a set of Kubernetes manifests server-side, and wait until they have become true."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kube_manifest
short_description: Apply a named set of Kubernetes manifests and wait for them
version_added: 0.1.0
description:
  - Applies manifests with server-side apply under a field manager of its own, deletes what an earlier run of the same set
    applied and the set no longer contains, and waits until every object is ready.
  - The plan comes from the API server itself, by dry run. Objects whose namespace or definition is part of the same set, and
    everything on a host that has no API server yet, are predicted from the manifest.
  - Waiting ends early when an object shows that it never will be ready, with the reason, the remedy and the last log lines.
  - A PersistentVolume of the set that a deleted claim left C(Released) is made available to its claim again.
  - Nodes and the namespaces of Kubernetes itself are never deleted. The fields that the set owned there are given back.
options:
  name:
    description: Name of the set. What it applied is recorded in a ConfigMap of this name with the suffix C(-inventory).
    type: str
    required: true
  manifests:
    description: Objects of the set, each with C(apiVersion), C(kind) and C(metadata.name), in the order of application.
    type: list
    elements: dict
    default: []
  state:
    description: V(present) applies the set. V(absent) deletes all that it has applied, and the manifests given, in reverse order.
    type: str
    choices: [present, absent]
    default: present
  namespace:
    description: Namespace of the record, and of namespaced manifests that name none.
    type: str
    default: default
  field_manager:
    description: Name under which the API server books the applied fields.
    type: str
    default: gpunode
  force_conflicts:
    description: Take over fields that another field manager owns, instead of stopping.
    type: bool
    default: false
  prune:
    description: Delete objects that an earlier run of the set applied and O(manifests) no longer contains.
    type: bool
    default: true
  wait:
    description: Wait until the objects are ready, or gone.
    type: bool
    default: true
  wait_timeout:
    description: Longest time to wait, in seconds.
    type: int
    default: 300
extends_documentation_fragment:
  - gpunode.serving.kubeconfig
attributes:
  check_mode:
    support: full
    description:
      - Asks the API server what it would store, and changes nothing.
      - What lives in a namespace that does not exist yet, and everything without an API server, is predicted as created.
  diff_mode:
    support: full
    description: Shows each object that changes; the values of Secrets are hidden.
  idempotent:
    support: full
    description: An object is applied only when its content or the fields owned in it would change.
author:
  - The gpunode.serving contributors
"""

EXAMPLES = r"""
- name: Apply a namespace and a quota, and delete what the set no longer contains
  gpunode.serving.kube_manifest:
    name: team-a
    namespace: team-a
    manifests:
      - {apiVersion: v1, kind: Namespace, metadata: {name: team-a}}
      - {apiVersion: v1, kind: ResourceQuota, metadata: {name: gpu}, spec: {hard: {requests.nvidia.com/gpu.shared: 1}}}

- name: Apply a rendered template
  gpunode.serving.kube_manifest:
    name: web
    manifests: "{{ lookup('ansible.builtin.template', 'web.yml.j2') | from_yaml_all | list }}"
    wait_timeout: 600

- name: Delete everything that the set has applied
  gpunode.serving.kube_manifest:
    name: web
    state: absent
"""

RETURN = r"""
objects:
  description: Every object of the set, also on failure, with what was last seen of it.
  returned: always
  type: list
  elements: dict
  sample:
    - api_version: apps/v1
      kind: Deployment
      namespace: llm
      name: vllm-qwen
      action: update
      ready: true
      seen: 1 of 1 replicas updated, 1 available, 1 in all
elapsed:
  description: Seconds spent waiting.
  returned: when the API server was reached
  type: float
attempts:
  description: How many times the objects were looked at while waiting.
  returned: when the API server was reached
  type: int
log:
  description: Last log lines of the container that keeps ending.
  returned: when waiting stopped because of a container
  type: list
  elements: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._module.kube_manifest import ARGUMENT_SPEC, run_module


def main() -> None:
    run_module(AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True))


if __name__ == "__main__":
    main()
