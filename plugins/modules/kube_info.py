"""Read one Kubernetes object."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kube_info
short_description: Read one Kubernetes object
version_added: 0.1.0
description:
  - Reads one object. That it does not exist is an answer, not an error.
  - In check mode an API server that does not exist yet is an answer too; RV(reached) tells.
options:
  api_version:
    description: API group and version.
    type: str
    default: v1
  kind:
    description: Kind of the object.
    type: str
    required: true
  name:
    description: Name of the object.
    type: str
    required: true
  namespace:
    description: Namespace of the object, for kinds that live in one.
    type: str
extends_documentation_fragment:
  - gpunode.serving.kubeconfig
attributes:
  check_mode:
    support: full
    description: Nothing is changed.
  diff_mode:
    support: N/A
    description: Nothing is changed.
author:
  - The gpunode.serving contributors
"""

EXAMPLES = r"""
- name: Read the node
  gpunode.serving.kube_info:
    kind: Node
    name: gpu-1
  register: node
"""

RETURN = r"""
reached:
  description: Whether an API server answered.
  returned: success
  type: bool
exists:
  description: Whether the object exists.
  returned: when the API server was reached
  type: bool
object:
  description: The object, without what the API server keeps for itself; the values of a Secret are hidden.
  returned: when the object exists
  type: dict
seen:
  description: Why no API server was reached.
  returned: in check mode, when none was reached
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._module.kube_info import ARGUMENT_SPEC, run_module


def main() -> None:
    run_module(AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True))


if __name__ == "__main__":
    main()
