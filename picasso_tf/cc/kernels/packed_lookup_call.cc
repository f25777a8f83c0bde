#include "picasso_tf/cc/kernels/packed_lookup_call.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/util/overflow.h"

namespace picasso {
namespace packed_lookup {

using tensorflow::DataTypeSize;
using tensorflow::MultiplyWithoutOverflow;
using tensorflow::Tensor;
using tensorflow::TensorShape;

namespace {

char* Data(const Tensor& tensor) { return static_cast<char*>(tensor.data()); }

int64_t Rows(const Piece& piece) { return piece.num_ids / piece.ids_per_row; }

}  // namespace

absl::Status Call::Prepare() {
  TF_RETURN_IF_ERROR(FindVars(context_, attrs_.num_tables, &vars_));
  locks_.Take(vars_);
  TF_RETURN_IF_ERROR(CheckTables(context_, kOp, attrs_.dtype, vars_));
  lookups_.reserve(attrs_.lookups.size());
  for (const Lookup& lookup : attrs_.lookups) TF_RETURN_IF_ERROR(BindLookup(lookup));

  size_t num_pieces = 0;
  for (const OutputSpec& output : attrs_.outputs) num_pieces += output.pieces.size();
  pieces_.reserve(num_pieces);  // matrices point into it
  matrices_.reserve(attrs_.outputs.size());
  for (size_t i = 0; i < attrs_.outputs.size(); ++i) TF_RETURN_IF_ERROR(AddOutput(i));
  return SetShapes();
}

absl::Status Call::BindLookup(const Lookup& lookup) {
  const Tensor& table = Table(lookup);
  const Tensor& ids = Ids(lookup);
  Piece piece;
  piece.table = Data(table);
  piece.table_rows = table.dim_size(0);
  piece.row_bytes = DataTypeSize(attrs_.dtype);
  piece.max_norm = lookup.max_norm;
  piece.is_double = attrs_.dtype == tensorflow::DT_DOUBLE;
  for (int d = 1; d < table.dims() && piece.row_bytes >= 0; ++d) {
    piece.row_bytes = MultiplyWithoutOverflow(piece.row_bytes, table.dim_size(d));
  }
  if (MultiplyWithoutOverflow(piece.row_bytes, std::max<int64_t>(ids.NumElements(), 1)) < 0) {
    return Invalid("the rows of lookup '", lookup.name, "' are too many bytes, for ids of shape ",
                   ids.shape().DebugString(), " and a table of shape ", table.shape().DebugString(),
                   ".");
  }
  const std::string reader = absl::StrCat("lookup '", lookup.name, "'");
  TF_RETURN_IF_ERROR(BindIds(kOp, reader, lookup, ids, &piece));
  TF_RETURN_IF_ERROR(
      shards_.Add(kOp, reader, lookup.shards, vars_, lookup.table, &piece.shards));
  lookups_.push_back(piece);
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
                     " elements, which is no multiple of the ", "width of its piece, ", spec.width,
                     ".");
    }
    piece.num_ids = piece.table_rows = dense.NumElements() / spec.width;
  } else {
    piece = lookups_[spec.source];
    if (!output.IsNatural()) {
      const Lookup& lookup = attrs_.lookups[spec.source];
      if (piece.row_bytes == 0 || width_bytes % piece.row_bytes != 0) {
        return Invalid("the piece of lookup '", lookup.name, "' is ", spec.width,
                       " wide, which is no multiple of the row of its ", "table, whose shape is ",
                       Table(lookup).shape().DebugString(), ".");
      }
      piece.ids_per_row = width_bytes / piece.row_bytes;
      if (piece.num_ids % piece.ids_per_row != 0) {
        return Invalid("lookup '", lookup.name, "' has ", piece.num_ids,
                       " ids, which is no multiple of the ", piece.ids_per_row,
                       " that one row of its output takes.");
      }
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
    const int64_t rows = Rows(pieces_.back());
    if (rows == Rows(pieces_[first])) continue;
    const PieceSpec& spec = output.pieces[i];
    return Invalid("piece ", i, " of output ", index, " (",
                   spec.IsDense() ? absl::StrCat("dense input ", spec.Dense())
                                  : absl::StrCat("lookup '", attrs_.lookups[spec.source].name, "'"),
                   ") has ", rows, " rows, but piece 0 has ", Rows(pieces_[first]), ".");
  }
  const int64_t rows = Rows(pieces_[first]);
  TensorShape shape;
  if (output.IsNatural()) {
    TF_RETURN_IF_ERROR(NaturalShape(attrs_.lookups[output.pieces[0].source], &shape));
  } else {
    TF_RETURN_IF_ERROR(
        ResolveShape(kOp, output.shape, MultiplyWithoutOverflow(rows, output.width), &shape));
  }
  Tensor* tensor = nullptr;
  TF_RETURN_IF_ERROR(context_->allocate_output(index, shape, &tensor));

  int64_t pitch = 0;
  for (size_t i = first; i < pieces_.size(); ++i) {
    pieces_[i].out = Data(*tensor) + pitch;
    pitch += pieces_[i].ids_per_row * pieces_[i].row_bytes;
  }
  for (size_t i = first; i < pieces_.size(); ++i) pieces_[i].out_pitch = pitch;
  matrices_.push_back({&pieces_[first], static_cast<int64_t>(output.pieces.size()), rows});
  return absl::OkStatus();
}

absl::Status Call::SetShapes() {
  int index = attrs_.outputs.size();
  for (const ShapeSpec& spec : attrs_.shapes) {
    const Lookup& lookup = attrs_.lookups[spec.lookup];
    TensorShape shape;
    TF_RETURN_IF_ERROR(NaturalShape(lookup, &shape));
    if (!spec.shape.unknown_rank()) {
      const int64_t elements = shape.num_elements();
      shape.Clear();
      TF_RETURN_IF_ERROR(ResolveShape(kOp, spec.shape, elements, &shape));
    }
    Tensor* tensor = nullptr;
    TF_RETURN_IF_ERROR(context_->allocate_output(index++, TensorShape({shape.dims()}), &tensor));
    for (int d = 0; d < shape.dims(); ++d) {
      if (shape.dim_size(d) > std::numeric_limits<int32_t>::max()) {
        return Invalid("the shape of lookup '", lookup.name, "', ", shape.DebugString(),
                       ", does not fit int32.");
      }
      tensor->vec<int32_t>()(d) = shape.dim_size(d);
    }
  }
  return absl::OkStatus();
}

absl::Status Call::NaturalShape(const Lookup& lookup, TensorShape* shape) const {
  *shape = IdsShape(lookup, Ids(lookup));
  const TensorShape& table = Table(lookup).shape();
  for (int d = 1; d < table.dims(); ++d) {
    TF_RETURN_IF_ERROR(shape->AddDimWithStatus(table.dim_size(d)));
  }
  return absl::OkStatus();
}

absl::Status Call::BadIdError() const {
  for (size_t i = 0; i < lookups_.size(); ++i) {
    const Lookup& lookup = attrs_.lookups[i];
    const int64_t at = lookup.read ? FirstBadId(lookups_[i]) : -1;
    if (at < 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(BadId(lookup, Ids(lookup), lookups_[i], at), " (lookup '", lookup.name,
                     "', table '", tensorflow::HandleFromInput(context_, lookup.table).name(),
                     "')"));
  }
  return absl::InternalError("PackedLookup: an id changed while it was being read.");
}

}  // namespace packed_lookup
}  // namespace picasso
