// Accesses of memory by several bytes at once, as the GPU kernels of the lookups make
// them. Also compiles for the host.

#ifndef PICASSO_TF_CC_KERNELS_GPU_CHUNK_H_
#define PICASSO_TF_CC_KERNELS_GPU_CHUNK_H_

#include <cstdint>

#if defined(__CUDA_ARCH__)
#define PICASSO_UNROLL _Pragma("unroll")
#else
#define PICASSO_UNROLL
#endif

namespace picasso {

// An access of kBytes at once, to memory of any type.
template <int kBytes>
struct __attribute__((may_alias, aligned(kBytes))) Chunk {
  uint16_t halves[kBytes / 2];
};
template <>
struct __attribute__((may_alias, aligned(4))) Chunk<4> {
  uint32_t word;
};
template <>
struct __attribute__((may_alias, aligned(8))) Chunk<8> {
  uint32_t x, y;
};
template <>
struct __attribute__((may_alias, aligned(16))) Chunk<16> {
  uint32_t x, y, z, w;
};

// The most bytes that one access may have, where `mixed` is the bitwise or of all addresses
// and distances. All dtypes of the lookups have 2 bytes or more.
inline int ChunkBytes(uint64_t mixed) {
  for (int bytes = 16; bytes > 2; bytes /= 2) {
    if (mixed % bytes == 0) return bytes;
  }
  return 2;
}

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_GPU_CHUNK_H_
