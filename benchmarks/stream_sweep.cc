// One read-modify-write pass over a variable and its two moments: the least that dense Adam can move.

extern "C" void picasso_stream_sweep(float* __restrict var, float* __restrict m, float* __restrict v, long count) {
  for (long i = 0; i < count; ++i) {
    m[i] *= 0.9f;
    v[i] *= 0.999f;
    var[i] -= 1e-6f * m[i];
  }
}
