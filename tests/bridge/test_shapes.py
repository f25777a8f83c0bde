"""Python sees inferred shapes; TensorFlow never sees our annotations."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.eager import context

from graph_passes.errors import GraphError
from picasso_tf.bridge import callback
from tests.bridge.conftest import Plugin
from tests.bridge.models import IDS, lookup_times

SHAPES = tf.compat.v1.AttrValue(list=tf.compat.v1.AttrValue.ListValue(shape=[tf.TensorShape([3, 4]).as_proto()]))


def shape_of(graph: graph_pb2.GraphDef, op: str) -> list[int]:
    (node,) = [node for node in graph.node if node.op == op]
    return [dim.size for dim in node.attr["_output_shapes"].list.shape[0].dim]


def annotations(graph: graph_pb2.GraphDef) -> dict[str, str]:
    return {node.name: str(node.attr["_output_shapes"]) for node in graph.node if "_output_shapes" in node.attr}


def optimized_graphs(compute) -> list[graph_pb2.GraphDef]:
    """The graphs with one gather; functions that other tests left behind may be optimized anew meanwhile."""
    with context.collect_graphs(optimized=True) as graphs:
        compute()
    graphs = [graph for graph in graphs if sum("Gather" in node.op for node in graph.node) == 1]
    assert graphs
    return graphs


def test_python_gets_inferred_shapes(plugin: Plugin):
    lookup_times(2.0)[0]()
    for graph in plugin.graphs():
        assert shape_of(graph, "ResourceGather") == [3, 4]
        assert shape_of(graph, "Mul") == [3]


def test_unknown_dimensions_are_minus_one(plugin: Plugin):
    table = tf.Variable(np.ones((5, 4), np.float32))
    compute = tf.function(lambda ids: tf.gather(table, ids) * 2, input_signature=[tf.TensorSpec([None], tf.int64)])
    compute(tf.constant(IDS))
    assert shape_of(plugin.graphs()[0], "ResourceGather") == [-1, 4]


def test_annotations_come_back_as_they_were(plugin: Plugin):
    table = tf.Variable(np.ones((5, 4), np.float32))

    @tf.function
    def compute(ids):
        rows = tf.gather(table, ids)
        rows.op._set_attr("_output_shapes", SHAPES)  # as a graph from a SavedModel has it
        return rows * 2

    def spoil(request: callback.GraphRequest) -> bytes:
        graph = graph_pb2.GraphDef.FromString(request.graph)
        for node in graph.node:
            node.attr["_output_shapes"].list.shape.add(unknown_rank=True)
        return graph.SerializeToString()

    plugin.answer = spoil
    plugin.switch(False)
    stock = [annotations(graph) for graph in optimized_graphs(lambda: compute(tf.constant(IDS)))]
    plugin.switch(True)
    ours = [annotations(graph) for graph in optimized_graphs(lambda: compute(tf.constant(IDS)))]
    assert plugin.requests
    (graph,) = ours
    assert graph in stock
    assert "Gather" in graph
    assert "mul" not in graph


def test_annotate_shapes_outside_of_tensorflow():
    with tf.Graph().as_default() as graph:
        left = tf.compat.v1.placeholder(tf.float32, [None, 3], name="left")
        tf.identity(tf.matmul(left, tf.ones([3, 7])), name="out")
    graph_def = graph.as_graph_def()
    annotated = graph_pb2.GraphDef.FromString(callback.annotate_shapes(graph_def.SerializeToString(), (), ("out",)))
    assert shape_of(annotated, "MatMul") == [-1, 7]
    assert [node.name for node in annotated.node] == [node.name for node in graph_def.node]


def test_annotate_shapes_does_not_trust_a_feed():
    with tf.Graph().as_default() as graph:
        tf.identity(tf.compat.v1.placeholder(tf.float32, [4], name="fed"), name="out")
    annotated = callback.annotate_shapes(graph.as_graph_def().SerializeToString(), ("fed",), ("out",))
    (out,) = [node for node in graph_pb2.GraphDef.FromString(annotated).node if node.name == "out"]
    assert out.attr["_output_shapes"].list.shape[0].unknown_rank


def test_annotate_shapes_without_an_answer_returns_the_graph():
    graph = graph_pb2.GraphDef()
    graph.node.add(name="a", op="NoSuchOp")
    assert callback.annotate_shapes(graph.SerializeToString(), (), ("a",)) == graph.SerializeToString()


def test_annotate_shapes_of_garbage():
    with pytest.raises(GraphError, match="The graph of 7 bytes is not a serialised GraphDef"):
        callback.annotate_shapes(b"garbage", (), ())
