"""The graph: immutable view, staged edits, canonical text form, verifier. Only this package edits protos."""

from graph_passes.ir.diff import diff_graphs
from graph_passes.ir.graph import CONTROL, Graph, Use
from graph_passes.ir.mutation import Mutation
from graph_passes.ir.node import Node, node_name, parse_ref
from graph_passes.ir.parser import parse_graph
from graph_passes.ir.text import print_graph, print_node
from graph_passes.ir.types import UNKNOWN_SHAPE, DType, FunctionRef, Shape, TensorRef, product
from graph_passes.ir.verify import verify, verify_graph_def, verify_rewrite

__all__ = [
    "CONTROL",
    "UNKNOWN_SHAPE",
    "DType",
    "FunctionRef",
    "Graph",
    "Mutation",
    "Node",
    "Shape",
    "TensorRef",
    "Use",
    "diff_graphs",
    "node_name",
    "parse_graph",
    "parse_ref",
    "print_graph",
    "print_node",
    "product",
    "verify",
    "verify_graph_def",
    "verify_rewrite",
]
