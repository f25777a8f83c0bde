"""What a pass changed: the difference of two graphs, node by node, in the text form."""

from __future__ import annotations

from graph_passes.ir.graph import Graph
from graph_passes.ir.node import Node
from graph_passes.ir.text import print_node


def diff_graphs(before: Graph, after: Graph) -> str:
    """Lines that start with `-` (removed), `+` (added); a changed node gives one of each. A new function
    gives one line. Empty when nothing changed.

    The comparison is by node name and linear in the size of the graphs: the order of nodes does not matter.
    """
    lines: list[str] = []
    for name in sorted(before.nodes.keys() | after.nodes.keys()):
        old, new = before.nodes.get(name), after.nodes.get(name)
        if old is new:
            continue
        old_line, new_line = _line(old), _line(new)
        if old_line != new_line:
            lines += [f"- {old_line}"] * (old is not None) + [f"+ {new_line}"] * (new is not None)
    for name in sorted(after.functions.keys() - before.functions.keys()):
        lines.append(f"+ function @{name}")
    return "\n".join(lines) + "\n" if lines else ""


def _line(node: Node | None) -> str:
    return "" if node is None else print_node(node)
