"""Lines of the text form for pooled lookups, as `tf.nn.embedding_lookup_sparse` and its safe variant write them."""

from __future__ import annotations

from tests.support.lines import arg, scalar, variable, vector

BASE = "\n".join(
    [
        variable("t"),
        variable("t2", "<20,8>", index=1),
        *(arg(f"i{n}", "int64", "<?,2>", index=2 + 3 * n) for n in (0, 1)),
        *(arg(f"v{n}", "int64", "<?>", index=3 + 3 * n) for n in (0, 1)),
        *(arg(f"s{n}", "int64", "<2>", index=4 + 3 * n) for n in (0, 1)),
        scalar("zero", 0),
        scalar("one", 1),
        scalar("zero64", 0, "int64"),
        vector("minus_one", -1),
        vector("column", -1, 1),
        vector("begin", 0),
        vector("two", 2),
        vector("size", 1),
        vector("at", 0, 0),
        vector("until", 0, 1),
        vector("steps", 1, 1),
        vector("known", 6, 3, dtype="int64"),
    ]
)
"""Two tables, the parts of two SparseTensors, and constants."""

_RESHAPE = "{T = %s, Tshape = int32}"
_GATHER = "{Taxis = int32, Tindices = %s, Tparams = int64, batch_dims = 0}"
_CUT = (
    "{Index = int32, T = %s, begin_mask = %d, ellipsis_mask = 0, end_mask = %d, new_axis_mask = 0, "
    "shrink_axis_mask = %d}"
)


def pooled(name: str, table: str, ids: str, indices: str, op: str = "SparseSegmentMean", width: int = 4) -> str:
    """Unique, ResourceGather and a SparseSegment op; `ids` and `indices` are tensors."""
    types = "{T = float32, Tidx = int32, Tsegmentids = int64, sparse_gradient = false}"
    rows = f"{{Tindices = int64, dtype = float32}} -> <?,{width}>"
    return "\n".join(
        [
            f"{name}/rows = StridedSlice({indices}, at, until, steps) {_CUT % ('int64', 1, 1, 2)} -> <?>",
            f"{name}/unique = Unique({ids}) {{T = int64, out_idx = int32}} -> <?>, <?>",
            f"{name}/gather = ResourceGather({table}, {name}/unique) {rows}",
            f"{name} = {op}({name}/gather, {name}/unique:1, {name}/rows) {types} -> <?,{width}>",
        ]
    )


def filled(name: str, number: int, default: str = "zero64", prune: bool = True, known: str = "") -> str:
    """What comes before: the flat SparseTensor, its valid ids, its empty rows filled. Outputs are of `name`/fill.

    `known` is a constant dense shape, `known` of `BASE`, or other inputs of the SparseReshape.
    """
    ids, indices = f"v{number}", f"{name}/flat"
    lines = [
        f"{name}/cut = Slice(s{number}, begin, size) {{Index = int32, T = int64}} -> <1>",
        f"{name}/prod = Prod({name}/cut, begin) {{T = int64, Tidx = int32, keep_dims = false}} -> <>",
        f"{name}/last = GatherV2(s{number}, one, zero) {_GATHER % 'int32'} -> <>",
        f"{name}/shape = Pack({name}/prod, {name}/last) {{N = 2, T = int64, axis = 0}} -> <2>",
        f"{name}/flat = SparseReshape(i{number}, s{number}, {name}/shape) -> <?,2>, <2>",
    ]
    if known:
        lines = [f"{name}/flat = SparseReshape(i{number}, {known}) -> <?,2>, <2>"]
    if prune:
        lines += [
            f"{name}/valid = GreaterEqual(v{number}, zero64) {{T = int64}} -> <?>",
            f"{name}/where = Where({name}/valid) {{T = bool}} -> <?,1>",
            f"{name}/kept = Reshape({name}/where, minus_one) {_RESHAPE % 'int64'} -> <?>",
            f"{name}/indices = GatherV2({name}/flat, {name}/kept, zero) {_GATHER % 'int64'} -> <?,2>",
            f"{name}/ids = GatherV2(v{number}, {name}/kept, zero) {_GATHER % 'int64'} -> <?>",
        ]
        ids, indices = f"{name}/ids", f"{name}/indices"
    types = "{T = int64} -> <?,2>, <?>, <?>, <?>"
    lines.append(f"{name}/fill = SparseFillEmptyRows({indices}, {ids}, {name}/flat:1, {default}) {types}")
    return "\n".join(lines)


def zeroed(name: str, source: str, fill: str, width: int = 4) -> str:
    """A Select that takes zeros for the rows that `fill` found empty."""
    return "\n".join(
        [
            f"{name}/empty = Reshape({fill}:2, column) {_RESHAPE % 'bool'} -> <?,1>",
            f"{name}/like = Shape({source}) {{T = float32, out_type = int32}} -> <2>",
            f"{name}/width = StridedSlice({name}/like, size, two, size) {_CUT % ('int32', 0, 0, 1)} -> <>",
            f"{name}/times = Pack(one, {name}/width) {{N = 2, T = int32, axis = 0}} -> <2>",
            f"{name}/tile = Tile({name}/empty, {name}/times) {{T = bool, Tmultiples = int32}} -> <?,{width}>",
            f"{name}/zeros = ZerosLike({source}) {{T = float32}} -> <?,{width}>",
            f"{name} = Select({name}/tile, {name}/zeros, {source}) {{T = float32}} -> <?,{width}>",
        ]
    )


def weighted(name: str, table: str, ids: str, indices: str, weights: str, combiner: str, width: int = 4) -> str:
    """Rows by ids, times weights, combined; `ids`, `indices` and `weights` are tensors."""
    rows = f"{{Tindices = int64, dtype = float32}} -> <?,{width}>"
    types, cast = "{T = float32, Tindices = int32}", "{DstT = int32, SrcT = int64, Truncate = false}"
    gathered = "{Taxis = int32, Tindices = int32, Tparams = float32, batch_dims = 0}"
    total = name if combiner == "sum" else f"{name}/total"
    lines = [
        f"{name}/rows = StridedSlice({indices}, at, until, steps) {_CUT % ('int64', 1, 1, 2)} -> <?>",
        f"{name}/segments = Cast({name}/rows) {cast} -> <?>",
        f"{name}/unique = Unique({ids}) {{T = int64, out_idx = int32}} -> <?>, <?>",
        f"{name}/gather = ResourceGather({table}, {name}/unique) {rows}",
        f"{name}/each = GatherV2({name}/gather, {name}/unique:1, zero) {gathered} -> <?,{width}>",
        f"{name}/column = Reshape({weights}, column) {_RESHAPE % 'float32'} -> <?,1>",
        f"{name}/product = Mul({name}/each, {name}/column) {{T = float32}} -> <?,{width}>",
        f"{total} = SegmentSum({name}/product, {name}/segments) {types} -> <?,{width}>",
    ]
    if combiner == "sqrtn":
        lines.append(f"{name}/square = Square({name}/column) {{T = float32}} -> <?,1>")
    if combiner != "sum":
        term = "square" if combiner == "sqrtn" else "column"
        lines.append(f"{name}/parts = SegmentSum({name}/{term}, {name}/segments) {types} -> <?,1>")
    if combiner == "sqrtn":
        lines.append(f"{name}/root = Sqrt({name}/parts) {{T = float32}} -> <?,1>")
    if combiner != "sum":
        divisor = "root" if combiner == "sqrtn" else "parts"
        lines.append(f"{name} = DivNoNan({total}, {name}/{divisor}) {{T = float32}} -> <?,{width}>")
    return "\n".join(lines)


def filled_with_weights(name: str, number: int, weights: str, prune_weights: bool) -> str:
    """`filled`, for ids with weights. Outputs are of `name`/fill and `name`/fill_weights."""
    test, gather = f"{name}/valid = GreaterEqual", "{Taxis = int32, Tindices = int64, Tparams = %s, batch_dims = 0}"
    lines = []
    for line in filled(name, number).splitlines():
        if line.startswith(test):
            lines += [
                line.replace(test, f"{name}/known = GreaterEqual"),
                f"{name}/length = Shape({weights}) {{T = float32, out_type = int32}} -> <1>",
                f"{name}/ones = Fill({name}/length, true) {{T = bool, index_type = int32}} -> <?>",
                f"{name}/valid = LogicalAnd({name}/known, {name}/ones) -> <?>",
            ]
            continue
        lines.append(line)
        if line.startswith(f"{name}/ids = "):
            lines.append(f"{name}/weights = GatherV2({weights}, {name}/kept, zero) {gather % 'float32'} -> <?>")
    fill = lines.pop()
    lines += [
        "true = Const() {dtype = bool, value = bool[](True)} -> <>",
        "nothing = Const() {dtype = float32, value = float32[](0.0)} -> <>",
        "unit = Const() {dtype = float32, value = float32[](1.0)} -> <>",
    ]
    last = ""
    if prune_weights:
        lines += [
            f"{name}/heavy = Greater({name}/weights, nothing) {{T = float32}} -> <?>",
            f"{name}/where_heavy = Where({name}/heavy) {{T = bool}} -> <?,1>",
            f"{name}/kept_heavy = Reshape({name}/where_heavy, minus_one) {_RESHAPE % 'int64'} -> <?>",
            f"{name}/indices_2 = GatherV2({name}/indices, {name}/kept_heavy, zero) {gather % 'int64'} -> <?,2>",
            f"{name}/ids_2 = GatherV2({name}/ids, {name}/kept_heavy, zero) {gather % 'int64'} -> <?>",
            f"{name}/weights_2 = GatherV2({name}/weights, {name}/kept_heavy, zero) {gather % 'float32'} -> <?>",
        ]
        last = "_2"
    fill = fill.replace(f"{name}/indices, {name}/ids,", f"{name}/indices{last}, {name}/ids{last},")
    of_weights = (
        f"{name}/fill_weights = SparseFillEmptyRows({name}/indices{last}, {name}/weights{last}, {name}/flat:1, unit) "
        "{T = float32} -> <?,2>, <?>, <?>, <?>"
    )
    return "\n".join([*lines, fill, of_weights])


def zeros(name: str, waits_for: str, width: int = 4, value: float = 0.0) -> str:
    """What TensorFlow makes of ZerosLike where the batch, 6, is known."""
    values = ", ".join([str(value)] * 6 * width)
    return f"{name} = Const(^{waits_for}) {{dtype = float32, value = float32[6,{width}]({values})}} -> <6,{width}>"


def reshaped(name: str, source: str, number: int) -> str:
    """A Reshape to [*dense_shape[:-1], width], which is what `source` has already."""
    return "\n".join(
        [
            f"{name}/narrow = Cast(s{number}) {{DstT = int32, SrcT = int64, Truncate = false}} -> <2>",
            f"{name}/rows = Slice({name}/narrow, begin, size) {{Index = int32, T = int32}} -> <1>",
            f"{name}/like = Shape({source}) {{T = float32, out_type = int32}} -> <2>",
            f"{name}/row = Slice({name}/like, size, minus_one) {{Index = int32, T = int32}} -> <1>",
            f"{name}/to = ConcatV2({name}/rows, {name}/row, zero) {{N = 2, T = int32, Tidx = int32}} -> <2>",
            f"{name} = Reshape({source}, {name}/to) {_RESHAPE % 'float32'} -> <?,?>",
        ]
    )


def safe(name: str, table: str, number: int, width: int = 4) -> str:
    """All of `safe_embedding_lookup_sparse`."""
    return "\n".join(
        [
            filled(f"{name}/safe", number),
            pooled(f"{name}/sum", table, f"{name}/safe/fill:1", f"{name}/safe/fill", width=width),
            zeroed(f"{name}/zeroed", f"{name}/sum", f"{name}/safe/fill", width),
            reshaped(name, f"{name}/zeroed", number),
        ]
    )
