// The device memory of one packed update on a GPU: the plan, which is written on the
// host and travels as one buffer, and behind it the memory of the steps.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_WORK_H_
#define PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_WORK_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "picasso_tf/cc/kernels/packed_update.h"
#include "picasso_tf/cc/kernels/packed_update_gpu_code.h"
#include "picasso_tf/cc/kernels/update_values.h"

namespace picasso {
namespace packed_update {

constexpr int64_t kGpuPackBytes = 16;      // of a pack: what a thread works on at a time
constexpr int64_t kGpuTilePacks = 1 << 10;  // of a block that updates all rows
constexpr int64_t kGpuMaxThreads = 256;
constexpr int64_t kGpuWarp = 32;
constexpr int64_t kGpuSlotBytes = 48 << 10;  // of shared memory that every GPU has for a block

// Elements of a pack, in the type in which they are computed.
template <typename T>
constexpr int64_t kGpuLanes = kGpuPackBytes / sizeof(Compute<T>);

template <typename T>
PICASSO_HOST_DEVICE inline int64_t GpuPacks(const Table& table) {
  return (table.row + kGpuLanes<T> - 1) / kGpuLanes<T>;
}

// Threads of a block, each with all slots of the program; 0: there are too many.
inline int64_t GpuThreads(int num_slots) {
  int64_t threads = kGpuMaxThreads;
  while (threads >= kGpuWarp && threads * num_slots * kGpuPackBytes > kGpuSlotBytes) threads /= 2;
  return threads >= kGpuWarp ? threads : 0;
}
constexpr int kGpuMaxSlots = kGpuSlotBytes / kGpuPackBytes / kGpuWarp;

// Sorted ids [begin, end) name this row.
struct Run {
  int64_t row;
  int32_t table;
  uint32_t begin;
  uint32_t end;
};

// Pointers into device memory, passed to every kernel. Rows of all tables are
// numbered through, and so are the ids of all segments: their positions.
struct Work {
  // The plan.
  const Table* tables;
  const Segment* segments;
  const int32_t* segment_tables;
  const int64_t* first_positions;  // of segments, and the number of ids
  const int64_t* first_rows;       // of tables, and the number of rows
  const int64_t* first_tiles;      // of tables, and the number of tiles
  const GpuStep* scalar_steps;
  const GpuStep* steps;
  const GpuPhase* phases;
  const GpuMove* loads;
  const GpuMove* gradients;
  const GpuMove* stores;
  Counts counts;
  int32_t num_scalars, num_scalar_steps, num_phases, num_loads, num_stores, num_slots;
  int64_t num_tables, num_segments;
  int64_t num_ids, num_rows, num_tiles;
  int64_t lanes_per_row;  // threads that share a row named by ids, a power of two
  bool all_rows;

  // The memory of the steps, `num_ids` entries each where nothing else is said.
  void* scalars;  // num_tables * num_scalars
  uint64_t* keys;
  uint64_t* sorted_keys;
  uint32_t* positions;
  uint32_t* sorted_positions;
  uint32_t* heads;        // 1 where a row begins
  uint32_t* run_numbers;  // and how many have begun
  Run* runs;
  const void** gradient_rows;  // num_ids for each row gradient, in sorted order
  uint32_t* run_of_row;        // num_rows, if all are updated: its run's number + 1, or 0
  void* sort_memory;
  size_t sort_bytes;
};

// Lays out the work of one call.
template <typename T>
class WorkLayout {
 public:
  // `tables` list their segments, gradients and so on in host memory; the tensors
  // themselves are in device memory. `code` and `tables` outlive this.
  WorkLayout(const GpuCode& code, const std::vector<Table>& tables, bool all_rows)
      : code_(code), tables_(tables) {
    Work& work = work_;
    work.all_rows = all_rows;
    work.counts = code.counts();
    work.num_tables = tables.size();
    work.num_scalars = code.num_scalars();
    work.num_scalar_steps = code.scalar_steps().size();
    work.num_phases = code.phases().size();
    work.num_loads = code.loads().size();
    work.num_stores = code.stores().size();
    work.num_slots = code.num_slots();
    int64_t packs = 0;
    for (const Table& table : tables) {
      work.num_segments += table.num_segments;
      work.num_ids += table.num_ids;
      work.num_rows += table.rows;
      work.num_tiles += Tiles(table);
      packs += GpuPacks<T>(table) * table.num_ids;
    }
    work.lanes_per_row = 1;
    while (work.lanes_per_row < kGpuWarp && work.lanes_per_row * work.num_ids < packs) {
      work.lanes_per_row *= 2;
    }
  }

  // Why a GPU cannot do it, as the end of a sentence; empty: it can.
  std::string Problem() const {
    if (work_.num_ids > INT32_MAX) return "there are 2^31 ids or more, too many for a GPU.";
    for (const Table& table : tables_) {
      if (table.row > INT32_MAX / 2) return "a row has 2^30 elements or more, too long for a GPU.";
    }
    return "";
  }

  bool HasNothingToDo() const {
    return work_.num_tiles == 0 || (!work_.all_rows && work_.num_ids == 0);
  }

  // Bits of the keys that are sorted; a key of `num_rows` is that of an id that
  // names no row.
  int KeyBits() const { return 64 - __builtin_clzll(work_.num_rows | 1); }
  int64_t num_ids() const { return work_.num_ids; }

  // Bytes of device memory, where the sort needs `sort_bytes`.
  size_t Bytes(size_t sort_bytes) {
    Place(0, sort_bytes);
    return end_;
  }

  // The work in device memory at `base`, and the plan to be copied there.
  Work Write(void* base, size_t sort_bytes, std::vector<int64_t>* plan) {
    Place(reinterpret_cast<uintptr_t>(base), sort_bytes);
    plan->assign((plan_end_ - base_ + sizeof(int64_t) - 1) / sizeof(int64_t), 0);
    plan_ = reinterpret_cast<char*>(plan->data());
    WriteCode();
    WriteTables();
    return work_;
  }

 private:
  static constexpr size_t kAlignment = 256;

  int64_t Tiles(const Table& table) const {
    return (table.rows * GpuPacks<T>(table) + kGpuTilePacks - 1) / kGpuTilePacks;
  }

  template <typename E>
  void Take(E*& to, int64_t count, size_t alignment = kAlignment) {
    end_ = base_ + (end_ - base_ + alignment - 1) / alignment * alignment;
    to = reinterpret_cast<E*>(end_);
    end_ += count * sizeof(E);
  }

  template <typename E>
  void TakePlan(E*& to, int64_t count) {
    Take(to, count, sizeof(int64_t));
  }

  void Place(uintptr_t base, size_t sort_bytes) {
    base_ = end_ = base;
    const Counts& counts = work_.counts;
    TakePlan(work_.tables, work_.num_tables);
    TakePlan(work_.segments, work_.num_segments);
    TakePlan(work_.segment_tables, work_.num_segments);
    TakePlan(work_.first_positions, work_.num_segments + 1);
    TakePlan(work_.first_rows, work_.num_tables + 1);
    TakePlan(work_.first_tiles, work_.num_tables + 1);
    TakePlan(work_.scalar_steps, code_.scalar_steps().size());
    TakePlan(work_.steps, code_.steps().size());
    TakePlan(work_.phases, code_.phases().size());
    TakePlan(work_.loads, code_.loads().size());
    TakePlan(work_.gradients, code_.gradients().size());
    TakePlan(work_.stores, code_.stores().size());
    TakePlan(states_, work_.num_tables * counts.states);
    TakePlan(table_gradients_, work_.num_tables * counts.table_gradients);
    TakePlan(parameters_, work_.num_tables * counts.parameters);
    TakePlan(rows_, work_.num_segments * counts.row_gradients);
    plan_end_ = end_;
    Compute<T>* scalars = nullptr;
    Take(scalars, work_.num_tables * work_.num_scalars);
    work_.scalars = scalars;
    Take(work_.keys, work_.num_ids);
    Take(work_.sorted_keys, work_.num_ids);
    Take(work_.positions, work_.num_ids);
    Take(work_.sorted_positions, work_.num_ids);
    Take(work_.heads, work_.num_ids);
    Take(work_.run_numbers, work_.num_ids);
    Take(work_.runs, work_.num_ids);
    Take(work_.gradient_rows, work_.num_ids * counts.row_gradients);
    Take(work_.run_of_row, work_.all_rows && work_.num_ids > 0 ? work_.num_rows : 0);
    char* sort_memory = nullptr;
    Take(sort_memory, sort_bytes);
    work_.sort_memory = sort_memory;
    work_.sort_bytes = sort_bytes;
  }

  // The host's copy of what will be at `device`.
  template <typename E>
  E* Host(const E* device) const {
    return reinterpret_cast<E*>(plan_ + (reinterpret_cast<uintptr_t>(device) - base_));
  }

  template <typename E>
  static void Copy(const E* from, int64_t count, E* to) {
    if (count > 0) std::memcpy(static_cast<void*>(to), from, count * sizeof(E));
  }
  template <typename E>
  void Copy(const std::vector<E>& from, const E* to) const {
    Copy(from.data(), from.size(), Host(to));
  }

  void WriteCode() const {
    Copy(code_.scalar_steps(), work_.scalar_steps);
    Copy(code_.steps(), work_.steps);
    Copy(code_.phases(), work_.phases);
    Copy(code_.loads(), work_.loads);
    Copy(code_.gradients(), work_.gradients);
    Copy(code_.stores(), work_.stores);
  }

  void WriteTables() const {
    const Counts& counts = work_.counts;
    int64_t position = 0, row = 0, tile = 0, at = 0;
    for (int64_t i = 0; i < work_.num_tables; ++i) {
      const Table& from = tables_[i];
      Table& table = Host(work_.tables)[i];
      table = from;
      table.states = states_ + i * counts.states;
      table.table_gradients = table_gradients_ + i * counts.table_gradients;
      table.parameters = parameters_ + i * counts.parameters;
      table.segments = work_.segments + at;
      Copy(from.states, counts.states, Host(table.states));
      Copy(from.table_gradients, counts.table_gradients, Host(table.table_gradients));
      Copy(from.parameters, counts.parameters, Host(table.parameters));
      Host(work_.first_rows)[i] = row;
      Host(work_.first_tiles)[i] = tile;
      row += from.rows;
      tile += Tiles(from);
      for (int64_t s = 0; s < from.num_segments; ++s, ++at) {
        Segment& segment = Host(work_.segments)[at];
        segment = from.segments[s];
        segment.gradients = rows_ + at * counts.row_gradients;
        Copy(from.segments[s].gradients, counts.row_gradients, Host(segment.gradients));
        Host(work_.segment_tables)[at] = static_cast<int32_t>(i);
        Host(work_.first_positions)[at] = position;
        position += segment.num_ids;
      }
    }
    Host(work_.first_positions)[at] = position;
    Host(work_.first_rows)[work_.num_tables] = row;
    Host(work_.first_tiles)[work_.num_tables] = tile;
  }

  const GpuCode& code_;
  const std::vector<Table>& tables_;
  Work work_ = {};
  void** states_ = nullptr;
  const void** table_gradients_ = nullptr;
  const void** parameters_ = nullptr;
  GradientRows* rows_ = nullptr;
  uintptr_t base_ = 0, end_ = 0, plan_end_ = 0;
  char* plan_ = nullptr;
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_WORK_H_
