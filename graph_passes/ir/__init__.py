"""The graph: immutable view, staged edits, canonical text form, verifier. Only this package edits protos."""

from graph_passes.ir.diff import diff_graphs
from graph_passes.ir.functions import (
    Functions,
    called_functions,
    control_outputs,
    copy_function,
    function_nodes,
    function_ops,
    make_function,
    reachable,
)
from graph_passes.ir.graph import Graph
from graph_passes.ir.mutation import Mutation
from graph_passes.ir.node import CONTROL, Node, Use, node_name, parse_ref
from graph_passes.ir.parser import parse_graph
from graph_passes.ir.text import print_graph, print_node
from graph_passes.ir.types import UNKNOWN_SHAPE, DType, FunctionRef, Shape, TensorRef, product
from graph_passes.ir.verify import verify, verify_feeds, verify_graph_def, verify_rewrite

__all__ = [
    "CONTROL",
    "UNKNOWN_SHAPE",
    "DType",
    "FunctionRef",
    "Functions",
    "Graph",
    "Mutation",
    "Node",
    "Shape",
    "TensorRef",
    "Use",
    "called_functions",
    "control_outputs",
    "copy_function",
    "diff_graphs",
    "function_nodes",
    "function_ops",
    "make_function",
    "node_name",
    "parse_graph",
    "parse_ref",
    "print_graph",
    "print_node",
    "product",
    "reachable",
    "verify",
    "verify_feeds",
    "verify_graph_def",
    "verify_rewrite",
]
