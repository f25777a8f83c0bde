"""Graphs of any size in the form in which a Keras 3 train step reaches the plugin; written in the text form.

Per table 18 nodes: the wrap of negative ids, the read and the gather, a flatten whose shape is computed from the
batch, and for the gradient a slice, two reshapes and the row update by SGD. Per eight tables a dense layer with its
gradient, its update and some elementwise work, 13 nodes, so that lookups are about as dense as in a real model.
"""

from __future__ import annotations

from collections.abc import Iterator

from graph_passes.ir import Graph, parse_graph

WIDTH = 16
TABLES_PER_LAYER = 8
_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
_NODES_PER_TABLE = 19.6  # with its part of a dense layer and of the elementwise nodes


def train_step(nodes: int) -> Graph:
    """A train step of about `nodes` nodes over as many tables as that takes.

    Args:
        nodes: wanted size, at least 200. The result is within a few per cent of it.
    """
    tables = max(round(nodes / _NODES_PER_TABLE), 1)
    return _parse([*_shared(tables), *_lookups(tables), *_dense(tables), *_updates(tables), *_ends(tables)], tables)


def without_lookups(nodes: int) -> Graph:
    """A graph with nothing to do, and made to be hard to dismiss: it has gathers from tensors that are no tables.

    Args:
        nodes: wanted size.
    """
    lines = [
        "in = _Arg() {T = float32, index = 0} -> <?,16>",
        "handle = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<16,16>], index = 1} -> <*>",
        "axis = Const() {dtype = int32, value = int32[](0)} -> <>",
        "rows = Const() {dtype = int32, value = int32[2](0, 1)} -> <2>",
    ]
    last = "in"
    for i in range(nodes // 5):
        lines += [
            f"read{i} = ReadVariableOp(handle) {{dtype = float32}} -> <16,16>",
            f"mul{i} = MatMul({last}, read{i}) {{T = float32, grad_a = false, grad_b = false, "
            "transpose_a = false, transpose_b = false} -> <?,16>",
            f"relu{i} = Relu(mul{i}) {{T = float32}} -> <?,16>",
            f"gather{i} = GatherV2(relu{i}, rows, axis) {{Taxis = int32, Tindices = int32, Tparams = float32, "
            "batch_dims = 0} -> <2,16>",
            f"add{i} = AddV2(relu{i}, relu{i}) {{T = float32}} -> <?,16>",
        ]
        last = f"add{i}"
    lines.append(f"result = _Retval({last}) {{T = float32, index = 0}}")
    return _parse(lines, 0)


def _parse(lines: list[str], tables: int) -> Graph:
    preserve = ", ".join(["result", *(f"scatter{i}" for i in range(tables))])
    header = f"graph {{feeds = [], fetches = [result], preserve = [{preserve}]}}"
    return parse_graph("\n".join([header, *map(_on_device, lines)]))


def _on_device(line: str) -> str:
    node, arrow, shapes = line.partition(" -> ")
    return f"{node} @ {_DEVICE}{arrow}{shapes}"


def _const(name: str, *values: int) -> str:
    shape = len(values)
    return f"{name} = Const() {{dtype = int32, value = int32[{shape}]({', '.join(map(str, values))})}} -> <{shape}>"


def _scalar(name: str, value: int) -> str:
    return f"{name} = Const() {{dtype = int32, value = int32[]({value})}} -> <>"


def _variable(name: str, rows: int, index: int) -> str:
    return (
        f"{name} = _Arg() {{T = resource, _handle_dtypes = [float32], _handle_shapes = [<{rows},{WIDTH}>], "
        f"index = {index}}} -> <*>"
    )


def _shared(tables: int) -> Iterator[str]:
    yield "iterator = _Arg() {T = resource, index = 0} -> <*>"
    types, shapes = ", ".join(["int32"] * tables), ", ".join(["<?,1>"] * tables)
    yield f"next = IteratorGetNext(iterator) {{output_shapes = [{shapes}], output_types = [{types}]}} -> {shapes}"
    yield "rate = _Arg() {T = resource, _handle_dtypes = [float32], _handle_shapes = [<>], index = 1} -> <*>"
    yield "rate_read = ReadVariableOp(rate) {dtype = float32} -> <>"
    yield _scalar("zero", 0)
    yield _scalar("one", 1)
    yield _scalar("width", WIDTH)
    yield _const("first", 0)
    yield _const("second", 1)
    yield _const("flat", -1)
    yield _const("as_rows", -1, WIDTH)
    yield _const("as_gathered", -1, 1, WIDTH)
    yield _const("band", -1, WIDTH)


def _lookups(tables: int) -> Iterator[str]:
    for i in range(tables):
        ids = f"next:{i}" if i else "next"
        yield _variable(f"table{i}", 1000 + i, 2 + i)
        yield _scalar(f"rows{i}", 1000 + i)
        yield f"less{i} = Less({ids}, zero) {{T = int32}} -> <?,1>"
        yield f"add{i} = AddV2({ids}, rows{i}) {{T = int32}} -> <?,1>"
        yield f"ids{i} = SelectV2(less{i}, add{i}, {ids}) {{T = int32}} -> <?,1>"
        yield f"read{i} = ReadVariableOp(table{i}) {{dtype = float32}} -> <{1000 + i},{WIDTH}>"
        yield (
            f"gather{i} = GatherV2(read{i}, ids{i}, zero) {{Taxis = int32, Tindices = int32, Tparams = float32, "
            f"batch_dims = 0}} -> <?,1,{WIDTH}>"
        )
        yield f"shape{i} = Shape(gather{i}) {{T = float32, out_type = int32}} -> <3>"
        yield (
            f"batch{i} = StridedSlice(shape{i}, first, second, second) {{Index = int32, T = int32, begin_mask = 0, "
            "ellipsis_mask = 0, end_mask = 0, new_axis_mask = 0, shrink_axis_mask = 1} -> <>"
        )
        yield f"target{i} = Pack(batch{i}, width) {{N = 2, T = int32, axis = 0}} -> <2>"
        yield f"rows_of{i} = Reshape(gather{i}, target{i}) {{T = float32, Tshape = int32}} -> <?,{WIDTH}>"
    joined = ", ".join(f"rows_of{i}" for i in range(tables))
    yield f"joined = ConcatV2({joined}, one) {{N = {tables}, T = float32, Tidx = int32}} -> <?,{WIDTH * tables}>"


_MATMUL = "{{T = float32, grad_a = false, grad_b = false, transpose_a = {}, transpose_b = {}}}"


def _dense(tables: int) -> Iterator[str]:
    """A chain of dense layers with their gradients and updates; `grad` is the gradient with respect to `joined`."""
    layers = -(-tables // TABLES_PER_LAYER)
    total = WIDTH * tables
    yield _variable("project", total, 2 + tables)
    yield f"project_read = ReadVariableOp(project) {{dtype = float32}} -> <{total},{WIDTH}>"
    yield f"out0 = MatMul(joined, project_read) {_MATMUL.format('false', 'false')} -> <?,{WIDTH}>"
    for i in range(layers):
        yield _variable(f"kernel{i}", WIDTH, 3 + tables + i)
        yield f"kernel_read{i} = ReadVariableOp(kernel{i}) {{dtype = float32}} -> <{WIDTH},{WIDTH}>"
        yield f"mul{i} = MatMul(out{i}, kernel_read{i}) {_MATMUL.format('false', 'false')} -> <?,{WIDTH}>"
        yield f"relu{i} = Relu(mul{i}) {{T = float32}} -> <?,{WIDTH}>"
        yield f"square{i} = Square(relu{i}) {{T = float32}} -> <?,{WIDTH}>"
        yield f"sigmoid{i} = Sigmoid(square{i}) {{T = float32}} -> <?,{WIDTH}>"
        yield f"gate{i} = Mul(relu{i}, sigmoid{i}) {{T = float32}} -> <?,{WIDTH}>"
        yield f"out{i + 1} = AddV2(gate{i}, relu{i}) {{T = float32}} -> <?,{WIDTH}>"
    yield f"back{layers} = Neg(out{layers}) {{T = float32}} -> <?,{WIDTH}>"
    for i in reversed(range(layers)):
        yield f"relu_grad{i} = ReluGrad(back{i + 1}, relu{i}) {{T = float32}} -> <?,{WIDTH}>"
        yield f"back{i} = MatMul(relu_grad{i}, kernel_read{i}) {_MATMUL.format('false', 'true')} -> <?,{WIDTH}>"
        yield f"kernel_grad{i} = MatMul(out{i}, relu_grad{i}) {_MATMUL.format('true', 'false')} -> <{WIDTH},{WIDTH}>"
        yield f"kernel_step{i} = Mul(kernel_grad{i}, rate_read) {{T = float32}} -> <{WIDTH},{WIDTH}>"
        yield f"assign{i} = AssignSubVariableOp(kernel{i}, kernel_step{i}) {{dtype = float32}}"
    yield f"grad = MatMul(back0, project_read) {_MATMUL.format('false', 'true')} -> <?,{total}>"


def _updates(tables: int) -> Iterator[str]:
    for i in range(tables):
        yield _const(f"offset{i}", 0, WIDTH * i)
        yield f"band{i} = Slice(grad, offset{i}, band) {{Index = int32, T = float32}} -> <?,{WIDTH}>"
        yield f"gathered{i} = Reshape(band{i}, as_gathered) {{T = float32, Tshape = int32}} -> <?,1,{WIDTH}>"
        yield f"values{i} = Reshape(gathered{i}, as_rows) {{T = float32, Tshape = int32}} -> <?,{WIDTH}>"
        yield f"indices{i} = Reshape(ids{i}, flat) {{T = int32, Tshape = int32}} -> <?>"
        yield f"step{i} = Mul(values{i}, rate_read) {{T = float32}} -> <?,{WIDTH}>"
        yield f"scatter{i} = ResourceScatterSub(table{i}, indices{i}, step{i}) {{Tindices = int32, dtype = float32}}"


def _ends(tables: int) -> Iterator[str]:
    layers = -(-tables // TABLES_PER_LAYER)
    waits = ", ".join([*(f"^scatter{i}" for i in range(tables)), *(f"^assign{i}" for i in range(layers))])
    yield f"updates = NoOp({waits})"
    yield f"loss = Sum(out{layers}, one, ^updates) {{T = float32, Tidx = int32, keep_dims = false}} -> <?>"
    yield "result = _Retval(loss) {T = float32, index = 0}"
