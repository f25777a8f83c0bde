#include "picasso_tf/cc/kernels/packed_update_call.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "picasso_tf/cc/kernels/row_sort.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/errors.h"

namespace picasso {
namespace packed_update {

using tensorflow::DataTypeString;
using tensorflow::Tensor;

absl::Status Call::Prepare() {
  TF_RETURN_IF_ERROR(FindInitialised());
  locks_.Take(vars_);
  const Counts& counts = attrs_.program.counts;
  const size_t num_tables = attrs_.tables.size();
  // Tables point into these lists, which must not move.
  tables_.resize(num_tables);
  segments_.resize(attrs_.segments.size());
  gradients_.resize(attrs_.segments.size() * counts.row_gradients);
  if (attrs_.has_pooled) pools_.resize(gradients_.size());
  states_.resize(num_tables * counts.states);
  table_gradients_.resize(num_tables * counts.table_gradients);
  parameters_.resize(num_tables * counts.parameters);
  for (size_t i = 0; i < num_tables; ++i) {
    Table& table = tables_[i];
    table.states = states_.data() + i * counts.states;
    table.table_gradients = table_gradients_.data() + i * counts.table_gradients;
    table.parameters = parameters_.data() + i * counts.parameters;
    TF_RETURN_IF_ERROR(BindTable(attrs_.tables[i], &table));
  }
  return absl::OkStatus();
}

absl::Status Call::FindInitialised() {
  const absl::Status found = FindVars(context_, attrs_.num_variables, &vars_);
  if (found.ok()) return found;
  for (int i = 0; i < attrs_.num_variables; ++i) {
    if (vars_[i] != nullptr) continue;
    return absl::Status(
        found.code(),
        absl::StrCat(attrs_.op, ": variable '", tensorflow::HandleFromInput(context_, i).name(),
                     "' is not initialised, or was destroyed. ", found.message()));
  }
  return found;
}

std::string Call::VariableName(const TableSpec& spec, int state) const {
  return tensorflow::HandleFromInput(context_, spec.states[state]).name();
}

absl::Status Call::CheckStates(const TableSpec& spec) const {
  for (size_t i = 0; i < spec.states.size(); ++i) {
    const Tensor& state = State(spec, i);
    if (!state.IsInitialized()) {
      return absl::FailedPreconditionError(
          absl::StrCat(attrs_.op, ": variable '", VariableName(spec, i), "', state ", i,
                       " of table '", spec.name, "', is not initialised."));
    }
    if (state.dtype() != attrs_.dtype) {
      return InvalidIn(attrs_.op, "variable '", VariableName(spec, i), "', state ", i,
                       " of table '", spec.name, "', must be ", DataTypeString(attrs_.dtype),
                       ", but it is ", DataTypeString(state.dtype()), ".");
    }
    if (state.NumElements() != State(spec, 0).NumElements()) {
      return InvalidIn(attrs_.op, "all states of table '", spec.name,
                       "' must have the same number of elements, but state 0 has shape ",
                       State(spec, 0).shape().DebugString(), " and state ", i, " ('",
                       VariableName(spec, i), "') has shape ", state.shape().DebugString(), ".");
    }
  }
  return absl::OkStatus();
}

absl::Status Call::BindTable(const TableSpec& spec, Table* table) {
  TF_RETURN_IF_ERROR(CheckStates(spec));
  const Tensor& first = State(spec, 0);
  table->rows = first.dims() == 0 ? 1 : first.dim_size(0);
  table->row = 1;
  for (int d = 1; d < first.dims(); ++d) table->row *= first.dim_size(d);
  for (size_t i = 0; i < spec.gradients.size(); ++i) {
    const Tensor& gradient = Gradient(spec.gradients[i]);
    if (gradient.NumElements() != first.NumElements()) {
      return InvalidIn(attrs_.op, "table gradient ", i, " of table '", spec.name,
                       "' must have as many elements as its variable, whose shape is ",
                       first.shape().DebugString(), ", but it has shape ",
                       gradient.shape().DebugString(), ".");
    }
    table_gradients_[table->table_gradients - table_gradients_.data() + i] = gradient.data();
  }
  for (size_t i = 0; i < spec.parameters.size(); ++i) {
    const Tensor& parameter = context_->input(attrs_.ScalarInput(spec.parameters[i]));
    if (parameter.NumElements() != 1) {
      return InvalidIn(attrs_.op, "parameter ", i, " of table '", spec.name,
                       "' must have one element, but it has shape ",
                       parameter.shape().DebugString(), ".");
    }
    parameters_[table->parameters - parameters_.data() + i] = parameter.data();
  }
  table->segments = segments_.data() + spec.first_segment;
  table->num_segments = spec.num_segments;
  for (int i = 0; i < spec.num_segments; ++i) {
    TF_RETURN_IF_ERROR(BindSegment(spec, spec.first_segment + i, table));
  }
  if (SortedIds::Fits(*table)) return absl::OkStatus();
  return InvalidIn(attrs_.op, "table '", spec.name, "' has ", table->rows, " rows and ",
                   table->num_ids, " ids, more than can be told apart by 64 bits.");
}

absl::Status Call::BindSegment(const TableSpec& owner, size_t at, Table* table) {
  const SegmentSpec& spec = attrs_.segments[at];
  const std::string reader = absl::StrCat("segment ", at, " (table '", owner.name, "')");
  if (State(owner, 0).dims() == 0) {
    return InvalidIn(attrs_.op, reader, " has ids, but the variable '", VariableName(owner, 0),
                     "' is a scalar and has no rows.");
  }
  Segment& segment = segments_[at];
  TF_RETURN_IF_ERROR(BindIds(attrs_.op, reader, spec, Ids(spec), &segment));
  segment.table_rows = table->rows;
  segment.first_id = table->num_ids;
  segment.fill = spec.fill;
  if (spec.fill >= table->rows) {
    return InvalidIn(attrs_.op, reader, " fills empty rows with row ", spec.fill,
                     ", but the table has ", table->rows, " rows.");
  }
  GradientRows* gradients = gradients_.data() + at * spec.gradients.size();
  segment.gradients = gradients;
  for (const GradientSpec& gradient : spec.gradients) {
    if (gradient.IsPooled()) {
      ScaledPool& pool = pools_[gradients - gradients_.data()];
      TF_RETURN_IF_ERROR(BindPool(reader, gradient, segment, table->row, &pool));
      gradients->pool = &pool;
    }
    TF_RETURN_IF_ERROR(BindGradient(reader, gradient, segment, table->row, gradients));
    ++gradients;
  }
  if (segment.fill >= 0) segment.num_fills = segment.gradients[0].pool->num_rows;
  table->num_ids += segment.NumNumbers();
  return absl::OkStatus();
}

absl::Status Call::BindPool(const std::string& reader, const GradientSpec& spec,
                            const Segment& segment, int64_t row, ScaledPool* pool) {
  const int64_t gradient_row = spec.span == 0 ? row : spec.pitch;
  const int64_t elements = Gradient(spec.gradient).NumElements();
  pool->num_rows = gradient_row == 0 ? segment.num_ids : elements / gradient_row;
  TF_RETURN_IF_ERROR(BindRowsOfPool(reader, spec, segment, pool));
  if (spec.weights >= 0) {
    const Tensor& weights = context_->input(attrs_.WeightsInput(spec.weights));
    const bool none = segment.num_ids == 0 && weights.NumElements() == 1;
    if (!none && weights.NumElements() != segment.num_ids) {
      return InvalidIn(attrs_.op, "weights ", spec.weights, " of ", reader, " must have ",
                       segment.num_ids, " elements, one for each id, but their shape is ",
                       weights.shape().DebugString(), ".");
    }
    if (weights.dtype() == tensorflow::DT_BOOL) {
      pool->mask = static_cast<const bool*>(weights.data());
    } else {
      pool->weights = weights.data();
      pool->weights_are_double = weights.dtype() == tensorflow::DT_DOUBLE;
    }
  }
  if (segment.fill >= 0 || pool->mask != nullptr) {
    zeros_.emplace_back(row * tensorflow::DataTypeSize(attrs_.dtype));
    pool->zeros = zeros_.back().data();
  }
  return absl::OkStatus();
}

// Sets which row of the gradient each id belongs to.
absl::Status Call::BindRowsOfPool(const std::string& reader, const GradientSpec& spec,
                                  const Segment& segment, ScaledPool* pool) const {
  if (spec.pool == kEvenPool) {
    pool->length = pool->num_rows == 0 ? 1 : segment.num_ids / pool->num_rows;
    if (pool->length * pool->num_rows == segment.num_ids) return absl::OkStatus();
    return InvalidIn(attrs_.op, "gradient ", spec.gradient, " of ", reader, " has ",
                     pool->num_rows, " rows, which ", segment.num_ids,
                     " ids cannot share evenly.");
  }
  const Tensor& rows = context_->input(attrs_.PoolInput(spec.pool));
  const bool fits = rows.dims() > 0 && rows.dim_size(0) == segment.num_ids;
  if (!fits || rows.NumElements() < segment.num_ids) {
    return InvalidIn(attrs_.op, "pool ", spec.pool, " of ", reader, " must have ", segment.num_ids,
                     " entries, one for each id, but it has shape ", rows.shape().DebugString(),
                     ".");
  }
  pool->rows = rows.data();
  pool->rows_are_int64 = rows.dtype() == tensorflow::DT_INT64;
  pool->pitch = segment.num_ids == 0 ? 1 : rows.NumElements() / segment.num_ids;
  return absl::OkStatus();
}

bool Call::FindScales(size_t table) {
  bool good = true;
  const TableSpec& spec = attrs_.tables[table];
  for (int s = spec.first_segment; s < spec.first_segment + spec.num_segments; ++s) {
    const std::vector<GradientSpec>& gradients = attrs_.segments[s].gradients;
    for (size_t g = 0; g < gradients.size(); ++g) {
      if (!gradients[g].IsPooled()) continue;
      good &= pools_[s * gradients.size() + g].FindScales(gradients[g].combiner, segments_[s]);
    }
  }
  return good;
}

absl::Status Call::BadPoolError() {
  const int each = attrs_.program.counts.row_gradients;
  for (size_t i = 0; i < pools_.size(); ++i) {
    const SegmentSpec& segment = attrs_.segments[i / each];
    const int pool = segment.gradients[i % each].pool;
    for (int64_t j = 0; pool >= 0 && j < segments_[i / each].num_ids; ++j) {
      const int64_t row = pools_[i].RowOf(j);
      const bool is_left_out = ScaledPool::IsLeftOut(segments_[i / each], j);
      if (is_left_out || (row >= 0 && row < pools_[i].num_rows)) continue;
      return InvalidIn(attrs_.op, "entry ", j, " of pool ", pool, " is row ", row,
                       " of a gradient that has ", pools_[i].num_rows, " rows (table '",
                       attrs_.tables[segment.table].name, "').");
    }
  }
  return absl::InternalError(absl::StrCat(attrs_.op, ": a pool changed while it was being read."));
}

absl::Status Call::BindGradient(const std::string& reader, const GradientSpec& spec,
                                const Segment& segment, int64_t row, GradientRows* rows) const {
  const Tensor& gradient = Gradient(spec.gradient);
  const std::string what = absl::StrCat("gradient ", spec.gradient, " of ", reader);
  rows->data = gradient.data();
  if (spec.span == 0) {
    // A row without elements has as many of them as there are ids.
    const int64_t wanted = rows->pool != nullptr ? rows->pool->num_rows : segment.num_ids;
    const bool fits = row == 0 ? gradient.NumElements() == 0
                               : gradient.NumElements() % row == 0 &&
                                     gradient.NumElements() / row == wanted;
    if (!fits && rows->pool != nullptr) {
      return InvalidIn(attrs_.op, what, " is of pooled ids, so it must be made of rows of ", row,
                       " elements, but it has shape ", gradient.shape().DebugString(), ".");
    }
    if (!fits) {
      return InvalidIn(attrs_.op, what, " must have ", segment.num_ids, " rows of ", row,
                       " elements, one for each id, but it has shape ",
                       gradient.shape().DebugString(), ".");
    }
    rows->pitch = row;
    return absl::OkStatus();
  }
  if (gradient.NumElements() % spec.pitch != 0) {
    return InvalidIn(attrs_.op, what, " is read as a matrix of ", spec.pitch,
                     " columns, but it has shape ", gradient.shape().DebugString(), ".");
  }
  if (row == 0 || spec.span % row != 0) {
    return InvalidIn(attrs_.op, what, " is read ", spec.span,
                     " columns wide, which is no multiple of the table's row of ", row,
                     " elements.");
  }
  rows->pitch = spec.pitch;
  rows->first = spec.first;
  rows->ids_per_row = spec.span / row;
  if (rows->pool != nullptr) {
    if (rows->ids_per_row == 1) return absl::OkStatus();
    return InvalidIn(attrs_.op, what, " is of pooled ids, so it must be read as wide as a row of ",
                     "the table (", row, " elements), not ", spec.span, ".");
  }
  const int64_t found = gradient.NumElements() / spec.pitch * rows->ids_per_row;
  if (found != segment.num_ids) {
    return InvalidIn(attrs_.op, what, " has rows for ", found,
                     " ids in these columns, but there are ", segment.num_ids, " ids.");
  }
  return absl::OkStatus();
}

absl::Status Call::OpenStates() {
  const int num_states = attrs_.program.counts.states;
  for (size_t i = 0; i < tables_.size(); ++i) {
    const bool idle = attrs_.extent == Extent::kTouchedRows && tables_[i].num_ids == 0;
    for (int state = 0; state < num_states; ++state) {
      tensorflow::Var* var = vars_[attrs_.tables[i].states[state]].get();
      if (!idle && attrs_.program.IsWritten(state)) TF_RETURN_IF_ERROR(MakeOwn(context_, var));
      states_[i * num_states + state] = var->tensor()->data();
    }
  }
  return absl::OkStatus();
}

absl::Status Call::BadIdError() const {
  for (size_t i = 0; i < segments_.size(); ++i) {
    const bool drop_negative = attrs_.drop_negative || segments_[i].fill >= 0;
    const int64_t at = FirstBadId(segments_[i], drop_negative);
    if (at < 0) continue;
    const SegmentSpec& spec = attrs_.segments[i];
    return absl::InvalidArgumentError(
        absl::StrCat(BadId(spec, Ids(spec), segments_[i], at), " (segment ", i, ", table '",
                     attrs_.tables[spec.table].name, "')"));
  }
  return absl::InternalError(
      absl::StrCat(attrs_.op, ": an id changed while it was being read."));
}

}  // namespace packed_update
}  // namespace picasso
