// How a GPU thread runs the program on a pack: 16 bytes' worth of adjacent elements
// of one row. The cost of reading an instruction is shared by them.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_PROGRAM_H_
#define PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_PROGRAM_H_

#include <cstring>
#include <type_traits>

#include "picasso_tf/cc/kernels/packed_update_gpu_work.h"
#include "picasso_tf/cc/kernels/update_arithmetic.h"

// On a GPU all is one function, whose slots are known to be in shared memory.
#if defined(__CUDACC__)
#define PICASSO_GPU_INLINE __host__ __device__ __forceinline__
#else
#define PICASSO_GPU_INLINE inline
#endif

#if defined(__CUDA_ARCH__)
#define PICASSO_GPU_UNROLL _Pragma("unroll")
#define PICASSO_GPU_LOOP _Pragma("unroll 1")
#else
#define PICASSO_GPU_UNROLL
#define PICASSO_GPU_LOOP
#endif

namespace picasso {
namespace packed_update {

constexpr int kGpuAhead = 8;  // gradient rows that a thread has on their way at once

// ---- Packs ----

template <typename C>
struct alignas(kGpuPackBytes) Pack {
  C lanes[kGpuPackBytes / sizeof(C)];
};

template <typename T>
using PackOf = Pack<Compute<T>>;

// A pack's elements in memory, moved at once.
template <typename T>
struct __attribute__((may_alias, aligned(kGpuLanes<T> * sizeof(T)))) Stride {
  T lanes[kGpuLanes<T>];
};

template <typename T>
PICASSO_GPU_INLINE void StoreStride(const Stride<T>& all, T* to) {
#if defined(__CUDA_ARCH__)
  // Written as an assignment it would become a store for each lane.
  using Words = std::conditional_t<sizeof(all) == sizeof(uint4), uint4, uint2>;
  Words words;
  memcpy(&words, &all, sizeof(all));
  __stwb(reinterpret_cast<Words*>(to), words);
#else
  *reinterpret_cast<Stride<T>*>(to) = all;
#endif
}

// Loads the first `count` lanes; the others are 0.
template <typename T>
PICASSO_GPU_INLINE PackOf<T> LoadPack(const T* from, int64_t count) {
  PackOf<T> pack;
  if (count == kGpuLanes<T> && reinterpret_cast<uintptr_t>(from) % sizeof(Stride<T>) == 0) {
    const Stride<T> all = *reinterpret_cast<const Stride<T>*>(from);
    PICASSO_GPU_UNROLL
    for (int i = 0; i < kGpuLanes<T>; ++i) pack.lanes[i] = Value<T>::Load(all.lanes[i]);
    return pack;
  }
  PICASSO_GPU_UNROLL
  for (int i = 0; i < kGpuLanes<T>; ++i) {
    pack.lanes[i] = i < count ? Value<T>::Load(from[i]) : Compute<T>(0);
  }
  return pack;
}

template <typename T>
PICASSO_GPU_INLINE void StorePack(const PackOf<T>& pack, int64_t count, T* to) {
  if (count == kGpuLanes<T> && reinterpret_cast<uintptr_t>(to) % sizeof(Stride<T>) == 0) {
    Stride<T> all;
    PICASSO_GPU_UNROLL
    for (int i = 0; i < kGpuLanes<T>; ++i) all.lanes[i] = Value<T>::Store(pack.lanes[i]);
    StoreStride(all, to);
    return;
  }
  PICASSO_GPU_UNROLL
  for (int i = 0; i < kGpuLanes<T>; ++i) {
    if (i < count) to[i] = Value<T>::Store(pack.lanes[i]);
  }
}

template <Opcode kOpcode, typename T>
PICASSO_GPU_INLINE void EvaluateLanes(const PackOf<T>& a, const PackOf<T>& b, const PackOf<T>& c,
                                      PackOf<T>* out) {
  PICASSO_GPU_UNROLL
  for (int i = 0; i < kGpuLanes<T>; ++i) {
    out->lanes[i] = Evaluate<kOpcode, T>(a.lanes[i], b.lanes[i], c.lanes[i]);
  }
}

template <typename T>
PICASSO_GPU_INLINE PackOf<T> EvaluatePack(Opcode opcode, bool touched, const PackOf<T>& a,
                                          const PackOf<T>& b, const PackOf<T>& c) {
  PackOf<T> out = a;
  switch (opcode) {
#define PICASSO_CASE(opcode, name, operands)         \
  case Opcode::opcode:                               \
    EvaluateLanes<Opcode::opcode, T>(a, b, c, &out); \
    break;
    PICASSO_UPDATE_ELEMENTWISE(PICASSO_CASE)
#undef PICASSO_CASE
    case Opcode::kTouchedAdd:
      if (touched) EvaluateLanes<Opcode::kAdd, T>(a, b, c, &out);
      break;
    case Opcode::kTouchedSub:
      if (touched) EvaluateLanes<Opcode::kSub, T>(a, b, c, &out);
      break;
    default:
      if (touched) out = b;
  }
  return out;
}

// ---- The program ----

// One thread's values: slot number i is values[i * stride].
template <typename T>
struct Slots {
  PackOf<T>* values;
  int64_t stride;
  const Compute<T>* scalars;

  PICASSO_GPU_INLINE PackOf<T>& operator[](int32_t slot) const {
    return values[slot * stride];
  }

  PICASSO_GPU_INLINE PackOf<T> Get(int32_t operand) const {
    if (operand >= 0) return values[operand * stride];
    PackOf<T> pack;
    PICASSO_GPU_UNROLL
    for (int i = 0; i < kGpuLanes<T>; ++i) pack.lanes[i] = scalars[~operand];
    return pack;
  }
};

template <typename T>
PICASSO_GPU_INLINE void RunSteps(const Work& work, int begin, int end, bool touched,
                                 const Slots<T>& slots) {
  PICASSO_GPU_LOOP
  for (int i = begin; i < end; ++i) {
    const GpuStep step = work.steps[i];
    const auto a = slots.Get(step.operands[0]);
    const auto b = step.num_operands > 1 ? slots.Get(step.operands[1]) : a;
    const auto c = step.num_operands > 2 ? slots.Get(step.operands[2]) : a;
    slots[step.out] = EvaluatePack<T>(step.opcode, touched, a, b, c);
  }
}

// Runs the id steps of a phase for sorted ids [begin, end), in order. The rows of
// its first gradient are fetched ahead.
template <typename T>
PICASSO_GPU_INLINE void RunIds(const Work& work, const GpuPhase& phase, int64_t begin,
                               int64_t end, int64_t column, int64_t lanes, const Slots<T>& slots) {
  const auto load = [&](int gradient, int64_t at) {
    const void* row = work.gradient_rows[work.gradients[gradient].source * work.num_ids + at];
    return LoadPack(static_cast<const T*>(row) + column, lanes);
  };
  const int first = phase.gradient_begin;
  const bool has_gradient = first < phase.gradient_end;
  PICASSO_GPU_LOOP
  for (int64_t base = begin; base < end; base += kGpuAhead) {
    PackOf<T> ahead[kGpuAhead];
    PICASSO_GPU_UNROLL
    for (int i = 0; i < kGpuAhead; ++i) {
      if (has_gradient && base + i < end) ahead[i] = load(first, base + i);
    }
    PICASSO_GPU_LOOP
    for (int i = 0; i < kGpuAhead && base + i < end; ++i) {
      if (has_gradient) slots[work.gradients[first].value] = ahead[i];
      for (int g = first + 1; g < phase.gradient_end; ++g) {
        slots[work.gradients[g].value] = load(g, base + i);
      }
      RunSteps(work, phase.row_end, phase.id_end, true, slots);
    }
  }
}

// Updates one pack: elements [column, column + lanes) of a row, whose ids are sorted
// ids [begin, end). `values` and `stride` as in Slots.
template <typename T>
PICASSO_GPU_INLINE void UpdatePack(const Work& work, int64_t table_number, int64_t row,
                                   int64_t column, int64_t begin, int64_t end, PackOf<T>* values,
                                   int64_t stride) {
  const Table& table = work.tables[table_number];
  const auto* scalars = static_cast<const Compute<T>*>(work.scalars);
  const Slots<T> slots = {values, stride, scalars + table_number * work.num_scalars};
  const int64_t left = table.row - column;
  const int64_t lanes = left < kGpuLanes<T> ? left : kGpuLanes<T>;
  const int64_t place = row * table.row + column;
  const int states = work.counts.states;
  for (int i = 0; i < work.num_loads; ++i) {
    const GpuMove move = work.loads[i];
    const void* data = move.source < states ? table.states[move.source]
                                            : table.table_gradients[move.source - states];
    slots[move.value] = LoadPack(static_cast<const T*>(data) + place, lanes);
  }
  for (int i = 0; i < work.num_phases; ++i) {
    const GpuPhase phase = work.phases[i];
    RunSteps(work, phase.row_begin, phase.row_end, begin < end, slots);
    if (phase.row_end < phase.id_end) RunIds(work, phase, begin, end, column, lanes, slots);
  }
  PICASSO_GPU_LOOP
  for (int i = 0; i < work.num_stores; ++i) {
    const GpuMove move = work.stores[i];
    StorePack(slots.Get(move.value), lanes, static_cast<T*>(table.states[move.source]) + place);
  }
}

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_PROGRAM_H_
