"""What XLA can compile, as TensorFlow's registry says."""

from graph_passes.analysis.xla_kernels import compiles, without_kernel
from graph_passes.ir import DType, FunctionRef, Node, parse_graph
from tests.support.lines import graph


def node(op: str, **attrs) -> Node:
    return Node("n", op, attrs=attrs)


def test_ops_with_an_xla_kernel_for_their_types_compile() -> None:
    float32, string = DType("float32"), DType("string")
    assert compiles(node("MatMul", T=float32), "CPU", {})
    assert compiles(node("MatMul", T=float32), "GPU", {})
    assert not compiles(node("MatMul", T=string), "CPU", {})
    assert not compiles(node("MatMul", T=float32), "TPU", {})
    assert not compiles(node("StringToHashBucketFast"), "CPU", {})
    assert not compiles(node("_FusedMatMul", T=float32), "CPU", {})
    assert not compiles(node("Picasso>PackedLookup", dtype=float32), "CPU", {})
    assert not compiles(node("NoSuchOp"), "CPU", {})


def test_results_of_unknown_size_and_the_edges_of_functions_do_not() -> None:
    assert not compiles(node("Where", T=DType("bool")), "CPU", {})
    assert not compiles(node("_Arg", T=DType("float32")), "CPU", {})


def test_a_type_that_only_the_op_def_states_counts() -> None:
    assert compiles(node("Sum", T=DType("float32")), "CPU", {})  # Tidx is int32 unless stated
    assert not compiles(node("Sum", T=DType("float32"), Tidx=DType("string")), "CPU", {})


def test_a_call_compiles_when_all_that_it_calls_does() -> None:
    text = graph("n = NoOp()")
    for name, op in (("good", "Neg"), ("bad", "StringUpper"), ("calls_bad", "PartitionedCall")):
        text += f"\nfunction @{name}()\n"
        text += "n = PartitionedCall() {Tin = [], Tout = [], f = @bad}" if name == "calls_bad" else ""
        dtype = "string" if op == "StringUpper" else "float32"
        text += "" if name == "calls_bad" else f"x = _Arg() {{T = {dtype}, index = 0}}\nn = {op}(x) {{T = {dtype}}}"
    functions = parse_graph(text).functions

    def call(*names: str) -> Node:
        branches = dict(zip(("then_branch", "else_branch"), map(FunctionRef, names), strict=True))
        return node("StatelessIf", Tcond=DType("bool"), Tin=[DType("float32")], Tout=[DType("float32")], **branches)

    assert compiles(call("good", "good"), "CPU", functions)
    assert not compiles(call("good", "bad"), "CPU", functions)
    assert not compiles(call("calls_bad", "good"), "CPU", functions)


def test_an_op_without_a_kernel_of_tensorflow_is_known() -> None:
    functions = parse_graph("n = NoOp()\nfunction @my_function()\nn = NoOp()").functions
    assert without_kernel(node("XlaSetBound"), functions)
    assert without_kernel(node("NoSuchOp"), functions)
    runnable = ("MatMul", "NoOp", "_Arg", "my_function", "Picasso>PackedLookup")
    assert not any(without_kernel(node(op), functions) for op in runnable)
