"""Wait until a node offers the GPUs that the device plugin's configuration promises."""

from __future__ import annotations

DOCUMENTATION = r"""
module: wait_for_gpus
short_description: Wait until a node's allocatable GPUs equal GPUs times replicas
version_added: 0.1.0
description:
  - A device plugin whose DaemonSet is ready may still run an older configuration, or see no GPU. Only the node's allocatable
    resources prove what it offers, and this module waits for them.
  - The expectation comes from the configuration itself, and from the number of GPUs that nvidia-smi shows on this host.
options:
  node:
    description: Name of the node.
    type: str
    required: true
  config:
    description: Configuration of the device plugin, as in its configuration file.
    type: dict
    required: true
  gpus:
    description: Number of GPUs of the node. V(0) asks nvidia-smi on this host.
    type: int
    default: 0
  namespace:
    description: Namespace of the device plugin, whose log explains a failure.
    type: str
    default: nvidia-device-plugin
  selector:
    description: Label selector of the device plugin's Pods.
    type: str
    default: app.kubernetes.io/name=nvidia-device-plugin
  wait_timeout:
    description: Longest time to wait, in seconds.
    type: int
    default: 120
extends_documentation_fragment:
  - gpunode.serving.kubeconfig
attributes:
  check_mode:
    support: full
    description: Nothing is waited for.
  diff_mode:
    support: N/A
    description: Nothing is changed.
author:
  - The gpunode.serving contributors
"""

EXAMPLES = r"""
- name: Wait until one GPU is offered four times
  gpunode.serving.wait_for_gpus:
    node: gpu-1
    config:
      version: v1
      sharing:
        timeSlicing:
          renameByDefault: true
          resources:
            - {name: nvidia.com/gpu, replicas: 4}
"""

RETURN = r"""
allocatable:
  description: What the node offers, by resource name; null for a name that it does not know.
  returned: always
  type: dict
  sample: {nvidia.com/gpu.shared: 4, nvidia.com/gpu: 0}
expected:
  description: What the configuration promises.
  returned: always
  type: dict
  sample: {nvidia.com/gpu.shared: 4, nvidia.com/gpu: 0}
elapsed:
  description: Seconds spent waiting.
  returned: always
  type: float
attempts:
  description: How many times the node was looked at.
  returned: always
  type: int
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._module.wait_for_gpus import ARGUMENT_SPEC, run_module


def main() -> None:
    run_module(AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True))


if __name__ == "__main__":
    main()
