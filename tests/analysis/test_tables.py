"""Variables of a graph: which handles are one variable, who reads it, who writes it, which lookups there are."""

import pytest

from graph_passes.analysis.tables import accesses, gather_axis, read_lookups, resource_lookups, table_of
from graph_passes.ir import Graph, Shape, TensorRef
from tests.support.lines import arg, assign, gather, graph, identity, lookup, read, scalar, scatter, variable
from tests.support.rewrite import graph_of, shuffled

ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"


def var_handle(name: str, shared_name: str, more: str = "") -> str:
    return f'{name} = VarHandleOp() {{dtype = float32, shape = <9,2>, shared_name = "{shared_name}"{more}}}'


def table(text: str, name: str, port: int = 0, **keep):
    return table_of(graph_of(graph(text, **keep)), TensorRef(name, port))


def roots(graph_: Graph, *names: str) -> list[str]:
    return [table_of(graph_, TensorRef(name)).root for name in names]


def test_an_argument_is_a_table_with_the_shape_of_its_variable() -> None:
    found = table(variable("t", "<10,4>"), "t")
    assert (found.root, found.shape, found.traceable) == ("t", Shape((10, 4)), True)


def test_handles_of_one_shared_name_are_one_table() -> None:
    found = graph_of(graph(var_handle("a", "v"), var_handle("b", "v"), var_handle("c", "w")))
    a, b, c = roots(found, "a", "b", "c")
    assert a == b
    assert a != c
    assert table_of(found, TensorRef("a")).shape == Shape((9, 2))


def test_handles_in_different_containers_or_without_a_name_are_different_tables() -> None:
    found = graph_of(
        graph(
            *[var_handle("a", "v", ', container = "x"'), var_handle("b", "v", ', container = "y"')],
            *[var_handle("c", ""), var_handle("d", ""), var_handle("e", ANONYMOUS), var_handle("f", ANONYMOUS)],
        )
    )
    assert len(set(roots(found, *"abcdef"))) == 6


PASSED_ON = "\n".join(
    [
        *[variable("t"), arg("p", "bool", "<>"), identity("i", "t", "resource"), "s = Switch(i, p) {T = resource}"],
        *['e = Enter(s:1) {T = resource, frame_name = "f"}', "m = Merge(s, e) {N = 2, T = resource}"],
    ]
)


def test_a_handle_is_followed_through_identity_switch_and_enter() -> None:
    for name, port in (("i", 0), ("s", 0), ("s", 1), ("e", 0)):
        found = table(PASSED_ON, name, port)
        assert (found.root, found.shape, found.traceable) == ("t", Shape((10, 4)), True)


def test_a_handle_that_is_chosen_or_fed_is_not_followed() -> None:
    assert not table(PASSED_ON, "m").traceable
    fed = table(PASSED_ON, "e", feeds=["i"])
    assert (fed.root, fed.traceable) == ("i", False)
    tensor = table("p = Placeholder() {dtype = resource, shape = <>}", "p")
    assert (tensor.shape, tensor.traceable) == (Shape(None), True)


def test_outputs_of_one_node_are_different_tables() -> None:
    types = "{output_types = [resource, resource], output_shapes = [<>, <>]}"
    text = f"it = _Arg() {{T = resource, index = 0}}\nn = IteratorGetNext(it) {types}"
    assert table(text, "n").root != table(text, "n", 1).root


def test_reads_and_writes_are_told_apart_by_variable() -> None:
    text = graph(
        *[variable("t"), variable("u", index=1), arg("ids"), arg("x", "float32"), arg("p", "bool", "<>")],
        *[read("r", "t"), lookup("g", "t, ids"), identity("i", "t", "resource"), "shape = VariableShape(i)"],
        *[assign("w", "t, x"), scatter("sc", "i, ids, x"), assign("wu", "u, x")],
        *["s = Switch(u, p) {T = resource}", read("ru", "s:1"), "m = Merge(s, t) {N = 2, T = resource}"],
    )
    for seed in (1, 2):
        found = accesses(shuffled(graph_of(text), seed))
        names = {
            root: ([n.name for n in access.reads], [n.name for n in access.writes]) for root, access in found.items()
        }
        assert names == {"t": (["g", "r", "shape"], ["m", "sc", "w"]), "u": (["ru"], ["m", "wu"])}


def test_a_write_through_a_handle_that_is_chosen_at_run_time_may_write_any_variable() -> None:
    chosen = "\n".join([PASSED_ON, variable("u", index=3), arg("x", "float32"), read("ru", "u"), read("rm", "m")])
    found = accesses(graph_of(graph(chosen, assign("w", "m, x"))))
    writes = {root: [node.name for node in access.writes] for root, access in found.items()}
    assert writes == {"t": ["m", "w"], "u": ["w"], "m": ["w"]}
    assert [node.name for node in found["m"].reads] == ["rm"]


def test_an_identity_of_many_passes_each_handle_on_and_writes_none() -> None:
    many = "n = IdentityN(x, t, u) {T = [float32, resource, resource]}"
    lines = [variable("t"), variable("u", index=1), arg("x", "float32"), many]
    found = graph_of(graph(*lines, read("r", "n:1"), assign("w", "n:2, n")))
    assert [table_of(found, TensorRef("n", port)).root for port in (1, 2)] == ["t", "u"]
    names = {root: ([n.name for n in a.reads], [n.name for n in a.writes]) for root, a in accesses(found).items()}
    assert names == {"t": (["r"], []), "u": ([], ["w"])}


def test_lookups_of_rows_are_found_by_name_with_their_dtype() -> None:
    text = graph(
        variable("t", dtype="float16"), arg("ids"), lookup("z", "t, ids", dtype="float16"), lookup("a", "t, ids")
    )
    found = resource_lookups(graph_of(text))
    assert [(item.node.name, item.dtype, item.ids.node, item.read) for item in found] == [
        *[("a", "float32", "ids", None), ("z", "float16", "ids", None)]
    ]


@pytest.mark.parametrize(
    ("table_shape", "ids_shape", "result", "row"),
    [
        ("<10,4>", "<?>", "<*>", Shape((4,))),
        ("<10>", "<?>", "<?>", Shape(())),
        ("<10,2,3>", "<*>", "<*>", Shape((2, 3))),
        ("<*>", "<?,?>", "<?,?,7>", Shape((7,))),
        ("<*>", "<?>", "<*>", Shape(None)),
        ("<*>", "<*>", "<?,7>", Shape(None)),
    ],
)
def test_the_shape_of_a_row_comes_from_the_table_or_from_the_gather(table_shape, ids_shape, result, row) -> None:
    found = graph_of(graph(variable("t", table_shape), arg("ids", shape=ids_shape), lookup("g", "t, ids", result)))
    (item,) = resource_lookups(found)
    assert item.row_shape(found) == row


def test_a_gather_of_a_read_is_found_through_identities() -> None:
    lines = [variable("t"), arg("ids"), scalar("axis", 0), arg("x", "float32", "<3,4>"), read("r", "t")]
    lines += [identity("i", "r"), gather("g", "i, ids, axis"), gather("other", "x, ids, axis")]
    found = read_lookups(graph_of(graph(*lines)))
    assert [(item.node.name, item.read.name, item.handle) for item in found] == [("g", "r", TensorRef("t"))]
    assert read_lookups(graph_of(graph(*lines, feeds=["r"]))) == []
    assert read_lookups(graph_of(graph(*lines, feeds=["i"]))) == []


def test_the_axis_is_known_when_it_is_a_constant() -> None:
    lines = [arg("x", "float32"), arg("ids"), scalar("one", 1), arg("a")]
    found = graph_of(graph(*lines, gather("g", "x, ids, one"), gather("h", "x, ids, a")))
    assert [gather_axis(found, node) for node in found.of("GatherV2")] == [1, None]
