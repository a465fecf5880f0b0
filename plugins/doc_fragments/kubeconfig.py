"""Documentation of the option that every module talking to the API server has."""

from __future__ import annotations


class ModuleDocFragment:
    """Used as C(gpunode.serving.kubeconfig)."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path of the kubeconfig file, on the host where the module runs.
    type: path
    default: /etc/rancher/k3s/k3s.yaml
requirements:
  - kubernetes >= 36 (Python package; O(kubeconfig) is read by it)
notes:
  - The roles of this collection run the module on the node, with the interpreter that the role node_baseline installs
    (C(/opt/gpunode/venv/bin/python)).
"""
