"""Where gradient rows are read: every cut of a tensor against TensorFlow itself."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.grappler import tf_optimizer

from graph_passes.ir import Graph, TensorRef
from graph_passes.rewrite.gradients import GradientSource, trace_gradient
from picasso_tf.bridge.callback import annotate_shapes
from tests.support.lines import arg, graph, vector
from tests.support.rewrite import graph_of

X = TensorRef("x")


def folded(concrete) -> Graph:
    """The graph of a function after TensorFlow has folded its constants, with shapes."""
    config = config_pb2.ConfigProto()
    config.graph_options.rewrite_options.min_graph_nodes = -1
    config.graph_options.rewrite_options.optimizers.append("constfold")
    meta = tf.compat.v1.train.export_meta_graph(
        graph_def=concrete.graph.as_graph_def(), graph=concrete.graph, clear_devices=True
    )
    fetch = meta.collection_def["train_op"].node_list.value
    fetch.extend(output.op.inputs[0].op.name for output in concrete.outputs)
    folded_def = tf_optimizer.OptimizeGraph(config, meta)
    return Graph.from_graph_def(graph_pb2.GraphDef.FromString(annotate_shapes(folded_def.SerializeToString(), (), ())))


def read(source: GradientSource, x: np.ndarray) -> np.ndarray:
    """What the packed op reads from `x`, in order."""
    assert source.ref == X
    if not source.span:
        return x.ravel()
    return x.reshape(-1, source.pitch)[:, source.first : source.first + source.span].ravel()


def check_cut(cut, shape: tuple[int, ...], row: int, known_batch: bool = False) -> GradientSource:
    """The source of `cut(x)`; when it is x, what is read there must be what TensorFlow gives."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    spec = tf.TensorSpec([shape[0] if known_batch else None, *shape[1:]], tf.float32, name="x")
    concrete = tf.function(lambda x: [tf.identity(cut(x))]).get_concrete_function(spec)
    node = concrete.outputs[0].op.inputs[0].op
    found = Graph.from_graph_def(concrete.graph.as_graph_def(add_shapes=True))
    source = trace_gradient(found, TensorRef(node.name), row)
    if source.ref == X:
        assert read(source, x).tolist() == concrete(tf.constant(x))[0].numpy().ravel().tolist()
    return source


@pytest.mark.parametrize(
    ("cut", "first", "span"),
    [
        (lambda x: x, 0, 0),
        (lambda x: tf.reshape(x, [-1, 4]), 0, 0),
        (lambda x: tf.slice(x, [0, 4], [-1, 8]), 4, 8),
        (lambda x: tf.slice(x, [0, 0], [-1, 4]), 0, 4),
        (lambda x: tf.slice(x, [0, 4], [-1, -1]), 4, 8),
        (lambda x: tf.split(x, 3, axis=1)[2], 8, 4),
        (lambda x: tf.split(x, 3, axis=-1)[1], 4, 4),
        (lambda x: tf.split(x, [4, 8], axis=1)[1], 4, 8),
        (lambda x: tf.reshape(tf.slice(x, [0, 4], [-1, 8]), [-1, 4]), 4, 8),
        (lambda x: tf.expand_dims(tf.split(x, [4, 8], axis=1)[1], 1), 4, 8),
        (lambda x: tf.slice(tf.slice(x, [0, 4], [-1, 8]), [0, 4], [-1, 4]), 8, 4),
        (lambda x: tf.split(tf.slice(x, [0, 4], [-1, 8]), 2, axis=1)[1], 8, 4),
    ],
)
@pytest.mark.parametrize("known_batch", [False, True])
def test_cuts_along_the_last_axis_are_read_in_place(cut, first: int, span: int, known_batch: bool) -> None:
    source = check_cut(cut, (5, 12), 4, known_batch)
    assert source == GradientSource(X, first, span, 12 if span else 0)


def test_a_cut_of_a_tensor_of_several_ids_a_row() -> None:
    source = check_cut(lambda x: tf.slice(x, [0, 0, 4], [-1, -1, 8]), (5, 3, 12), 8)
    assert source == GradientSource(X, 4, 8, 12)


def test_cuts_in_a_stack_of_columns() -> None:
    assert check_cut(lambda x: tf.unstack(x, axis=1)[2], (5, 4), 1) == GradientSource(X, 2, 1, 4)
    assert check_cut(lambda x: tf.unstack(x, axis=-1)[0], (5, 4), 1) == GradientSource(X, 0, 1, 4)


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: tf.slice(x, [1, 4], [-1, 4]),  # not the whole batch
        lambda x: tf.slice(x, [1, 0], [-1, -1]),  # rows only
        lambda x: tf.slice(x, [0, 3], [-1, 6]),  # no whole rows of the table
        lambda x: tf.split(x, 5, axis=0)[1],
        lambda x: tf.unstack(x, axis=0)[0],
        lambda x: tf.slice(x, [0, 4], [-1, 0]),
        tf.negative,
    ],
)
def test_what_is_no_cut_along_columns_is_read_as_it_is(cut) -> None:
    source = check_cut(cut, (5, 12), 4, known_batch=True)
    assert source.ref != X
    assert not source.span


def test_a_cut_of_another_cut_that_does_not_fit_is_read_from_the_first() -> None:
    def cut(x: tf.Tensor) -> tf.Tensor:
        return tf.slice(tf.reshape(tf.slice(x, [0, 4], [-1, 8]), [-1, 4]), [0, 0], [-1, 2])

    source = check_cut(cut, (5, 12), 2)
    assert source.ref != X
    assert (source.first, source.span, source.pitch) == (0, 2, 4)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    shape=st.sampled_from([(3, 8), (3, 2, 4), (2, 3, 2, 4)]),
    axes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 4)), min_size=1, max_size=3),
    row=st.sampled_from([1, 2, 4]),
    known_batch=st.booleans(),
)
@example((3, 2, 4), [(1, 1, 1)], 4, True)
@example((3, 8), [(1, 2, 4), (1, 1, 2)], 2, False)
def test_any_chain_of_slices_reads_what_tensorflow_cuts_out(shape, axes, row: int, known_batch: bool) -> None:
    def cut(x: tf.Tensor) -> tf.Tensor:
        for axis, begin, size in axes:
            axis %= x.shape.rank
            if axis == 0 and not known_batch:
                continue
            extent = x.shape[axis]
            begins, sizes = [0] * x.shape.rank, [-1] * x.shape.rank
            begins[axis] = begin % extent
            sizes[axis] = min(size, extent - begins[axis])
            x = tf.slice(x, begins, sizes)
        return x

    check_cut(cut, shape, row, known_batch)


def test_a_fed_node_and_a_node_that_waits_end_the_trace() -> None:
    base = "\n".join([arg("x", "float32", "<?,8>"), vector("b", 0, 4), vector("s", -1, 4)])
    slice_ = "out = Slice({}) {{Index = int32, T = float32}} -> <?,4>"
    wait = slice_.format("x, b, s, ^b")
    out = TensorRef("out")
    assert trace_gradient(graph_of(graph(base, wait)), out, 4) == GradientSource(out)
    plain = slice_.format("x, b, s")
    assert trace_gradient(graph_of(graph(base, plain)), out, 4) == GradientSource(X, 4, 4, 8)
    assert trace_gradient(graph_of(graph(base, plain, feeds=["out"])), out, 4) == GradientSource(out)


@pytest.mark.parametrize("port", [0, 1, 2])
@pytest.mark.parametrize("known", [False, True])
def test_the_gradient_of_a_concatenation_with_an_unknown_batch(port: int, known: bool) -> None:
    widths, shape = (4, 8, 4), "<3>" if known else "<2>"
    lines = [
        arg("x", "float32", "<?,16>"),
        "axis = Const() {dtype = int32, value = int32[](-1)} -> <>",
        *[arg(f"part{i}", "float32", f"<?,{width}>") for i, width in enumerate(widths)],
        f"shapes = ShapeN(part0, part1, part2) {{N = 3, T = float32, out_type = int32}} -> {', '.join([shape] * 3)}",
        "offsets = ConcatOffset(axis, shapes, shapes:1, shapes:2) {N = 3, shape_type = int32} -> <2>, <2>, <2>",
        f"out = Slice(x, offsets:{port}, shapes:{port}) {{Index = int32, T = float32}} -> <?,?>",
    ]
    lines = [line.replace("offsets:0", "offsets").replace("shapes:0)", "shapes)") for line in lines]
    source = trace_gradient(graph_of(graph(*lines)), TensorRef("out"), 4)
    assert source == GradientSource(X, (0, 4, 12)[port], widths[port], 16)
    other = lines[-1].replace(f"shapes:{port})" if port else "shapes)", "shapes:1)" if port != 1 else "shapes)")
    assert trace_gradient(graph_of(graph(*lines[:-1], other)), TensorRef("out"), 4).ref == TensorRef("out")


@pytest.mark.parametrize("count", [3, 20])
@pytest.mark.parametrize("reshaped", [False, True])
def test_the_gradient_of_a_concatenation_of_few_or_many_parts(count: int, reshaped: bool) -> None:
    """Of more than 16 parts TensorFlow splits the gradient by sizes that it computes; parts may be reshaped before."""
    widths = [4 * (1 + i % 3) for i in range(count)]

    def gradients(x: tf.Tensor, *parts: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(parts)
            batch = tf.shape(x)[:1]
            seen = [tf.reshape(p, tf.concat([batch, tf.shape(p)[1:]], 0)) for p in parts] if reshaped else parts
            joined = tf.concat(seen, axis=1)
        return [tf.identity(part) for part in tape.gradient(joined, parts, output_gradients=x)]

    specs = [tf.TensorSpec([None, width], tf.float32) for width in [sum(widths), *widths]]
    specs[0] = tf.TensorSpec(specs[0].shape, tf.float32, name="x")
    concrete = tf.function(gradients).get_concrete_function(*specs)
    found = folded(concrete)
    first = 0
    for output, width in zip(concrete.outputs, widths, strict=True):
        upstream = output.op.inputs[0]
        source = trace_gradient(found, TensorRef(upstream.op.name, upstream.value_index), 4)
        assert source == GradientSource(X, first, width, sum(widths))
        first += width
