// The inner loops of the CPU kernel: each runs over a whole tile, so that they are
// worth vectorising. They are compiled for each instruction set that pays, and the
// best one of this machine is chosen when the process starts: the library is built
// for any x86-64.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_LOOPS_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_LOOPS_H_

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "picasso_tf/cc/kernels/update_arithmetic.h"
#include "picasso_tf/cc/kernels/update_roots.h"

#if defined(__clang__)
#define PICASSO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PICASSO_INDEPENDENT _Pragma("GCC ivdep")
#endif

#define PICASSO_INLINE_LAMBDA __attribute__((always_inline))

namespace picasso {
namespace packed_update {

// An operand: one number for each element, or one for all.
template <typename C>
struct Operand {
  const C* data = nullptr;
  bool scalar = true;
};

// ---- Loops, to be inlined into a function compiled for some instruction set ----

template <Opcode kOpcode, typename T, bool kScalarA, bool kScalarB, bool kScalarC>
PICASSO_INLINE void MapAs(Compute<T>* out, const Compute<T>* a, const Compute<T>* b,
                          const Compute<T>* c, int64_t n) {
  PICASSO_INDEPENDENT
  for (int64_t i = 0; i < n; ++i) {
    out[i] = Evaluate<kOpcode, T>(a[kScalarA ? 0 : i], b[kScalarB ? 0 : i], c[kScalarC ? 0 : i]);
  }
}

template <Opcode kOpcode, typename T>
PICASSO_INLINE void Map(int operands, Compute<T>* out, const Operand<Compute<T>>* in, int64_t n) {
  const auto *a = in[0].data, *b = in[operands > 1 ? 1 : 0].data, *c = in[operands - 1].data;
  if (operands == 1) return MapAs<kOpcode, T, false, true, true>(out, a, b, c, n);
  if (operands == 2) {
    if (in[0].scalar) return MapAs<kOpcode, T, true, false, true>(out, a, b, c, n);
    if (in[1].scalar) return MapAs<kOpcode, T, false, true, true>(out, a, b, c, n);
    return MapAs<kOpcode, T, false, false, true>(out, a, b, c, n);
  }
  const int64_t step_a = !in[0].scalar, step_b = !in[1].scalar, step_c = !in[2].scalar;
  for (int64_t i = 0; i < n; ++i) {
    out[i] = Evaluate<kOpcode, T>(a[i * step_a], b[i * step_b], c[i * step_c]);
  }
}

// An elementwise instruction on n elements; at least one operand is no scalar.
template <typename T>
PICASSO_INLINE void MapBody(const Instruction& instruction, Compute<T>* out,
                            const Operand<Compute<T>>* in, int64_t n) {
  switch (instruction.opcode) {
#define PICASSO_CASE(opcode, name, operands)                    \
  case Opcode::opcode:                                          \
    Map<Opcode::opcode, T>(operands, out, in, n);               \
    return;
    PICASSO_UPDATE_ELEMENTWISE(PICASSO_CASE)
#undef PICASSO_CASE
    default:
      return;
  }
}

// Calls body(width), where usual widths are constants of the compiler's.
template <typename Body>
PICASSO_INLINE void WithWidth(int64_t width, const Body& body) {
  if (width == 1) return body(std::integral_constant<int64_t, 1>());
  if (width == 8) return body(std::integral_constant<int64_t, 8>());
  if (width == 16) return body(std::integral_constant<int64_t, 16>());
  if (width == 32) return body(std::integral_constant<int64_t, 32>());
  body(width);
}

// Whole rows from anywhere to a buffer, and back.
template <typename T, typename Width>
PICASSO_INLINE void GatherAs(const T* const* rows, int64_t n, Width width,
                             Compute<T>* __restrict out) {
  for (int64_t i = 0; i < n; ++i, out += width) {
    const T* row = rows[i];
    for (int64_t k = 0; k < width; ++k) out[k] = Value<T>::Load(row[k]);
  }
}

template <typename T>
PICASSO_INLINE void GatherBody(const T* const* rows, int64_t n, int64_t width, Compute<T>* out) {
  WithWidth(width, [&](auto constant) PICASSO_INLINE_LAMBDA {
    GatherAs<T>(rows, n, constant, out);
  });
}

template <typename T>
PICASSO_INLINE void ScatterBody(const Compute<T>* in, int64_t n, int64_t width, T* const* rows) {
  for (int64_t i = 0; i < n; ++i, in += width) {
    T* row = rows[i];
    PICASSO_INDEPENDENT
    for (int64_t k = 0; k < width; ++k) row[k] = Value<T>::Store(in[k]);
  }
}

// Rows out[i] *= scales[i].
template <typename T>
PICASSO_INLINE void ScaleBody(const Compute<T>* scales, int64_t n, int64_t width,
                              Compute<T>* out) {
  WithWidth(width, [&](auto constant) PICASSO_INLINE_LAMBDA {
    Compute<T>* row = out;
    for (int64_t i = 0; i < n; ++i, row += constant) {
      const Compute<T> scale = scales[i];
      for (int64_t k = 0; k < constant; ++k) {
        row[k] = Evaluate<Opcode::kMul, T>(row[k], scale, scale);
      }
    }
  });
}

// out[i] = in[places[i]] for rows i.
template <typename C>
PICASSO_INLINE void RepeatBody(const C* in, const int32_t* places, int64_t n, int64_t width,
                               C* out) {
  WithWidth(width, [&](auto constant) PICASSO_INLINE_LAMBDA {
    C* __restrict to = out;
    for (int64_t i = 0; i < n; ++i, to += constant) {
      const C* row = in + places[i] * constant;
      for (int64_t k = 0; k < constant; ++k) to[k] = row[k];
    }
  });
}

// out[places[i]] = step(out[places[i]], in[i]) for rows i in order, where kSelect
// takes in[i].
template <Opcode kStep, typename T, typename Width>
PICASSO_INLINE void AccumulateAs(const Compute<T>* __restrict in, const int32_t* places,
                                 int64_t n, Width width, Compute<T>* __restrict out) {
  for (int64_t i = 0; i < n; ++i, in += width) {
    Compute<T>* row = out + places[i] * width;
    for (int64_t k = 0; k < width; ++k) {
      row[k] = kStep == Opcode::kSelect ? in[k] : Evaluate<kStep, T>(row[k], in[k], in[k]);
    }
  }
}

template <Opcode kOpcode>
using OpcodeIs = std::integral_constant<Opcode, kOpcode>;

template <typename T>
PICASSO_INLINE void AccumulateBody(Opcode step, const Compute<T>* in, const int32_t* places,
                                   int64_t n, int64_t width, Compute<T>* out) {
  WithWidth(width, [&](auto constant) PICASSO_INLINE_LAMBDA {
    if (step == Opcode::kAdd) return AccumulateAs<Opcode::kAdd, T>(in, places, n, constant, out);
    if (step == Opcode::kSub) return AccumulateAs<Opcode::kSub, T>(in, places, n, constant, out);
    AccumulateAs<Opcode::kSelect, T>(in, places, n, constant, out);
  });
}

// out = step(out, row * scale) for `kRows` rows in order; without kScaled there is no scale.
template <int kRows, Opcode kStep, bool kScaled, typename T, typename Width>
PICASSO_INLINE void AccumulateGroup(const T* const* rows, const Compute<T>* scales, Width width,
                                    Compute<T>* __restrict out) {
  for (int64_t k = 0; k < width; ++k) {
    Compute<T> sum = out[k];
    for (int i = 0; i < kRows; ++i) {
      Compute<T> x = Value<T>::Load(rows[i][k]);
      if constexpr (kScaled) x = Evaluate<Opcode::kMul, T>(x, scales[i], scales[i]);
      sum = kStep == Opcode::kSelect ? x : Evaluate<kStep, T>(sum, x, x);
    }
    out[k] = sum;
  }
}

// As AccumulateAs, of rows from anywhere, times scales[i] where there are scales. Ids of
// one row often follow each other: a few at a time, so that they do not wait for each
// other's stores.
template <Opcode kStep, bool kScaled, typename T, typename Width>
PICASSO_INLINE void AccumulateRowsAs(const T* const* rows, const Compute<T>* scales,
                                     const int32_t* places, int64_t n, Width width,
                                     Compute<T>* out) {
  constexpr int kGroup = 4;
  for (int64_t i = 0; i < n;) {
    Compute<T>* row = out + places[i] * width;
    const Compute<T>* scale = kScaled ? scales + i : nullptr;
    if (i + kGroup <= n && places[i + kGroup - 1] == places[i] &&
        std::equal(places + i + 1, places + i + kGroup, places + i)) {
      AccumulateGroup<kGroup, kStep, kScaled>(rows + i, scale, width, row);
      i += kGroup;
    } else {
      AccumulateGroup<1, kStep, kScaled>(rows + i, scale, width, row);
      ++i;
    }
  }
}

template <typename T>
PICASSO_INLINE void AccumulateRowsBody(Opcode step, const T* const* rows,
                                       const Compute<T>* scales, const int32_t* places, int64_t n,
                                       int64_t width, Compute<T>* out) {
  const auto accumulate = [&](auto opcode, auto constant) PICASSO_INLINE_LAMBDA {
    if (scales == nullptr) {
      return AccumulateRowsAs<opcode(), false, T>(rows, scales, places, n, constant, out);
    }
    AccumulateRowsAs<opcode(), true, T>(rows, scales, places, n, constant, out);
  };
  WithWidth(width, [&](auto constant) PICASSO_INLINE_LAMBDA {
    if (step == Opcode::kAdd) return accumulate(OpcodeIs<Opcode::kAdd>(), constant);
    if (step == Opcode::kSub) return accumulate(OpcodeIs<Opcode::kSub>(), constant);
    accumulate(OpcodeIs<Opcode::kSelect>(), constant);
  });
}

// ---- One set of them for each instruction set ----

template <typename T>
struct Loops {
  using C = Compute<T>;

  void (*map)(const Instruction& instruction, C* out, const Operand<C>* in, int64_t n);
  void (*gather)(const T* const* rows, int64_t n, int64_t width, C* out);
  void (*scatter)(const C* in, int64_t n, int64_t width, T* const* rows);
  void (*scale)(const C* scales, int64_t n, int64_t width, C* out);
  void (*repeat)(const C* in, const int32_t* places, int64_t n, int64_t width, C* out);
  void (*accumulate)(Opcode step, const C* in, const int32_t* places, int64_t n, int64_t width,
                     C* out);
  void (*accumulate_rows)(Opcode step, const T* const* rows, const C* scales,
                          const int32_t* places, int64_t n, int64_t width, C* out);

  static const Loops& OfThisMachine() {
    static const Loops loops = Choose();
    return loops;
  }

  static Loops Choose();
};

#define PICASSO_DEFINE_LOOPS(Name, attributes)                                                  \
  template <typename T>                                                                         \
  struct Name {                                                                                 \
    using C = Compute<T>;                                                                       \
    attributes static void Map(const Instruction& instruction, C* out, const Operand<C>* in,    \
                               int64_t n) {                                                     \
      MapBody<T>(instruction, out, in, n);                                                      \
    }                                                                                           \
    attributes static void Gather(const T* const* rows, int64_t n, int64_t width, C* out) {     \
      GatherBody<T>(rows, n, width, out);                                                       \
    }                                                                                           \
    attributes static void Scatter(const C* in, int64_t n, int64_t width, T* const* rows) {     \
      ScatterBody<T>(in, n, width, rows);                                                       \
    }                                                                                           \
    attributes static void Scale(const C* scales, int64_t n, int64_t width, C* out) {           \
      ScaleBody<T>(scales, n, width, out);                                                      \
    }                                                                                           \
    attributes static void Repeat(const C* in, const int32_t* places, int64_t n, int64_t width, \
                                  C* out) {                                                     \
      RepeatBody(in, places, n, width, out);                                                    \
    }                                                                                           \
    attributes static void Accumulate(Opcode step, const C* in, const int32_t* places,          \
                                      int64_t n, int64_t width, C* out) {                       \
      AccumulateBody<T>(step, in, places, n, width, out);                                       \
    }                                                                                           \
    attributes static void AccumulateRows(Opcode step, const T* const* rows, const C* scales,   \
                                          const int32_t* places, int64_t n, int64_t width,      \
                                          C* out) {                                             \
      AccumulateRowsBody<T>(step, rows, scales, places, n, width, out);                         \
    }                                                                                           \
    static Loops<T> All() {                                                                     \
      return {Map, Gather, Scatter, Scale, Repeat, Accumulate, AccumulateRows};                 \
    }                                                                                           \
  };

PICASSO_DEFINE_LOOPS(BaselineLoops, )
#if defined(__x86_64__)
PICASSO_DEFINE_LOOPS(Avx2Loops, __attribute__((target("avx2"))))
PICASSO_DEFINE_LOOPS(Avx512Loops, __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw"))))
#endif
#undef PICASSO_DEFINE_LOOPS

template <typename T>
Loops<T> Loops<T>::Choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw")) {
    return Avx512Loops<T>::All();
  }
  if (__builtin_cpu_supports("avx2")) return Avx2Loops<T>::All();
#endif
  return BaselineLoops<T>::All();
}

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_LOOPS_H_
