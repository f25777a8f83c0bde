#include "picasso_tf/cc/kernels/pooled_lookup_call.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "picasso_tf/cc/kernels/ids_input.h"
#include "picasso_tf/cc/kernels/pooled_lookup_cpu.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/util/overflow.h"

namespace picasso {
namespace pooled_lookup {

using tensorflow::DataTypeSize;
using tensorflow::MultiplyWithoutOverflow;
using tensorflow::Tensor;
using tensorflow::TensorShape;

namespace {

char* Data(const Tensor& tensor) { return static_cast<char*>(tensor.data()); }

int64_t IntAt(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == tensorflow::DT_INT32) return tensor.flat<int32_t>()(i);
  return tensor.flat<int64_t>()(i);
}

// "lookup 'x'" or "dense input 0".
std::string PieceName(const Attrs& attrs, const PieceSpec& piece) {
  if (piece.IsDense()) return absl::StrCat("dense input ", piece.Dense());
  return absl::StrCat("lookup '", attrs.lookups[piece.source].name, "'");
}

}  // namespace

absl::Status Call::Prepare() {
  TF_RETURN_IF_ERROR(FindVars(context_, attrs_.num_tables, &vars_));
  locks_.Take(vars_);
  TF_RETURN_IF_ERROR(CheckTables(context_, kOp, attrs_.dtype, vars_));
  lookups_.reserve(attrs_.lookups.size());
  for (const LookupSpec& spec : attrs_.lookups) TF_RETURN_IF_ERROR(BindLookup(spec));

  size_t num_pieces = 0;
  for (const OutputSpec& output : attrs_.outputs) num_pieces += output.pieces.size();
  pieces_.reserve(num_pieces);  // matrices point into it
  matrices_.reserve(attrs_.outputs.size());
  for (size_t i = 0; i < attrs_.outputs.size(); ++i) TF_RETURN_IF_ERROR(AddOutput(i));
  return inputs_ == Memory::kHost ? AllocateStarts() : absl::OkStatus();
}

absl::Status Call::AllocateStarts() {
  int64_t size = 0;
  for (const Piece& piece : pieces_) size += piece.IsDense() ? 0 : piece.rows + 1;
  TF_RETURN_IF_ERROR(context_->allocate_temp(tensorflow::DT_INT64, TensorShape({size}), &starts_));
  int64_t* next = starts_.flat<int64_t>().data();
  std::vector<int64_t*> starts(lookups_.size());
  size_t at = 0;
  for (const OutputSpec& output : attrs_.outputs) {
    for (const PieceSpec& spec : output.pieces) {
      Piece& piece = pieces_[at++];
      if (spec.IsDense()) continue;
      piece.finds_starts = starts[spec.source] == nullptr;
      if (piece.finds_starts) {
        starts[spec.source] = next;
        next += piece.rows + 1;
      }
      piece.starts = starts[spec.source];
    }
  }
  return absl::OkStatus();
}

absl::Status Call::BindLookup(const LookupSpec& spec) {
  const Tensor& table = Table(spec);
  const Tensor& ids = Ids(spec);
  Piece piece;
  piece.table = Data(table);
  piece.table_rows = table.dim_size(0);
  piece.row_bytes = DataTypeSize(attrs_.dtype);
  for (int d = 1; d < table.dims() && piece.row_bytes >= 0; ++d) {
    piece.row_bytes = MultiplyWithoutOverflow(piece.row_bytes, table.dim_size(d));
  }
  if (piece.row_bytes < 0) {
    return Invalid("the rows of table '", TableName(spec), "', whose shape is ",
                   table.shape().DebugString(), ", are too long.");
  }
  if (ids.dims() != (spec.HasMatrix() ? 2 : 1)) {
    return Invalid("the ids of lookup '", spec.name, "' must be a ",
                   spec.HasMatrix() ? "matrix" : "vector", ", but their shape is ",
                   ids.shape().DebugString(), ".");
  }
  const std::string reader = absl::StrCat("lookup '", spec.name, "'");
  TF_RETURN_IF_ERROR(BindIds(kOp, reader, spec.ids, ids, &piece));
  TF_RETURN_IF_ERROR(shards_.Add(kOp, reader, spec.shards, vars_, spec.table, &piece.shards));
  piece.drop_negative = spec.drop_negative;
  piece.fill = spec.fill;
  piece.combiner = spec.combiner;
  piece.in_turn = spec.in_turn;
  piece.max_norm = spec.max_norm;
  TF_RETURN_IF_ERROR(BindWeights(spec, &piece));
  if (spec.HasMatrix()) {
    piece.rows = ids.dim_size(0);
    piece.segments.length = spec.ids.column < 0 ? ids.dim_size(1) : spec.ids.columns;
  } else {
    TF_RETURN_IF_ERROR(BindSegments(spec, &piece));
    TF_RETURN_IF_ERROR(BindRows(spec, &piece));
  }
  lookups_.push_back(piece);
  // There is no block that would find these ids.
  const bool look = spec.read && piece.rows == 0 && inputs_ == Memory::kHost;
  const int64_t at = look ? FirstBadSegment(piece, spec.sort) : -1;
  return at < 0 ? absl::OkStatus() : SegmentError(spec, piece, at);
}

absl::Status Call::BindWeights(const LookupSpec& spec, Lookup* lookup) const {
  if (spec.weights < 0) return absl::OkStatus();
  const Tensor& weights = context_->input(attrs_.FirstWeights() + spec.weights);
  if (weights.dtype() == tensorflow::DT_BOOL) {
    lookup->mask = static_cast<const bool*>(weights.data());
  } else {
    lookup->weights = weights.data();
    lookup->weights_are_double = weights.dtype() == tensorflow::DT_DOUBLE;
  }
  lookup->drop_weightless = spec.drop_weightless;
  // Without ids TensorFlow's product with one weight is as empty. What divides by the
  // sum of the weights fails there, unless empty rows were filled before.
  const bool divides = spec.combiner != Combiner::kSum && !spec.sort;
  const bool none = lookup->num_ids == 0 && weights.NumElements() == 1 && !divides;
  if (none || weights.NumElements() == lookup->num_ids) return absl::OkStatus();
  return Invalid("lookup '", spec.name, "' must have one weight for each of its ",
                 lookup->num_ids, " ids, but its weights have shape ",
                 weights.shape().DebugString(), ".");
}

absl::Status Call::BindSegments(const LookupSpec& spec, Lookup* lookup) const {
  const Tensor& tensor = SegmentsOf(spec);
  const std::string shape = tensor.shape().DebugString();
  Segments& segments = lookup->segments;
  segments.data = tensor.data();
  segments.is_int64 = tensor.dtype() == tensorflow::DT_INT64;
  segments.are_splits = attrs_.HasSplits(spec);
  if (segments.are_splits) {
    if (tensor.dims() == 1 && tensor.NumElements() > 0) return absl::OkStatus();
    return Invalid("the row splits of lookup '", spec.name,
                   "' must be a vector with at least one entry, but their shape is ", shape, ".");
  }
  const bool is_matrix = tensor.dims() == 2;
  if (tensor.dims() != 1 && !(is_matrix && tensor.dim_size(1) >= 2)) {
    return Invalid("the segments of lookup '", spec.name,
                   "' must be a vector or a matrix of two columns or more, but their shape is ",
                   shape, ".");
  }
  if (tensor.dim_size(0) != lookup->num_ids) {
    return Invalid("lookup '", spec.name, "' must have one segment for each of its ",
                   lookup->num_ids, " ids, but its segments have shape ", shape, ".");
  }
  if (!is_matrix) return absl::OkStatus();
  segments.pitch = tensor.dim_size(1);
  if (segments.pitch - 1 > kMaxColumns) {
    return Invalid("the segments of lookup '", spec.name, "' must have at most ", kMaxColumns + 1,
                   " columns, but their shape is ", shape, ".");
  }
  segments.columns = segments.pitch - 1;
  return absl::OkStatus();
}

// Sets the number of rows, and the strides of segments that are a matrix.
absl::Status Call::BindRows(const LookupSpec& spec, Lookup* lookup) const {
  Segments& segments = lookup->segments;
  if (segments.are_splits) {
    lookup->rows = SegmentsOf(spec).NumElements() - 1;
    return absl::OkStatus();
  }
  const Tensor* rows = spec.rows < 0 ? nullptr : &context_->input(attrs_.FirstRows() + spec.rows);
  const bool is_vector = rows != nullptr && rows->dims() == 1;
  const bool is_scalar = rows == nullptr || rows->dims() == 0;
  const int64_t size = is_vector ? rows->NumElements() : 0;
  const bool fits = is_vector ? size > 0 && (segments.pitch == 1 || size == segments.pitch)
                              : is_scalar && segments.columns == 1;
  if (!fits) {
    return Invalid("the rows of lookup '", spec.name, "' must be ",
                   segments.columns == 1 ? "a scalar or " : "",
                   "a vector with one entry for each column of its segments, whose shape is ",
                   SegmentsOf(spec).shape().DebugString(), ", but ",
                   rows == nullptr ? "there are none"
                                   : absl::StrCat("their shape is ", rows->shape().DebugString()),
                   ".");
  }
  if (rows == nullptr) {
    // What is dropped at the end makes no row.
    while (lookup->num_ids > 0 && IsLeftOut(*lookup, lookup->num_ids - 1)) --lookup->num_ids;
    const int64_t n = lookup->num_ids;
    const int64_t last = n == 0 ? -1 : SegmentAt(segments, n - 1);
    if (n > 0 && (last < 0 || last == std::numeric_limits<int64_t>::max())) {
      return Invalid("segments[", n - 1, "] = ", last, " of lookup '", spec.name,
                     "' is not the number of a row.");
    }
    lookup->rows = last + 1;
    return absl::OkStatus();
  }
  lookup->rows = 1;
  for (int64_t d = is_vector ? size - 2 : 0; d >= 0; --d) {
    if (segments.pitch > 1) segments.strides[d] = lookup->rows;
    const int64_t dimension = IntAt(*rows, d);
    lookup->rows = dimension < 0 ? -1 : MultiplyWithoutOverflow(lookup->rows, dimension);
    if (lookup->rows < 0) {
      return Invalid("the number of rows of lookup '", spec.name,
                     "' must fit 63 bits and not be negative, but its rows are [",
                     rows->SummarizeValue(kMaxColumns), "].");
    }
  }
  return absl::OkStatus();
}

// Appends piece `at` of the output, all but the place it is written to.
absl::Status Call::AddPiece(const OutputSpec& output, int64_t at) {
  const PieceSpec& spec = output.pieces[at];
  const int64_t width_bytes = spec.width * DataTypeSize(attrs_.dtype);
  Piece piece;
  if (spec.IsDense()) {
    const Tensor& dense = Dense(spec.Dense());
    piece.table = Data(dense);
    piece.row_bytes = width_bytes;
    if (dense.NumElements() % spec.width != 0) {
      return Invalid("dense input ", spec.Dense(), " has ", dense.NumElements(),
                     " elements, which is no multiple of the width of its piece, ", spec.width,
                     ".");
    }
    piece.rows = piece.num_ids = dense.NumElements() / spec.width;
  } else {
    piece = lookups_[spec.source];
    const LookupSpec& lookup = attrs_.lookups[spec.source];
    if (!output.IsNatural() && width_bytes != piece.row_bytes) {
      return Invalid("the piece of lookup '", lookup.name, "' is ", spec.width,
                     " wide, which is not the size of a row of its table, whose shape is ",
                     Table(lookup).shape().DebugString(), ".");
    }
  }
  pieces_.push_back(piece);
  return absl::OkStatus();
}

absl::Status Call::AddOutput(int index) {
  const OutputSpec& output = attrs_.outputs[index];
  const size_t first = pieces_.size();
  for (size_t i = 0; i < output.pieces.size(); ++i) {
    TF_RETURN_IF_ERROR(AddPiece(output, i));
    const int64_t rows = pieces_.back().rows;
    if (rows == pieces_[first].rows) continue;
    return Invalid("piece ", i, " of output ", index, " (", PieceName(attrs_, output.pieces[i]),
                   ") has ", rows, " rows, but piece 0 (", PieceName(attrs_, output.pieces[0]),
                   ") has ", pieces_[first].rows, ".");
  }
  const int64_t rows = pieces_[first].rows;
  TensorShape shape;
  if (output.IsNatural()) {
    TF_RETURN_IF_ERROR(shape.AddDimWithStatus(rows));
    const TensorShape& table = Table(attrs_.lookups[output.pieces[0].source]).shape();
    for (int d = 1; d < table.dims(); ++d) {
      TF_RETURN_IF_ERROR(shape.AddDimWithStatus(table.dim_size(d)));
    }
  } else {
    TF_RETURN_IF_ERROR(
        ResolveShape(kOp, output.shape, MultiplyWithoutOverflow(rows, output.width), &shape));
  }
  Tensor* tensor = nullptr;
  TF_RETURN_IF_ERROR(context_->allocate_output(index, shape, &tensor));

  int64_t pitch = 0;
  for (size_t i = first; i < pieces_.size(); ++i) {
    pieces_[i].out = Data(*tensor) + pitch;
    pitch += pieces_[i].row_bytes;
  }
  for (size_t i = first; i < pieces_.size(); ++i) pieces_[i].out_pitch = pitch;
  matrices_.push_back({&pieces_[first], static_cast<int64_t>(output.pieces.size()), rows});
  return absl::OkStatus();
}

bool Call::SortIds() {
  bool sorted = false;
  for (size_t i = 0; i < lookups_.size(); ++i) {
    Lookup lookup = lookups_[i];  // which stays as it is: errors name the given order
    if (!attrs_.lookups[i].sort || !SortByRow(&lookup, &sorted_.emplace_back())) continue;
    sorted = true;
    size_t at = 0;
    for (const OutputSpec& output : attrs_.outputs) {
      for (const PieceSpec& piece : output.pieces) {
        Lookup& copy = pieces_[at++];
        if (piece.IsDense() || piece.source != static_cast<int64_t>(i)) continue;
        lookup.starts = copy.starts;
        copy = lookup;
      }
    }
  }
  return sorted;
}

absl::Status Call::BadInputError() const {
  for (size_t i = 0; i < lookups_.size(); ++i) {
    const LookupSpec& spec = attrs_.lookups[i];
    const Lookup& lookup = lookups_[i];
    if (!spec.read) continue;
    if (const int64_t at = FirstBadSegment(lookup, spec.sort); at >= 0) {
      return SegmentError(spec, lookup, at);
    }
    if (const int64_t at = FirstIdOutOfRange(lookup); at >= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(BadId(spec.ids, Ids(spec), lookup, at), " (lookup '", spec.name,
                       "', table '", TableName(spec), "')"));
    }
    if (spec.fill >= 0 && !HasRow(lookup, spec.fill) && HasRowWithoutIds(lookup)) {
      return Invalid("lookup '", spec.name, "' fills a row without ids with row ", spec.fill,
                     " of table '", TableName(spec), "', which has ", lookup.table_rows, " rows.");
    }
  }
  return absl::InternalError("PackedPooledLookup: an input changed while it was being read.");
}

absl::Status Call::SegmentError(const LookupSpec& spec, const Lookup& lookup, int64_t at) const {
  const int64_t found = SegmentAt(lookup.segments, at);
  if (lookup.segments.are_splits) {
    return Invalid("the row splits of lookup '", spec.name, "' must rise from 0 to its number of ",
                   "ids, ", lookup.num_ids, ", but splits[", at, "] = ", found, ".");
  }
  if (found < 0 || found >= lookup.rows) {
    return Invalid("segments[", at, "] = ", found, " of lookup '", spec.name, "' is not in [0, ",
                   lookup.rows, "), its rows.");
  }
  return Invalid("the segments of lookup '", spec.name, "' must not decrease, but segments[", at,
                 "] = ", found, " comes after ", SegmentAt(lookup.segments, at - 1), ".");
}

std::string Call::TableName(const LookupSpec& spec) const {
  return tensorflow::HandleFromInput(context_, spec.table).name();
}

}  // namespace pooled_lookup
}  // namespace picasso
