#!/usr/bin/env python3
"""Check a served model: a table for people on standard error, one JSON document on standard output.

Exit code 0: pass, 1: fail, 2: cannot tell.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / ".collections"))

from ansible_collections.gpunode.serving.plugins.module_utils._checks import EXIT_CODES, Verdict
from ansible_collections.gpunode.serving.plugins.module_utils._clock import SystemClock
from ansible_collections.gpunode.serving.plugins.module_utils._http import HttpxClient
from ansible_collections.gpunode.serving.plugins.module_utils._kube import ClusterKube
from ansible_collections.gpunode.serving.plugins.module_utils._serving import GROUPS, Target
from ansible_collections.gpunode.serving.plugins.module_utils._table import table, tally
from ansible_collections.gpunode.serving.plugins.module_utils._verify import verify


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line, read."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="Exit code 0: pass, 1: fail, 2: cannot tell. Endpoints can be asked on the node only; elsewhere: --only node dns.",
    )
    parser.add_argument("--kubeconfig", default="/etc/rancher/k3s/k3s.yaml", help="kubeconfig file (%(default)s)")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), help="groups of checks to make (all)")
    parser.add_argument("--node", default="", help="name of the node (the only one)")
    parser.add_argument("--resource", default="nvidia.com/gpu.shared", help="extended resource of the GPUs (%(default)s)")
    parser.add_argument("--allocatable", type=int, help="how many of it the node must offer (at least one)")
    parser.add_argument("--namespace", default="llm", help="namespace of the Service (%(default)s)")
    parser.add_argument("--service", default="vllm-qwen", help="name of the Service (%(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="port of the Service (%(default)s)")
    parser.add_argument("--model", default="qwen2.5-3b", help="served model name (%(default)s)")
    parser.add_argument("--image", default="docker.io/vllm/vllm-openai:v0.26.0", help="image with python3 for the probe Pod")
    parser.add_argument("--timeout", type=int, default=20, help="limit of one request in seconds (%(default)s)")
    parser.add_argument("--label", action="append", default=[], metavar="KEY=VALUE", help="fact to note in the document")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the checks and print them."""
    options = arguments(argv)
    target = Target(
        namespace=options.namespace,
        service=options.service,
        port=options.port,
        model=options.model,
        image=options.image,
        node=options.node,
        resource=options.resource,
        timeout=options.timeout,
    )
    document = verify(
        target,
        options.only,
        connect=lambda: ClusterKube(options.kubeconfig),
        http=HttpxClient,
        clock=SystemClock(),
        promised=lambda: options.allocatable,
        labels=dict(label.partition("=")[::2] for label in options.label),
    )
    print("\n".join([*table(document["checks"]), tally(document["checks"])]), file=sys.stderr)
    print(json.dumps(document, indent=2))
    return EXIT_CODES[Verdict(document["verdict"])]


if __name__ == "__main__":
    sys.exit(main())
