// Stand-alone test of transform programs: every instruction against a plain computation of each
// element. Built and run as pooled_lookup_test.cc is. Features have no byte to spare, so that the
// address sanitizer sees any access beyond them.

#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "picasso_tf/cc/kernels/kernel_test.h"
#include "picasso_tf/cc/kernels/transform_block.h"
#include "picasso_tf/cc/kernels/transform_parser.h"

namespace {

using namespace kernel_test;
using namespace picasso::transforms;

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Texts = std::vector<std::string_view>;
using Lines = std::vector<std::string>;

constexpr int64_t kLowest32 = std::numeric_limits<int32_t>::min();
constexpr int64_t kHighest32 = std::numeric_limits<int32_t>::max();
constexpr int64_t kLowest64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest64 = std::numeric_limits<int64_t>::max();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Sizes around the end of a block.
const int64_t kSizes[] = {0, 1, 2, kBlock - 1, kBlock, kBlock + 1, 2 * kBlock, 2 * kBlock + 77};

uint64_t Fast(std::string_view text) { return ~uint64_t{0} - text.size(); }

uint64_t Strong(uint64_t a, uint64_t b, std::string_view text) { return a * 3 + b + text.size(); }

// Has the even keys, with ten times themselves; of strings and of floats none.
class FakeOutside : public Outside {
 public:
  uint64_t HashLegacy(std::string_view text) const override { return text.size() * 7 + 1; }
  uint64_t HashFast(std::string_view text) const override { return Fast(text); }
  uint64_t HashStrong(const uint64_t (&key)[2], std::string_view text) const override {
    return Strong(key[0], key[1], text);
  }
  bool Find(int table, DType from, DType to, int64_t size, const Slot& keys, const Slot& missing,
            Room* out) const override {
    calls.push_back({table, from, to, size});
    if (size == refused_size) return false;
    WithType(StorageOf(to), [&](auto type) {
      using T = decltype(type);
      for (int64_t i = 0; i < size; ++i) {
        Of<T>(*out)[i] = Of<T>(missing)[i];
        if constexpr (std::is_arithmetic_v<T>) {
          if (keys.ints.data && keys.ints[i] % 2 == 0) Of<T>(*out)[i] = T(keys.ints[i] * 10);
        }
      }
    });
    return true;
  }

  mutable std::vector<std::tuple<int, DType, DType, int64_t>> calls;
  int64_t refused_size = -1;
};

// What a program may refer to besides its feature: c0, c1, ..., sizes of tables, boundaries.
struct Given {
  std::vector<DType> dtypes;
  std::deque<Room> scalars;
  Ints sizes;
  Floats boundaries;
  Lines texts;
  std::vector<Texts> others;  // strings, as long as the feature

  template <typename T>
  Given& Add(DType dtype, T value) {
    dtypes.push_back(dtype);
    Of<T>(scalars.emplace_back()) = {value};
    return *this;
  }
  Surroundings Around(DType feature) const {
    return {feature, dtypes, static_cast<int>(sizes.size()),
            static_cast<int64_t>(boundaries.size()),
            std::vector<DType>(others.size(), DType::kString),
            static_cast<int64_t>(texts.size())};
  }
  std::vector<Slot> Slots() const {
    std::vector<Slot> slots;
    for (size_t i = 0; i < dtypes.size(); ++i) {
      WithType(StorageOf(dtypes[i]), [&](auto type) {
        Of<decltype(type)>(slots.emplace_back()) = {Of<decltype(type)>(scalars[i]).data(), 0};
      });
    }
    for (const int64_t& size : sizes) slots.emplace_back().ints = {&size, 0};
    return slots;
  }
};

struct Found {
  Problem problem = Problem::kNone;
  int64_t taken = 0;
};

// What a program keeps an expected result in. Strings of a block live no longer than it.
template <typename Out>
using Kept = std::conditional_t<std::is_same_v<Out, std::string>, std::string_view, Out>;

// Runs a program block by block; `out` becomes the result of its last instruction.
template <typename In, typename Out>
Found Run(DType dtype, const std::vector<In>& feature, const Lines& lines, const Given& given,
          std::vector<Out>* out, const FakeOutside& outside = FakeOutside()) {
  const Surroundings around = given.Around(dtype);
  Program program;
  const std::string problem = ProgramParser(around, &program).Parse(lines);
  if (!problem.empty()) std::printf("%s\n", problem.c_str());
  CHECK(problem.empty());
  Block block(program, given.Slots(), given.boundaries.data(), given.texts.data(), outside);
  Found found;
  out->clear();
  const int64_t size = feature.size();
  for (int64_t at = 0; at == 0 || at < size; at += kBlock) {
    // A copy of its own, so that nothing is read beyond the block either.
    const std::vector<In> part(feature.begin() + at,
                               feature.begin() + std::min(at + kBlock, size));
    Slot slot;
    Of<In>(slot) = {part.data(), 1};
    Slot other;
    for (size_t i = 0; i < given.others.size(); ++i) {
      other.strings = {given.others[i].data() + at, 1};
      block.SetOther(static_cast<int>(i), other);
    }
    const Problem of_block = block.Run(slot, part.size());
    if (found.problem == Problem::kNone) found.problem = of_block;
    found.taken += block.taken();
    const int32_t last = program.NumValues() - 1;
    for (int64_t i = 0; i < block.size(last); ++i) {
      out->emplace_back(Of<Kept<Out>>(block.value(last))[i]);
    }
  }
  return found;
}

// Checks the last result of a program, for each element of features of all sizes, made of `some`.
template <typename In, typename Out>
void CheckEach(DType dtype, const std::vector<In>& some, const Lines& lines, const Given& given,
               const std::function<Out(In)>& wanted) {
  for (const int64_t size : kSizes) {
    std::vector<In> feature(size);
    for (int64_t i = 0; i < size; ++i) feature[i] = some[(i * 7 + size) % some.size()];
    std::vector<Out> out;
    CHECK(Run(dtype, feature, lines, given, &out).problem == Problem::kNone);
    CHECK(static_cast<int64_t>(out.size()) == size);
    for (int64_t i = 0; i < size; ++i) CHECK(out[i] == wanted(feature[i]));
  }
}

// A wide result, cut to the width of the dtype as two's complement does.
int64_t Wrapped(DType dtype, __int128 value) {
  return dtype == DType::kInt32 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
}

__int128 Remainder(__int128 a, __int128 b, bool floor) {
  const __int128 rest = a % b;
  return floor && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

void TestIntegers(DType dtype, int64_t lowest, int64_t highest) {
  using Wide = __int128;
  const Ints some = {0,  1,   -1,   2,      -2,         3,           7,
                     -7, 100, -100, lowest, lowest + 1, highest - 1, highest};
  const std::pair<std::string, std::function<Wide(Wide, Wide)>> operations[] = {
      {"add", [](Wide a, Wide b) { return a + b; }},
      {"sub", [](Wide a, Wide b) { return a - b; }},
      {"mul", [](Wide a, Wide b) { return a * b; }},
      {"max", [](Wide a, Wide b) { return a > b ? a : b; }},
      {"min", [](Wide a, Wide b) { return a < b ? a : b; }},
      {"floor_mod", [](Wide a, Wide b) { return b == 0 ? 0 : Remainder(a, b, true); }},
      {"trunc_mod", [](Wide a, Wide b) { return b == 0 ? 0 : Remainder(a, b, false); }},
      {"equal", [](Wide a, Wide b) { return a == b; }},
      {"not_equal", [](Wide a, Wide b) { return a != b; }},
      {"less", [](Wide a, Wide b) { return a < b; }},
      {"less_equal", [](Wide a, Wide b) { return a <= b; }},
      {"greater", [](Wide a, Wide b) { return a > b; }},
      {"greater_equal", [](Wide a, Wide b) { return a >= b; }}};
  for (const auto& [name, operation] : operations) {
    const bool divides = name.find("mod") != std::string::npos;
    for (const int64_t other : some) {
      if (divides && other == 0) continue;
      Given given;
      given.Add(dtype, other);
      CheckEach<int64_t, int64_t>(
          dtype, some, {name + " x c0"}, given,
          [&, run = operation](int64_t x) { return Wrapped(dtype, run(x, other)); });
    }
    Ints feature = some, out;
    if (divides) feature.erase(feature.begin());  // 0 divides nothing
    Given given;
    given.Add<int64_t>(dtype, 7).Add<int64_t>(dtype, -5);
    CHECK(Run(dtype, feature, {name + " c0 x"}, given, &out).problem == Problem::kNone);
    for (size_t i = 0; i < out.size(); ++i) {
      CHECK(out[i] == Wrapped(dtype, operation(7, feature[i])));
    }
    Run(dtype, feature, {"sub c1 x", name + " x v0"}, given, &out);
    for (size_t i = 0; i < out.size(); ++i) {
      CHECK(out[i] == Wrapped(dtype, operation(feature[i], Wrapped(dtype, Wide{-5} - feature[i]))));
    }
  }
}

void TestDivisionByZero() {
  for (const std::string name : {"floor_mod", "trunc_mod"}) {
    Given given;
    given.Add<int64_t>(DType::kInt64, 0).Add<int64_t>(DType::kInt64, 9);
    Ints out;
    const auto problem = [&](const Ints& feature, const Lines& lines) {
      return Run(DType::kInt64, feature, lines, given, &out).problem;
    };
    CHECK(problem({1, 2}, {name + " x c0"}) == Problem::kDivisionByZero);
    CHECK(problem({}, {name + " x c0"}) == Problem::kNone);
    CHECK(problem({4, 0, 2}, {name + " c1 x"}) == Problem::kDivisionByZero);
    CHECK((out == Ints{1, 0, 1}));
    Ints long_feature(kBlock + 1, 3);
    long_feature.back() = 0;  // in the second block
    CHECK(problem(long_feature, {name + " c1 x"}) == Problem::kDivisionByZero);
    long_feature.back() = 5;
    long_feature.front() = 0;  // the good second block does not hide it
    CHECK(problem(long_feature, {name + " c1 x"}) == Problem::kDivisionByZero);
    // Zeros that the mask leaves out divide nothing.
    CHECK(problem({4, 0, 2}, {"not_equal x c0", "take x v0", name + " c1 v1"}) == Problem::kNone);
    CHECK((out == Ints{1, 1}));
  }
}

template <typename Real>
void TestReals(DType dtype) {
  const Real tiny = std::numeric_limits<Real>::denorm_min();
  const std::vector<Real> some = {0, Real(-0.0), tiny, 1, Real(-1.5), Real(0.1), Real(1e30),
                                  kInfinity, -kInfinity, kNan};
  const std::pair<std::string, std::function<bool(Real, Real)>> tests[] = {
      {"equal", [](Real a, Real b) { return a == b; }},
      {"not_equal", [](Real a, Real b) { return a != b; }},
      {"less", [](Real a, Real b) { return a < b; }},
      {"less_equal", [](Real a, Real b) { return a <= b; }},
      {"greater", [](Real a, Real b) { return a > b; }},
      {"greater_equal", [](Real a, Real b) { return a >= b; }}};
  for (const auto& [name, test] : tests) {
    for (const Real other : some) {
      Given given;
      given.Add(dtype, other);
      CheckEach<Real, int64_t>(dtype, some, {name + " x c0"}, given,
                               [&, run = test](Real x) { return run(x, other); });
    }
  }
  Given given;
  given.Add<Real>(dtype, Real(0.5));
  const std::vector<Real> tame(some.begin(), some.end() - 1);  // a NaN is not equal to itself
  CheckEach<Real, Real>(dtype, tame, {"less x c0", "select v0 c0 x"}, given,
                        [](Real x) { return x < Real(0.5) ? Real(0.5) : x; });
  CheckEach<Real, Real>(dtype, some, {"ones_like x"}, given, [](Real) { return Real(1); });
  CheckEach<Real, Real>(dtype, some, {"zeros_like x"}, given, [](Real) { return Real(0); });
  CheckEach<Real, int64_t>(dtype, some, {"cast x bool"}, given, [](Real x) { return x != 0; });
  CheckEach<Real, double>(dtype, tame, {"cast x float64"}, given, [](Real x) { return x; });
  CheckEach<Real, float>(dtype, tame, {"cast x float32"}, given,
                         [](Real x) { return static_cast<float>(x); });
  std::vector<float> out;
  Run(dtype, std::vector<Real>{kNan}, {"cast x float32"}, given, &out);
  CHECK(std::isnan(out[0]));
}

void TestCastsOfReals() {
  const Doubles some = {0.9, -0.9, 2147483647.0, 2147483647.9, 2147483648.0, -2147483648.0,
                        -2147483648.9, -2147483649.0, 9223372036854774784.0, 9223372036854775808.0,
                        -9223372036854775808.0, 1e300, -1e300, kInfinity, -kInfinity, kNan};
  const Ints to32 = {0, 0, kHighest32, kHighest32, kLowest32, kLowest32, kLowest32, kLowest32};
  const Ints to64 = {0, 0, kHighest32, kHighest32, 2147483648, kLowest32, kLowest32, -2147483649,
                     9223372036854774784};
  Ints out;
  Run(DType::kFloat64, some, {"cast x int32"}, {}, &out);
  for (size_t i = 0; i < some.size(); ++i) CHECK(out[i] == (i < to32.size() ? to32[i] : kLowest32));
  Run(DType::kFloat64, some, {"cast x int64"}, {}, &out);
  for (size_t i = 0; i < some.size(); ++i) CHECK(out[i] == (i < to64.size() ? to64[i] : kLowest64));
  const Floats floats = {2147483520.0f, 2147483648.0f, -2147483648.0f, 9223371487098961920.0f,
                         9223372036854775808.0f, kNan};
  Run(DType::kFloat32, floats, {"cast x int32"}, {}, &out);
  CHECK((out == Ints{2147483520, kLowest32, kLowest32, kLowest32, kLowest32, kLowest32}));
  Run(DType::kFloat32, floats, {"cast x int64"}, {}, &out);
  CHECK((out ==
         Ints{2147483520, 2147483648, kLowest32, 9223371487098961920, kLowest64, kLowest64}));
}

void TestCastsOfIntegers() {
  const Ints some = {0, 1, -1, kLowest32 - 1, kHighest32 + 1, kLowest64, kHighest64, 1LL << 40,
                     // By way of double these would be rounded twice.
                     9007199791611905, (1LL << 60) + (1LL << 36) + 1};
  CheckEach<int64_t, int64_t>(DType::kInt64, some, {"cast x int32"}, {},
                              [](int64_t x) { return Wrapped(DType::kInt32, x); });
  CheckEach<int64_t, int64_t>(DType::kInt64, some, {"cast x int32", "cast v0 int64"}, {},
                              [](int64_t x) { return Wrapped(DType::kInt32, x); });
  CheckEach<int64_t, int64_t>(DType::kInt64, some, {"cast x bool"}, {},
                              [](int64_t x) { return x != 0; });
  CheckEach<int64_t, float>(DType::kInt64, some, {"cast x float32"}, {},
                            [](int64_t x) { return static_cast<float>(x); });
  CheckEach<int64_t, double>(DType::kInt64, some, {"cast x float64"}, {},
                             [](int64_t x) { return static_cast<double>(x); });
  CheckEach<int64_t, int64_t>(DType::kBool, {0, 1}, {"cast x int64"}, {},
                              [](int64_t x) { return x; });
  CheckEach<int64_t, std::string>(DType::kInt64, some, {"as_string x"}, {},
                                  [](int64_t x) { return std::to_string(x); });
}

void TestLogic() {
  const std::pair<std::string, std::function<int64_t(int64_t, int64_t)>> tests[] = {
      {"and", [](int64_t a, int64_t b) { return a && b; }},
      {"or", [](int64_t a, int64_t b) { return a || b; }},
      {"equal", [](int64_t a, int64_t b) { return a == b; }},
      {"not_equal", [](int64_t a, int64_t b) { return a != b; }}};
  for (const int64_t other : {0, 1}) {
    Given given;
    given.Add(DType::kBool, other);
    for (const auto& [name, test] : tests) {
      CheckEach<int64_t, int64_t>(DType::kBool, {0, 1}, {name + " x c0"}, given,
                                  [&, run = test](int64_t x) { return run(x, other); });
    }
  }
  CheckEach<int64_t, int64_t>(DType::kBool, {0, 1}, {"not x"}, {}, [](int64_t x) { return !x; });
}

void TestStrings() {
  const Texts some = {"", "a", "b", "ab", std::string_view("a\0b", 3), "12345678901234567890"};
  Given given;
  given.Add<std::string_view>(DType::kString, "a").Add<int64_t>(DType::kBool, 1);
  const auto check = [&](const Lines& lines, std::function<int64_t(std::string_view)> wanted) {
    CheckEach<std::string_view, int64_t>(DType::kString, some, lines, given, wanted);
  };
  check({"equal x c0"}, [](std::string_view x) { return x == "a"; });
  check({"not_equal x c0"}, [](std::string_view x) { return x != "a"; });
  // Hashes are unsigned: these have the highest bit set.
  check({"hash_fast x 1000"}, [](std::string_view x) { return int64_t(Fast(x) % 1000); });
  check({"hash_fast x 9223372036854775807"},
        [](std::string_view x) { return int64_t(Fast(x) % kHighest64); });
  check({"hash_strong x 7 3 -1"}, [](std::string_view x) { return int64_t(Strong(3, -1, x) % 7); });
  CheckEach<std::string_view, std::string>(
      DType::kString, some, {"equal x c0", "select v0 x c0"}, given, [](auto) { return "a"; });
  CheckEach<std::string_view, std::string>(DType::kString, some, {"select c1 x c0"}, given,
                                                [](auto x) { return std::string(x); });
  CheckEach<std::string_view, std::string>(DType::kString, some, {"zeros_like x"}, given,
                                                [](auto) { return ""; });
}

// By the definition: the number of boundaries that a value is not below.
template <typename In>
int64_t NaiveBucket(In x, const Floats& boundaries) {
  int64_t bucket = 0;
  for (const float boundary : boundaries) bucket += !(x < boundary);
  return bucket;
}

// Strings that are made on the way, of the feature, a scalar and another tensor.
void TestJoin() {
  const Texts some = {"", "a", "b", "ab", std::string_view("a\0b", 3), "12345678901234567890"};
  for (const int64_t size : kSizes) {
    Texts feature(size), other(size);
    std::vector<std::string> joined(size);
    for (int64_t i = 0; i < size; ++i) {
      feature[i] = some[i % some.size()];
      other[i] = some[(i * 5 + 2) % some.size()];
      joined[i] = "<c>" + std::string(feature[i]) + "_X_" + std::string(other[i]);
    }
    Given given;
    given.Add<std::string_view>(DType::kString, "<c>");
    given.texts = {"", "_X_"};
    given.others = {feature, other, Texts(joined.begin(), joined.end())};
    Ints out;
    const Lines lines = {"join c0 x 0", "join v0 y1 1", "equal v1 y2", "hash_legacy v1 1000"};
    Run(DType::kString, feature, {lines.begin(), lines.end() - 1}, given, &out);
    CHECK(out == Ints(size, 1));
    Run(DType::kString, feature, lines, given, &out);
    for (int64_t i = 0; i < size; ++i) {
      CHECK(out[i] == static_cast<int64_t>((joined[i].size() * 7 + 1) % 1000));
    }
  }
}

void TestBucketize() {
  Floats many;
  for (int i = 0; i < 100; ++i) many.push_back(i / 4.0f);
  for (const Floats& boundaries : {Floats{}, Floats{-2.5f, 0, 0, 0.1f, 7}, many}) {
    Given given;
    given.boundaries = {-1000};  // of another instruction
    given.boundaries.insert(given.boundaries.end(), boundaries.begin(), boundaries.end());
    const Lines lines = {"bucketize x 1 " + std::to_string(given.boundaries.size())};
    const Ints integers = {0, -2, -3, 6, 7, 8, kLowest32, kHighest32};
    CheckEach<int64_t, int64_t>(DType::kInt32, integers, lines, given,
                                [&](int64_t x) { return NaiveBucket(float(x), boundaries); });
    CheckEach<int64_t, int64_t>(DType::kInt64, {0, 7, kLowest64, kHighest64}, lines, given,
                                [&](int64_t x) { return NaiveBucket(float(x), boundaries); });
    CheckEach<float, int64_t>(
        DType::kFloat32, {-2.5f, 0.1f, 0.09999999f, 7, -0.0f, kNan, kInfinity, -kInfinity}, lines,
        given, [&](float x) { return NaiveBucket(x, boundaries); });
    // 0.1 of a double is below 0.1f; a float would be equal.
    CheckEach<double, int64_t>(DType::kFloat64, {-2.5, 0.1, 0.1f, 7, kNan, kInfinity}, lines, given,
                               [&](double x) { return NaiveBucket(x, boundaries); });
  }
}

void TestTake() {
  for (const int64_t size : kSizes) {
    for (const int64_t least : {int64_t{0}, size / 2, size}) {  // all, a half, none
      Ints feature(size), out, wanted;
      for (int64_t i = 0; i < size; ++i) feature[i] = i * 31 % (size + 1);
      for (const int64_t x : feature) {
        if (x >= least) wanted.push_back(x * 2);
      }
      Given given;
      given.Add(DType::kInt64, least);
      const Lines lines = {"greater_equal x c0", "take x v0", "add v1 v1"};
      const Found found = Run(DType::kInt64, feature, lines, given, &out);
      CHECK(out == wanted);
      CHECK(found.taken == static_cast<int64_t>(wanted.size()));
      std::vector<std::string> texts;
      Run(DType::kInt64, feature, {"greater_equal x c0", "as_string x", "take v1 v0"}, given,
          &texts);
      CHECK(texts.size() == wanted.size());
      for (size_t i = 0; i < texts.size(); ++i) CHECK(texts[i] == std::to_string(wanted[i] / 2));
      Doubles doubles;
      Run(DType::kInt64, feature, {"greater_equal x c0", "cast x float64", "take v1 v0"}, given,
          &doubles);
      CHECK(doubles.size() == wanted.size());
      for (size_t i = 0; i < doubles.size(); ++i) CHECK(doubles[i] * 2 == wanted[i]);
    }
  }
}

void TestFind() {
  Given given;
  given.Add<int64_t>(DType::kInt64, -1).Add<float>(DType::kFloat32, 0.5f);
  given.sizes = {30, 40};
  Ints feature(kBlock + 3), out;
  for (size_t i = 0; i < feature.size(); ++i) feature[i] = i;
  FakeOutside outside;
  CHECK(Run(DType::kInt32, feature, {"find x c0 1 int64"}, given, &out, outside).problem ==
        Problem::kNone);
  for (size_t i = 0; i < feature.size(); ++i) CHECK(out[i] == (i % 2 ? -1 : int64_t(i) * 10));
  const std::vector<std::tuple<int, DType, DType, int64_t>> calls = {
      {1, DType::kInt32, DType::kInt64, kBlock}, {1, DType::kInt32, DType::kInt64, 3}};
  CHECK(outside.calls == calls);
  Floats reals;
  Run(DType::kInt32, feature, {"find x c1 0 float32"}, given, &reals);
  for (size_t i = 0; i < feature.size(); ++i) CHECK(reals[i] == (i % 2 ? 0.5f : i * 10));
  // What is not there gets the size of the table, as a bucket beyond its keys.
  Run(DType::kInt32, feature, {"find x z1 0 int64"}, given, &out);
  for (size_t i = 0; i < feature.size(); ++i) CHECK(out[i] == (i % 2 ? 40 : int64_t(i) * 10));
  // Only what the mask takes is looked up; a table is asked also for nothing.
  outside.calls.clear();
  const Lines lines = {"less x z0", "take x v0", "find v1 c0 0 int64"};
  Run(DType::kInt64, feature, lines, given, &out, outside);
  CHECK(out.size() == 30 && outside.calls.size() == 2);
  CHECK(std::get<3>(outside.calls[0]) == 30 && std::get<3>(outside.calls[1]) == 0);
  for (const int64_t refused : {kBlock, int64_t{3}}) {
    outside.refused_size = refused;
    CHECK(Run(DType::kInt32, feature, {"find x c0 1 int64"}, given, &out, outside).problem ==
          Problem::kTable);
  }
}

}  // namespace

int main() {
  TestIntegers(DType::kInt32, kLowest32, kHighest32);
  TestIntegers(DType::kInt64, kLowest64, kHighest64);
  TestDivisionByZero();
  TestReals<float>(DType::kFloat32);
  TestReals<double>(DType::kFloat64);
  TestCastsOfReals();
  TestCastsOfIntegers();
  TestLogic();
  TestStrings();
  TestJoin();
  TestBucketize();
  TestTake();
  TestFind();
  return Report();
}
