"""Import a container image from an archive file into the node's containerd."""

from __future__ import annotations

DOCUMENTATION = r"""
module: image_archive
short_description: Import a container image from an archive into containerd
version_added: 0.1.0
description:
  - Makes sure that the kubelet of this node finds an image without pulling it. The archive is read only when the image is absent.
  - Fails when the archive does not carry the image under the given name, and says what it brought instead.
options:
  image:
    description: Name of the image, with a tag other than C(latest) or a digest. Short names belong to docker.io.
    type: str
    required: true
  archive:
    description: Path of a docker or OCI archive on the node.
    type: path
    required: true
  command:
    description: Command of containerd's client.
    type: list
    elements: str
    default: [k3s, ctr]
attributes:
  check_mode:
    support: full
    description: On a node without containerd the image is predicted as imported.
  diff_mode:
    support: full
    description: Shows the image's name.
  idempotent:
    support: full
    description: An image that is there is not imported again.
author:
  - The gpunode.serving contributors
"""

EXAMPLES = r"""
- name: Bring an image to a node without a registry
  gpunode.serving.image_archive:
    image: docker.io/vllm/vllm-openai:v0.26.0
    archive: /srv/images/vllm-openai.tar
"""

RETURN = r"""
image:
  description: Full name of the image.
  returned: success
  type: str
  sample: docker.io/vllm/vllm-openai:v0.26.0
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._module.image_archive import ARGUMENT_SPEC, run_module


def main() -> None:
    run_module(AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True))


if __name__ == "__main__":
    main()
