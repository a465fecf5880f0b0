"""Check from the node that a model is served, and say pass, fail or cannot tell."""

from __future__ import annotations

DOCUMENTATION = r"""
module: serving_check
short_description: Check the node, the endpoints and the cluster DNS name of a served model
version_added: 0.1.0
description:
  - Looks at the node (runtime handler, allocatable GPUs), asks every ready address behind a Service, and asks the Service by its
    cluster DNS name from a short-lived Pod without a GPU.
  - The module itself succeeds whatever the verdict is. Judge RV(verdict) or each entry of RV(checks).
  - What could not be looked at has the verdict C(cannot_tell), never C(pass).
options:
  checks:
    description: Groups of checks to make.
    type: list
    elements: str
    choices: [node, endpoints, dns]
    default: [node, endpoints, dns]
  node:
    description: Name of the node. Empty for the only one there is.
    type: str
    default: ""
  resource:
    description: Extended resource under which the node offers its GPUs.
    type: str
    default: nvidia.com/gpu.shared
  plugin_config:
    description:
      - Configuration of the device plugin, as in its configuration file. With O(gpus) it promises how many of O(resource) the
        node offers.
      - Without it, at least one is enough.
    type: dict
  gpus:
    description: Number of GPUs of the node. V(0) asks nvidia-smi on this host.
    type: int
    default: 0
  runtime_handler:
    description: Handler that containerd must have, as the node itself lists it.
    type: str
    default: nvidia
  namespace:
    description: Namespace of the Service; the probe Pod is made there too.
    type: str
    required: true
  service:
    description: Name of the Service.
    type: str
    required: true
  port:
    description: Port of the Service.
    type: int
    default: 8000
  model:
    description: Model name that clients use.
    type: str
    required: true
  probe_image:
    description: Image of the probe Pod, with C(python3) on its PATH; the engine's own image has it.
    type: str
    required: true
  timeout:
    description: Limit of one request in seconds. A probe Pod may take six times that.
    type: int
    default: 20
  labels:
    description: Facts about the ground that the result stands on; taken over into RV(document).
    type: dict
    default: {}
extends_documentation_fragment:
  - gpunode.serving.kubeconfig
requirements:
  - httpx (Python package)
attributes:
  check_mode:
    support: partial
    description: All checks are made but that from a Pod, which cannot be told then.
  diff_mode:
    support: N/A
    description: Nothing is changed.
author:
  - The gpunode.serving contributors
"""

EXAMPLES = r"""
- name: Check the served model
  gpunode.serving.serving_check:
    namespace: llm
    service: vllm-qwen
    model: qwen2.5-3b
    probe_image: docker.io/vllm/vllm-openai:v0.26.0
  register: served

- name: Stop when a check failed
  ansible.builtin.assert:
    that: served.verdict != 'fail'
"""

RETURN = r"""
checks:
  description: One entry for each thing that was looked at.
  returned: success
  type: list
  elements: dict
  sample:
    - name: allocatable nvidia.com/gpu.shared
      object: Node gpu-1
      seen: "4"
      expected: "4"
      verdict: pass
      remedy: ""
verdict:
  description: C(fail) when one check failed, else C(cannot_tell) when one could not be made, else C(pass).
  returned: success
  type: str
document:
  description: The whole result as one versioned document (schema C(gpunode.serving/verify)).
  returned: success
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._module.serving_check import ARGUMENT_SPEC, run_module


def main() -> None:
    run_module(AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True))


if __name__ == "__main__":
    main()
