"""Where ids come from: each step on its own, then any index expression against TensorFlow itself."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graph_passes.ir import Graph, TensorRef
from graph_passes.rewrite.ids import IdsSource, trace_ids
from tests.support.lines import arg, graph, scalar
from tests.support.rewrite import graph_of

BASE = "\n".join([arg("ids"), arg("wide", "int64"), scalar("zero", 0), scalar("ten", 10)])
WRAP = [
    "negative = Less(ids, zero) {T = int32} -> <?>",
    "added = AddV2(ids, ten) {T = int32} -> <?>",
    "out = SelectV2(negative, added, ids) {T = int32} -> <?>",
]


def trace(*lines: str, through_layout: bool = True, feeds: tuple[str, ...] = (), base: str = BASE) -> IdsSource | None:
    return trace_ids(graph_of(graph(base, *lines, feeds=feeds)), TensorRef("out"), through_layout)


def test_ids_without_a_story_are_read_as_they_are() -> None:
    assert trace("out = Neg(ids) {T = int32}") == IdsSource(TensorRef("out"), "int32")


def test_ids_of_another_dtype_have_no_source() -> None:
    assert trace("out = Cast(ids) {DstT = float32, SrcT = int32}") is None


@pytest.mark.parametrize(
    ("source", "casts", "narrow"),
    [
        ("ids", ["int64"], False),
        ("wide", ["int32"], True),
        ("wide", ["int32", "int64"], True),
        ("ids", ["int64", "int32"], True),
    ],
)
def test_casts_between_int32_and_int64_are_looked_through(source: str, casts: list[str], narrow: bool) -> None:
    lines, name, dtype = [], source, "int32" if source == "ids" else "int64"
    for number, cast in enumerate(casts, 1):
        new = "out" if number == len(casts) else f"c{number}"
        lines.append(f"{new} = Cast({name}) {{DstT = {cast}, SrcT = {dtype}}}")
        name, dtype = new, cast
    found = trace(*lines, through_layout=False)
    assert found == IdsSource(TensorRef(source), "int32" if source == "ids" else "int64", narrow=narrow)


def test_a_cast_from_float_is_not_looked_through() -> None:
    found = trace(arg("numbers", "float32"), "out = Cast(numbers) {DstT = int32, SrcT = float32}")
    assert found == IdsSource(TensorRef("out"), "int32")


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("op", ["AddV2", "Add"])
def test_a_wrap_of_negative_ids_is_looked_through(op: str, swap: bool) -> None:
    added = WRAP[1].replace("AddV2", op)
    added = added.replace("(ids, ten)", "(ten, ids)") if swap else added
    assert trace(WRAP[0], added, WRAP[2]) == IdsSource(TensorRef("ids"), "int32", wrap=10)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Less(ids, zero)", "Less(ids, ten)"),  # not a test for negative ids
        ("AddV2(ids, ten)", "AddV2(ids, zero)"),  # adds nothing
        ("AddV2(ids, ten)", "AddV2(ids, ids)"),  # adds no constant
        ("SelectV2(negative, added, ids)", "SelectV2(negative, ids, added)"),  # the wrong way round
        ("Less(ids, zero)", "Less(ids, zero, ^ten)"),  # waits for something
        ("AddV2(ids, ten)", "AddV2(ids, tens)"),  # adds a dimension
    ],
)
def test_what_only_looks_like_a_wrap_is_not_looked_through(old: str, new: str) -> None:
    tens = "tens = Const() {dtype = int32, value = int32[1,1](10)} -> <1,1>"
    assert trace(tens, *[line.replace(old, new) for line in WRAP]) == IdsSource(TensorRef("out"), "int32")


def test_ids_are_narrowed_before_the_wrap_but_never_after_it() -> None:
    narrow = "ids = Cast(wide) {DstT = int32, SrcT = int64} -> <?>"
    base = BASE.replace(arg("ids"), narrow)
    assert trace(*WRAP, base=base) == IdsSource(TensorRef("wide"), "int64", wrap=10, narrow=True)

    wide = [line.replace("ids", "wide").replace("int32", "int64").replace("out", "wrapped") for line in WRAP]
    constants = [scalar("zero", 0, "int64"), scalar("ten", 10, "int64")]
    base = "\n".join([arg("wide", "int64"), *constants])
    found = trace(*wide, "out = Cast(wrapped) {DstT = int32, SrcT = int64}", base=base)
    assert found == IdsSource(TensorRef("wrapped"), "int64", narrow=True)


def test_two_wraps_are_one_wrap_of_what_the_first_gives() -> None:
    first = [line.replace("out", "once") for line in WRAP]
    second = [line.replace("ids", "once").replace("negative", "n2").replace("added", "a2") for line in WRAP]
    assert trace(*first, *second) == IdsSource(TensorRef("once"), "int32", wrap=10)


def test_reshapes_are_looked_through_only_when_the_shape_is_stated_elsewhere() -> None:
    lines = ["e = ExpandDims(ids, zero) {T = int32, Tdim = int32}", "out = Squeeze(e) {T = int32, squeeze_dims = [0]}"]
    assert trace(*lines) == IdsSource(TensorRef("ids"), "int32")
    assert trace(*lines, through_layout=False) == IdsSource(TensorRef("out"), "int32")


def test_a_fed_node_and_a_node_that_waits_end_the_trace() -> None:
    lines = ["i = Identity(ids) {T = int32}", "out = Identity(i) {T = int32}"]
    assert trace(*lines) == IdsSource(TensorRef("ids"), "int32")
    assert trace(*lines, feeds=("i",)) == IdsSource(TensorRef("i"), "int32")
    assert trace(lines[0].replace("(ids)", "(ids, ^zero)"), lines[1]) == IdsSource(TensorRef("i"), "int32")


def read(source: IdsSource, matrix: np.ndarray) -> np.ndarray:
    """What the packed op reads from `matrix`, in row-major order."""
    assert source.ref == TensorRef("matrix")
    if source.column < 0:
        return matrix.ravel()
    return matrix[:, source.column : source.column + source.columns].ravel()


def traced_graph(cut, rows: int, columns: int, known_batch: bool) -> tuple[Graph, str, np.ndarray, np.ndarray]:
    """The graph of `cut`, its result's name, a matrix, and what TensorFlow cuts out of it."""
    matrix = np.arange(rows * columns, dtype=np.int32).reshape(rows, columns)
    spec = tf.TensorSpec([rows if known_batch else None, columns], tf.int32, name="matrix")
    concrete = tf.function(cut).get_concrete_function(spec)
    graph_def = concrete.graph.as_graph_def(add_shapes=True)
    name = (
        concrete.outputs[0].op.inputs[0].name if concrete.outputs[0].op.type == "Identity" else concrete.outputs[0].name
    )
    return Graph.from_graph_def(graph_def), name.removesuffix(":0"), matrix, concrete(tf.constant(matrix))[0].numpy()


def check_cut(cut, rows: int, columns: int, known_batch: bool) -> IdsSource:
    graph_, name, matrix, expected = traced_graph(lambda matrix: [cut(matrix)], rows, columns, known_batch)
    node, _, port = name.partition(":")
    source = trace_ids(graph_, TensorRef(node, int(port or 0)), through_layout=True)
    if source.ref.node == "matrix":
        assert read(source, matrix).tolist() == expected.ravel().tolist()
    return source


BOUND = st.one_of(st.none(), st.integers(-7, 7))
INDEX = st.one_of(
    st.integers(-4, 3).map(lambda i: (slice(None), i)),
    st.builds(lambda a, b: (slice(None), slice(a, b)), BOUND, BOUND),
    st.builds(lambda a, b: (..., slice(a, b)), BOUND, BOUND),
    st.integers(-4, 3).map(lambda i: (..., i)),
    st.builds(lambda a, b, c: (slice(a, b), slice(None, c)), BOUND, BOUND, BOUND),
    st.builds(lambda a, s: (slice(None), slice(a, None, s)), BOUND, st.sampled_from([1, 2, -1])),
    st.just((slice(None), tf.newaxis, 1)),
    st.just((0,)),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(INDEX, st.integers(1, 3), st.booleans())
@example((slice(None), slice(1, 3)), 2, False)
def test_any_index_expression_reads_the_ids_that_tensorflow_cuts_out(index, rows: int, known_batch: bool) -> None:
    check_cut(lambda matrix: matrix[index], rows, 4, known_batch)


MASK = st.integers(0, 3)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    begin=st.tuples(st.integers(-1, 1), st.integers(-4, 3)),
    size=st.integers(1, 3),
    masks=st.tuples(MASK, MASK, MASK, st.integers(0, 1)),
)
@example((0, 2), 1, (3, 1, 2, 0))
def test_any_masks_of_a_strided_slice_read_what_tensorflow_cuts_out(begin, size, masks) -> None:
    begins, ends, shrink, ellipsis = masks

    def cut(matrix: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.StridedSlice(
            input=matrix,
            begin=begin,
            end=(begin[0] + 1, begin[1] + size),
            strides=(1, 1),
            begin_mask=begins,
            end_mask=ends,
            shrink_axis_mask=shrink,
            ellipsis_mask=ellipsis,
        )

    check_cut(cut, 2, 4, known_batch=True)


@pytest.mark.parametrize(
    ("cut", "column", "columns"),
    [
        (lambda m: m[:, 2], 2, 1),
        (lambda m: m[:, -1], 5, 1),
        (lambda m: m[:, 1:4], 1, 3),
        (lambda m: m[..., -2:], 4, 2),
        (lambda m: m[..., 3], 3, 1),
        (lambda m: tf.slice(m, [0, 2], [-1, 3]), 2, 3),
        (lambda m: tf.slice(m, [0, 2], [-1, -1]), 2, 4),
        (lambda m: tf.split(m, 3, axis=1)[1], 2, 2),
        (lambda m: tf.split(m, 3, axis=-1)[2], 4, 2),
        (lambda m: tf.split(m, [1, 3, 2], axis=1)[1], 1, 3),
        (lambda m: tf.unstack(m, axis=1)[4], 4, 1),
        (lambda m: tf.unstack(m, axis=-1)[0], 0, 1),
        (lambda m: tf.reshape(m[:, 2:4], [-1]), 2, 2),
        (lambda m: tf.cast(m[:, 2:4], tf.int64), 2, 2),
    ],
)
def test_every_way_to_cut_columns_is_recognised(cut, column: int, columns: int) -> None:
    source = check_cut(cut, 3, 6, known_batch=False)
    assert (source.ref, source.column, source.columns) == (TensorRef("matrix"), column, columns)


@pytest.mark.parametrize(
    "cut",
    [
        lambda m: m[1:, 2],
        lambda m: m[:, ::2],
        lambda m: m[:, ::-1],
        lambda m: tf.slice(m, [1, 2], [-1, 3]),
        lambda m: tf.split(m, 3, axis=0)[1],
        lambda m: tf.unstack(m, axis=0)[0],
        lambda m: m[:, 3:3],
    ],
)
def test_what_is_no_column_is_read_as_it_is(cut) -> None:
    source = check_cut(cut, 3, 6, known_batch=True)
    assert source.column == -1
    assert source.ref.node != "matrix"


def test_columns_of_a_matrix_of_unknown_width_are_not_recognised() -> None:
    concrete = tf.function(lambda m: tf.identity(m[:, 1])).get_concrete_function(tf.TensorSpec([None, None], tf.int32))
    found = Graph.from_graph_def(concrete.graph.as_graph_def(add_shapes=True))
    (cut,) = found.of("StridedSlice")
    assert trace_ids(found, TensorRef(cut.name), through_layout=True) == IdsSource(TensorRef(cut.name), "int32")
