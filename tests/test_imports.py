"""Who may import whom, who may edit a proto, how long a file may be: read from the syntax tree, nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PASS_FOLDERS = ("packing", "interleaving", "caching", "cleanup", "compilation")
# Lower ones may be imported by higher ones and by their own; a pass folder's number is one for all.
LAYERS = {
    "errors": 0,
    "ir": 1,
    "analysis": 2,
    "rewrite": 3,
    "pipeline": 4,
    **dict.fromkeys(PASS_FOLDERS, 5),
    "registry": 6,
}
MAX_LINES = 300


def _files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


COMPILER = _files("graph_passes")
IDS = {"ids": lambda path: str(path.relative_to(ROOT))}


def _imports(path: Path) -> Iterator[str]:
    """Dotted names that a file imports: `from a.b import c` gives a.b.c, and a relative import fails."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import."
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _layer(path: Path) -> str:
    inner = path.relative_to(ROOT / "graph_passes")
    return inner.parts[0].removesuffix(".py")


def _is_pass(path: Path) -> bool:
    """Whether a file defines a pass: a class with a base named Pass."""
    classes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
    return any(isinstance(base, ast.Name) and base.id == "Pass" for kind in classes for base in kind.bases)


def test_the_rules_see_the_files_that_they_are_about() -> None:
    assert {_layer(path) for path in COMPILER} >= {"errors", "ir", "analysis", "rewrite", "pipeline", "registry"}
    passes = [path.stem for path in COMPILER if _layer(path) in PASS_FOLDERS and _is_pass(path)]
    assert {"canonicalize", "dead_nodes", "embedding_packing"} <= set(passes)
    assert "graph_passes.ir.Graph" in list(_imports(ROOT / "graph_passes/cleanup/dead_nodes.py"))


@pytest.mark.parametrize("path", COMPILER, **IDS)
def test_imports_point_one_way(path: Path) -> None:
    layer = _layer(path)
    if layer == "__init__":
        assert list(_imports(path)) == []
        return
    for name in _imports(path):
        parts = name.split(".")
        assert parts[0] != "picasso_tf", f"{path} imports {name}: the compiler never imports the product."
        if parts[0] != "graph_passes" or parts[1] == layer:
            continue
        assert LAYERS[parts[1]] < LAYERS[layer], f"{path} imports {name}, which lies beside it or above."


@pytest.mark.parametrize("path", [path for path in COMPILER if _layer(path) in PASS_FOLDERS], **IDS)
def test_passes_import_neither_each_other_nor_what_belongs_to_another_folder(path: Path) -> None:
    for name in _imports(path):
        module = ROOT.joinpath(*name.split(".")[:3]).with_suffix(".py")
        if name.startswith("graph_passes.") and module.exists() and _layer(module) in PASS_FOLDERS:
            assert _layer(module) == _layer(path), f"{path} imports {name} from another folder of passes."
            assert not _is_pass(module), f"{path} imports {name}, which is a pass."


PROTO_MODULES = ("attr_value_pb2", "node_def_pb2")
MESSAGE_METHODS = {"CopyFrom", "MergeFrom", "SetInParent", "ClearField", "ParseFromString", "MergeFromString"}
PROTO_FIELDS = {"attr", "input", "node", "library", "function", "versions"}
LIST_METHODS = {"append", "extend", "insert", "remove", "pop", "add", "clear"}


def _edits(path: Path, messages: bool = True) -> Iterator[str]:
    """What looks like an edit of a proto; without `messages`, filling a whole message is allowed."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method, owner = node.func.attr, node.func.value
            field = owner.attr if isinstance(owner, ast.Attribute) else ""
            of_node = method in ("NodeDef", "AttrValue") or (isinstance(owner, ast.Subscript) and method == "CopyFrom")
            if of_node or (messages and method in MESSAGE_METHODS):
                yield f"line {node.lineno}: {method}"
            elif method in LIST_METHODS and field in PROTO_FIELDS:
                yield f"line {node.lineno}: {field}.{method}"
        targets = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else []
        targets = [node.target] if isinstance(node, (ast.AugAssign, ast.AnnAssign)) else targets
        for target in targets:
            for inner in ast.walk(target):
                owner = inner.value if isinstance(inner, ast.Subscript) else None
                if isinstance(owner, ast.Attribute) and owner.attr in PROTO_FIELDS:
                    yield f"line {node.lineno}: {owner.attr}[...] ="


@pytest.mark.parametrize("path", [path for path in COMPILER if _layer(path) != "ir"] + _files("picasso_tf"), **IDS)
def test_only_ir_edits_a_proto(path: Path) -> None:
    edits = _edits(path, messages=path in COMPILER)  # the product reads, copies and hands on whole graphs
    assert list(edits) == []
    for name in _imports(path):
        assert not any(module in name for module in PROTO_MODULES), f"{path} imports {name}."


def test_the_rule_about_protos_catches_edits(tmp_path: Path) -> None:
    path = tmp_path / "edits.py"
    lines = [
        "node.attr['T'].CopyFrom(value)",
        "node_def_pb2.NodeDef(name='x')",
        "node.input.append('x')",
        "graph.node.extend(nodes)",
        "del node.attr['T']",
        "node.input[0] = 'x'",
    ]
    path.write_text("\n".join(lines))
    assert sorted(edit.split(":")[0] for edit in _edits(path)) == [f"line {number}" for number in range(1, 7)]
    assert list(_edits(ROOT / "graph_passes/ir/attrs.py")), "ir itself edits protos"


# Tests and product alike: a file is read in one sitting.
SOURCES = [path for folder in ("graph_passes", "picasso_tf", "examples", "tests") for path in _files(folder)]


@pytest.mark.parametrize("path", SOURCES, **IDS)
def test_a_file_is_read_in_one_sitting(path: Path) -> None:
    count = len(path.read_text().splitlines())
    assert count <= MAX_LINES, f"{path} has {count} lines."
