// GPU side of the packed update: all tables at once, in steps on one stream.
//
//   1. Prepare: scalars of each table; a key for each id, the number of its row
//      among the rows of all tables.
//   2. CUB sorts the keys, with the ids' positions; equal keys stay in order.
//   3. MarkHead, CUB's sum, ListRun: the runs of equal keys, one for each row.
//   4. UpdateRuns or UpdateTile: threads update packs, 16 bytes' worth of adjacent
//      elements of a row, by interpreting the program with its values in shared
//      memory. They go through the ids of the row in order, as the CPU does, so
//      that both give the same bits, except that roots and reciprocals, max and min
//      have no packet form here: all round as IEEE 754 says, but for pow, which is
//      CUDA's and may differ in its last bits.
//
// Nothing waits for the GPU, so an id that is out of range cannot be reported: it is
// skipped, as by TensorFlow's own scatter on GPU. Everything but the launches also
// compiles for the host, where it is tested.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_H_
#define PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_H_

#include "picasso_tf/cc/kernels/packed_update_gpu_program.h"
#include "picasso_tf/cc/kernels/packed_update_gpu_work.h"
#include "picasso_tf/cc/kernels/update_arithmetic.h"

namespace picasso {
namespace packed_update {

// ---- Ids ----

// The last of `count` ascending numbers that is not greater than `x`: its place.
PICASSO_HOST_DEVICE inline int64_t PlaceOf(const int64_t* numbers, int64_t count, int64_t x) {
  int64_t low = 0;
  for (int64_t high = count; high - low > 1;) {
    const int64_t middle = (low + high) / 2;
    (numbers[middle] <= x ? low : high) = middle;
  }
  return low;
}

template <typename T>
PICASSO_HOST_DEVICE inline void EvaluateScalars(const Work& work, int64_t table) {
  Compute<T>* scalars = static_cast<Compute<T>*>(work.scalars) + table * work.num_scalars;
  scalars[kGpuZero] = Compute<T>(0);
  for (int i = 0; i < work.counts.parameters; ++i) {
    scalars[1 + i] = Value<T>::Load(*static_cast<const T*>(work.tables[table].parameters[i]));
  }
  for (int i = 0; i < work.num_scalar_steps; ++i) {
    const GpuStep& step = work.scalar_steps[i];
    const Compute<T> a = scalars[~step.operands[0]];
    const Compute<T> b = step.num_operands > 1 ? scalars[~step.operands[1]] : a;
    const Compute<T> c = step.num_operands > 2 ? scalars[~step.operands[2]] : a;
    scalars[step.out] = Evaluate<T>(step.opcode, a, b, c);
  }
}

PICASSO_HOST_DEVICE inline void MakeKey(const Work& work, int64_t position) {
  const int64_t at = PlaceOf(work.first_positions, work.num_segments, position);
  const Segment& segment = work.segments[at];
  const int64_t id = IdAt(segment, position - work.first_positions[at]);
  const int64_t first_row = work.first_rows[work.segment_tables[at]];
  work.keys[position] = InRange(segment, id) ? first_row + id : work.num_rows;
  work.positions[position] = static_cast<uint32_t>(position);
}

// Thread `i` of max(num_tables, num_ids).
template <typename T>
PICASSO_HOST_DEVICE inline void Prepare(const Work& work, int64_t i) {
  if (i < work.num_tables) EvaluateScalars<T>(work, i);
  if (i < work.num_ids) MakeKey(work, i);
}

PICASSO_HOST_DEVICE inline bool NamesRow(const Work& work, int64_t at) {
  return work.sorted_keys[at] < static_cast<uint64_t>(work.num_rows);
}

PICASSO_HOST_DEVICE inline bool IsHead(const Work& work, int64_t at) {
  return NamesRow(work, at) && (at == 0 || work.sorted_keys[at - 1] != work.sorted_keys[at]);
}

PICASSO_HOST_DEVICE inline void MarkHead(const Work& work, int64_t at) {
  work.heads[at] = IsHead(work, at);
}

template <typename T>
PICASSO_HOST_DEVICE inline void ListRun(const Work& work, int64_t at) {
  if (!NamesRow(work, at)) return;
  const int64_t key = work.sorted_keys[at];
  const int64_t position = work.sorted_positions[at];
  const int64_t segment_number = PlaceOf(work.first_positions, work.num_segments, position);
  const Segment& segment = work.segments[segment_number];
  const int32_t table = work.segment_tables[segment_number];
  const int64_t id = segment.first_id + position - work.first_positions[segment_number];
  for (int i = 0; i < work.counts.row_gradients; ++i) {
    work.gradient_rows[i * work.num_ids + at] = GradientRow<T>(work.tables[table], i, id);
  }
  Run& run = work.runs[work.run_numbers[at] - 1];
  if (IsHead(work, at)) {
    run.row = key - work.first_rows[table];
    run.table = table;
    run.begin = static_cast<uint32_t>(at);
    if (work.all_rows) work.run_of_row[key] = work.run_numbers[at];
  }
  const int64_t next = at + 1;
  if (next == work.num_ids || work.sorted_keys[next] != work.sorted_keys[at]) {
    run.end = static_cast<uint32_t>(next);
  }
}

// ---- Rows ----

// Rows that ids name: thread `i` of num_ids * lanes_per_row.
template <typename T>
PICASSO_HOST_DEVICE inline void UpdateRuns(const Work& work, int64_t i,
                                           PackOf<T>* values, int64_t stride) {
  const int64_t number = i / work.lanes_per_row;
  if (number >= work.run_numbers[work.num_ids - 1]) return;
  const Run run = work.runs[number];
  const int64_t packs = GpuPacks<T>(work.tables[run.table]);
  for (int64_t p = i % work.lanes_per_row; p < packs; p += work.lanes_per_row) {
    UpdatePack<T>(work, run.table, run.row, p * kGpuLanes<T>, run.begin, run.end, values, stride);
  }
}

// All rows: the part of tile `tile` that falls to `thread` of `threads`.
template <typename T>
PICASSO_HOST_DEVICE inline void UpdateTile(const Work& work, int64_t tile, int thread, int threads,
                                           PackOf<T>* values, int64_t stride) {
  const int64_t table = PlaceOf(work.first_tiles, work.num_tables, tile);
  const int64_t row_packs = GpuPacks<T>(work.tables[table]);
  const int64_t first = (tile - work.first_tiles[table]) * kGpuTilePacks;
  const int64_t left = work.tables[table].rows * row_packs - first;
  const int64_t packs = left < kGpuTilePacks ? left : kGpuTilePacks;
  // A long division once; those of each pack fit 32 bits.
  const int64_t first_row = first / row_packs;
  const uint32_t first_pack = first % row_packs;
  for (int64_t i = thread; i < packs; i += threads) {
    const uint32_t at = first_pack + static_cast<uint32_t>(i);
    const int64_t row = first_row + at / static_cast<uint32_t>(row_packs);
    const int64_t column = at % static_cast<uint32_t>(row_packs) * kGpuLanes<T>;
    Run run = {};
    const uint32_t number =
        work.num_ids == 0 ? 0 : work.run_of_row[work.first_rows[table] + row];
    if (number > 0) run = work.runs[number - 1];
    UpdatePack<T>(work, table, row, column, run.begin, run.end, values, stride);
  }
}

// ---- The launches (packed_update_gpu.cu.cc) ----

// Device memory that sorting and counting ids needs: WorkLayout's `sort_bytes`.
size_t GpuSortBytes(int64_t num_ids, int key_bits);

// Copies the plan to the device and updates all tables, both on `stream`, a
// cudaStream_t. Returns nullptr, or what CUDA has to say. `plan` is pageable memory
// and free for reuse on return: CUDA has taken its copy by then. For Half,
// Bfloat16, float and double.
template <typename T>
const char* LaunchPackedUpdate(const Work& work, const std::vector<int64_t>& plan, int key_bits,
                               void* stream);

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_H_
