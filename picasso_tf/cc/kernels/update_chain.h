// Chains of elementwise instructions, run on a few vector registers at a time.
//
// One loop for each instruction would write every intermediate result to a buffer
// and read it back. In a chain each instruction is a function that takes the last
// result in eight registers and passes its own on, to the function of the next
// instruction: a jump, where the compiler makes tail calls. Only what is needed
// later is stored.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_CHAIN_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_CHAIN_H_

#include <type_traits>

#include "picasso_tf/cc/kernels/update_arithmetic.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace picasso {
namespace packed_update {

// Instructions that can be links of a chain. The others are rare.
constexpr bool IsChainable(Opcode opcode) {
  return opcode <= Opcode::kDiv || opcode == Opcode::kSquare || opcode == Opcode::kSqrt;
}

// What a link does with the registers and its operand.
enum class Verb {
  kLoad,   // operand
  kStore,  // to `out`
  kAdd,
  kSub,   // registers - operand
  kFrom,  // operand - registers
  kMul,
  kDiv,  // registers / operand
  kInto,  // operand / registers
  kSquare,
  kSqrt,
  kEnd,
};
constexpr int kNumVerbs = static_cast<int>(Verb::kEnd) + 1;

template <typename C>
struct Link {
  void (*run)() = nullptr;  // in truth a Chains::Run
  const C* in = nullptr;
  const C* out = nullptr;  // not const to kStore
};

// The chains of one instruction set.
template <typename C>
struct Chains {
  int64_t block = 0;  // elements that are done at once; 0: there are no chains
  void (*links[kNumVerbs][2])() = {};  // with a vector operand, with a scalar one

  // Runs a chain, ended by kEnd, on the block that begins at element `at`.
  void (*run)(const Link<C>* chain, int64_t at) = nullptr;

  Link<C> Make(Verb verb, bool scalar, const C* in, C* out = nullptr) const {
    return {links[static_cast<int>(verb)][scalar], in, out};
  }

  static const Chains& OfThisMachine() {
    static const Chains chains = Choose();
    return chains;
  }

  static Chains Choose();
};

#if defined(__x86_64__)

#define PICASSO_REGISTERS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

// `attributes` names the instruction set; sqrt is the one operation that vectors of
// GCC and Clang do not have.
#define PICASSO_DEFINE_CHAINS(Name, attributes, kBytes, Float, SqrtFloat, Double, SqrtDouble)      \
  template <typename C>                                                                            \
  struct Name {                                                                                    \
    typedef C V __attribute__((vector_size(kBytes)));                                              \
    typedef C Unaligned __attribute__((vector_size(kBytes), aligned(sizeof(C)), may_alias));       \
    using Run = void (*)(const Link<C>*, int64_t, V, V, V, V, V, V, V, V);                         \
    static constexpr int64_t kLanes = kBytes / sizeof(C);                                          \
                                                                                                   \
    template <Verb kVerb>                                                                          \
    attributes static inline V Apply(V a, V b) {                                                   \
      if constexpr (kVerb == Verb::kLoad) return b;                                                \
      if constexpr (kVerb == Verb::kAdd) return a + b;                                             \
      if constexpr (kVerb == Verb::kSub) return a - b;                                             \
      if constexpr (kVerb == Verb::kFrom) return b - a;                                            \
      if constexpr (kVerb == Verb::kMul) return a * b;                                             \
      if constexpr (kVerb == Verb::kDiv) return a / b;                                             \
      if constexpr (kVerb == Verb::kInto) return b / a;                                            \
      if constexpr (kVerb == Verb::kSquare) return a * a;                                          \
      if constexpr (kVerb == Verb::kSqrt && std::is_same_v<C, float>) {                            \
        return reinterpret_cast<V>(SqrtFloat(reinterpret_cast<Float>(a)));                         \
      }                                                                                            \
      if constexpr (kVerb == Verb::kSqrt && !std::is_same_v<C, float>) {                           \
        return reinterpret_cast<V>(SqrtDouble(reinterpret_cast<Double>(a)));                       \
      }                                                                                            \
      return a;                                                                                    \
    }                                                                                              \
                                                                                                   \
    template <Verb kVerb, bool kScalar>                                                            \
    attributes static void Do(const Link<C>* link, int64_t at, V r0, V r1, V r2, V r3, V r4, V r5, \
                              V r6, V r7) {                                                        \
      constexpr bool kHasOperand = kVerb != Verb::kStore && kVerb < Verb::kSquare;                 \
      if constexpr (kVerb == Verb::kStore) {                                                       \
        Unaligned* to = reinterpret_cast<Unaligned*>(const_cast<C*>(link->out) + at);              \
        PICASSO_REGISTERS(PICASSO_STORE)                                                           \
      } else if constexpr (kHasOperand && kScalar) {                                               \
        const V operand = *link->in - V{};                                                         \
        PICASSO_REGISTERS(PICASSO_APPLY)                                                           \
      } else if constexpr (kHasOperand) {                                                          \
        const Unaligned* from = reinterpret_cast<const Unaligned*>(link->in + at);                 \
        PICASSO_REGISTERS(PICASSO_APPLY_FROM)                                                      \
      } else if constexpr (kVerb != Verb::kEnd) {                                                  \
        const V operand = {};                                                                      \
        PICASSO_REGISTERS(PICASSO_APPLY)                                                           \
      }                                                                                            \
      if constexpr (kVerb != Verb::kEnd) {                                                         \
        return reinterpret_cast<Run>(link[1].run)(link + 1, at, r0, r1, r2, r3, r4, r5, r6, r7);   \
      }                                                                                            \
    }                                                                                              \
                                                                                                   \
    attributes static void RunChain(const Link<C>* chain, int64_t at) {                            \
      const V zero = {};                                                                           \
      reinterpret_cast<Run>(chain->run)(chain, at, zero, zero, zero, zero, zero, zero, zero,       \
                                        zero);                                                     \
    }                                                                                              \
                                                                                                   \
    template <Verb kVerb>                                                                          \
    static void Add(Chains<C>* chains) {                                                           \
      auto& links = chains->links[static_cast<int>(kVerb)];                                        \
      links[0] = reinterpret_cast<void (*)()>(Do<kVerb, false>);                                   \
      links[1] = reinterpret_cast<void (*)()>(Do<kVerb, true>);                                    \
    }                                                                                              \
                                                                                                   \
    static Chains<C> All() {                                                                       \
      Chains<C> chains;                                                                            \
      chains.block = 8 * kLanes;                                                                   \
      chains.run = RunChain;                                                                       \
      Add<Verb::kLoad>(&chains);                                                                   \
      Add<Verb::kStore>(&chains);                                                                  \
      Add<Verb::kAdd>(&chains);                                                                    \
      Add<Verb::kSub>(&chains);                                                                    \
      Add<Verb::kFrom>(&chains);                                                                   \
      Add<Verb::kMul>(&chains);                                                                    \
      Add<Verb::kDiv>(&chains);                                                                    \
      Add<Verb::kInto>(&chains);                                                                   \
      Add<Verb::kSquare>(&chains);                                                                 \
      Add<Verb::kSqrt>(&chains);                                                                   \
      Add<Verb::kEnd>(&chains);                                                                    \
      return chains;                                                                               \
    }                                                                                              \
  };
// GCC warns of the intrinsics without a mask, whose definition reads an undefined register.
#define PICASSO_SQRT_16(x) _mm512_maskz_sqrt_ps(0xffff, x)
#define PICASSO_SQRT_8(x) _mm512_maskz_sqrt_pd(0xff, x)
#define PICASSO_STORE(i) to[i] = r##i;
#define PICASSO_APPLY(i) r##i = Apply<kVerb>(r##i, operand);
#define PICASSO_APPLY_FROM(i) r##i = Apply<kVerb>(r##i, from[i]);

PICASSO_DEFINE_CHAINS(Avx2Chains, __attribute__((target("avx2"))), 32, __m256, _mm256_sqrt_ps,
                      __m256d, _mm256_sqrt_pd)
PICASSO_DEFINE_CHAINS(Avx512Chains, __attribute__((target("avx512f,avx512vl,avx512dq,avx512bw"))),
                      64, __m512, PICASSO_SQRT_16, __m512d, PICASSO_SQRT_8)

#undef PICASSO_APPLY_FROM
#undef PICASSO_APPLY
#undef PICASSO_STORE
#undef PICASSO_SQRT_8
#undef PICASSO_SQRT_16
#undef PICASSO_DEFINE_CHAINS
#undef PICASSO_REGISTERS

#endif  // __x86_64__

template <typename C>
Chains<C> Chains<C>::Choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw")) {
    return Avx512Chains<C>::All();
  }
  if (__builtin_cpu_supports("avx2")) return Avx2Chains<C>::All();
#endif
  return {};
}

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_CHAIN_H_
