"""Which tensors of a graph are in host memory, as TensorFlow's registry of kernels says."""

import pytest

from graph_passes.analysis.registered_kernels import in_host_memory
from graph_passes.ir import TensorRef
from tests.support.lines import graph
from tests.support.rewrite import graph_of

GPU = "@ /device:GPU:0"
LINES = [
    "on_host = _Arg() {T = int64, index = 0} @ /device:CPU:0 -> <2>",
    "anywhere = _Arg() {T = int64, index = 1} -> <2>",
    f"long = _Arg() {{T = int64, index = 2}} {GPU} -> <2>",
    f"short = _Arg() {{T = int32, index = 3}} {GPU} -> <2>",
    f"indices = _Arg() {{T = int64, index = 4}} {GPU} -> <?,2>",
    f"flat = SparseReshape(indices, on_host, on_host) {GPU} -> <?,2>, <2>",
    f"same = Identity(long) {{T = int64}} {GPU} -> <2>",
    f"shape = Shape(indices) {{T = int64, out_type = int64}} {GPU} -> <2>",
    f"switch = Switch(short, p) {{T = int32}} {GPU} -> <2>, <2>",
    f"p = _Arg() {{T = bool, index = 5}} {GPU} -> <>",
    f"split = Split(zero, short) {{T = int32, num_split = 2}} {GPU} -> <1>, <1>",
    f"zero = Const() {{dtype = int32, value = int32[](0)}} {GPU} -> <>",
    f"constant = Const() {{dtype = int64, value = int64[](0)}} {GPU} -> <>",
]


@pytest.mark.parametrize(
    ("tensor", "found"),
    [
        ("on_host", True),
        ("anywhere", True),
        ("long", False),
        ("short", True),
        ("flat", False),
        ("flat:1", True),
        ("same", False),
        ("shape", True),
        ("switch:1", True),
        ("split:1", False),
        ("zero", True),
        ("constant", False),
    ],
)
def test_where_a_tensor_is(tensor: str, found: bool) -> None:
    node, _, port = tensor.partition(":")
    assert in_host_memory(graph_of(graph(*LINES)), TensorRef(node, int(port or 0))) == found
