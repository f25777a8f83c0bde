"""Where a node runs."""

from __future__ import annotations

from collections import Counter
from functools import cache

import tensorflow as tf

from graph_passes.ir import Graph, node_name


@cache
def device_type(device: str) -> str:
    """ "CPU", "GPU", ... of a device name; "" when the name leaves it open."""
    return (tf.DeviceSpec.from_string(device).device_type or "").upper()


@cache
def task_of(device: str) -> str:
    """The process that a device belongs to, such as "/job:ps/replica:0/task:1"; "" when the name leaves it open."""
    spec = tf.DeviceSpec.from_string(device)
    return tf.DeviceSpec(job=spec.job, replica=spec.replica, task=spec.task).to_string()


def home_task(graph: Graph) -> str:
    """The process that the graph is started from: where most of its arguments, results and fetches are."""
    nodes = graph.of("_Arg", "_Retval") or [graph.nodes[node_name(name)] for name in graph.fetches]
    tasks = Counter(task_of(node.device) for node in nodes)
    return min(tasks, key=lambda task: (-tasks[task], task)) if tasks else ""
