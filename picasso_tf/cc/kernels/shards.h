// Tables whose rows are spread over several variables, the shards, as those that
// `tf.nn.embedding_lookup` takes a list of. Free of TensorFlow types.

#ifndef PICASSO_TF_CC_KERNELS_SHARDS_H_
#define PICASSO_TF_CC_KERNELS_SHARDS_H_

#include <algorithm>
#include <cstdint>

namespace picasso {

struct Shard {
  const char* data;
  int64_t rows;
};

// Row `id` is row id / num of shard id % num ("mod"). With `rows` above 0 the shards
// hold consecutive rows ("div"): the first `extras` of them rows + 1, the others `rows`.
struct Shards {
  const Shard* list = nullptr;
  int64_t num = 0;
  int64_t rows = 0;
  int64_t extras = 0;
};

struct Place {
  int64_t shard;  // both may be out of range
  int64_t row;
};

// Rounds down; `divisor` is above 0.
inline Place DivideDown(int64_t id, int64_t divisor) {
  const int64_t rest = id % divisor;
  if (rest >= 0) return {id / divisor, rest};
  return {id / divisor - 1, rest + divisor};
}

inline Place PlaceOf(const Shards& shards, int64_t id) {
  if (shards.rows == 0) {
    const Place turned = DivideDown(id, shards.num);
    return {turned.row, turned.shard};
  }
  const Place longer = DivideDown(id, shards.rows + 1);
  const int64_t rest =
      static_cast<int64_t>(static_cast<uint64_t>(id) - static_cast<uint64_t>(shards.extras));
  const Place shorter = DivideDown(rest, shards.rows);
  const int64_t shard = std::max(longer.shard, shorter.shard);
  const int64_t row = shard < shards.extras ? longer.row : shorter.row;
  return {static_cast<int32_t>(static_cast<uint32_t>(shard)), row};  // cut as Cast cuts it
}

// Sets `row` to the address of row `id`. False: there is none, and `row` stays.
inline bool FindRow(const Shards& shards, int64_t id, int64_t row_bytes, const char** row) {
  const Place place = PlaceOf(shards, id);
  if (place.shard < 0 || place.shard >= shards.num) return false;
  const Shard& shard = shards.list[place.shard];
  if (place.row < 0 || place.row >= shard.rows) return false;
  *row = shard.data + place.row * row_bytes;
  return true;
}

}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_SHARDS_H_
