// Stand-alone test of the parser of transform programs: what it makes of them, and its sentence
// about each one that is wrong. Built and run as pooled_lookup_test.cc is.

#include <string>
#include <vector>

#include "picasso_tf/cc/kernels/kernel_test.h"
#include "picasso_tf/cc/kernels/transform_parser.h"

namespace {

using namespace kernel_test;
using namespace picasso::transforms;

using Lines = std::vector<std::string>;

// What is said about a program that may refer to c0 to c2, z0, y0, two boundaries and a text.
std::string Refusal(DType feature, const Lines& lines) {
  const Surroundings around = {
      feature, {DType::kInt64, DType::kFloat32, DType::kString}, 1, 2, {DType::kString}, 1};
  Program program;
  return ProgramParser(around, &program).Parse(lines);
}

void TestWrongProgramsOfStrings() {
  const auto refused = [](const Lines& lines) { return Refusal(DType::kString, lines); };
  CHECK(refused({}).empty());
  CHECK(refused({""}) == "'': there is no instruction ''.");
  CHECK(refused({"divide x c0"}) == "'divide x c0': there is no instruction 'divide'.");
  CHECK(refused({"equal x"}) == "'equal x': an operand is missing.");
  CHECK(refused({"equal x c2 x"}) == "'equal x c2 x': 'x' is too much.");
  for (const std::string word : {"y", "c", "c-1", "c+1", "v1x", "x0", "c99999999999999999999"}) {
    CHECK(refused({"equal x " + word}) ==
          "'equal x " + word + "': '" + word +
              "' is not a value: x, or one of c, z, y, v and a number.");
  }
  for (const std::string word : {"c3", "z1", "y1", "v0", "v9223372036854775807"}) {
    CHECK(refused({"equal x " + word}) ==
          "'equal x " + word + "': there is no '" + word + "' yet.");
  }
  CHECK(refused({"hash_fast x 9", "add v0 v1"}) == "'add v0 v1': there is no 'v1' yet.");
  CHECK(refused({"hash_fast x"}) == "'hash_fast x': a number is missing.");
  CHECK(refused({"hash_fast x ten"}) == "'hash_fast x ten': a number is missing.");
  CHECK(refused({"hash_fast x 9223372036854775808"}) ==
        "'hash_fast x 9223372036854775808': a number is missing.");
  CHECK(refused({"hash_fast x 0"}) == "'hash_fast x 0': it needs a bucket.");
  CHECK(refused({"hash_strong x -1 1 2"}) == "'hash_strong x -1 1 2': it needs a bucket.");
  CHECK(refused({"hash_strong x 9 1"}) == "'hash_strong x 9 1': a number is missing.");
  CHECK(refused({"join x c2 1"}) == "'join x c2 1': there is no such text.");
  CHECK(refused({"join c2 c2 0"}) == "'join c2 c2 0': it has scalars only.");
  CHECK(refused({"join x y0 0", "hash_legacy v0 9", "take v0 v1"}) ==
        "'take v0 v1': it does not take such dtypes.");
  CHECK(refused({"equal x y0", "take y0 v0", "join v1 c2 0"}).empty());
  CHECK(refused({"equal x y0", "take x v0", "join v1 y0 0"}) ==
        "'join v1 y0 0': 'y0' has another number of elements.");
  CHECK(refused({"find x c0 0"}) == "'find x c0 0': a dtype is missing.");
  CHECK(refused({"find x c0 0 int"}) == "'find x c0 0 int': a dtype is missing.");
  CHECK(refused({"find x c0 1 int64"}) == "'find x c0 1 int64': there is no such table.");
  CHECK(refused({"find x c0 -1 int64"}) == "'find x c0 -1 int64': there is no such table.");
  CHECK(refused({"equal c2 c2"}) == "'equal c2 c2': it has scalars only.");
  const std::string no = ": it does not take such dtypes.";
  for (const std::string line :
       {"add x x", "max x c2", "less x c2", "and x x", "not x", "ones_like x", "cast x int64",
        "as_string x", "bucketize x 0 2", "join x c0 0", "equal x c0", "select x x x", "take x x",
        "find x c1 0 int64", "find x c2 0 string"}) {
    CHECK(refused({line}) == "'" + line + "'" + no);
  }
  CHECK(refused({"zeros_like x"}).empty());
  CHECK(refused({"hash_fast x 9", "find x v0 0 int64"}) == "'find x v0 0 int64'" + no);
}

void TestWrongProgramsOfNumbers() {
  const auto refused = [](const Lines& lines) { return Refusal(DType::kInt64, lines); };
  const std::string no = ": it does not take such dtypes.";
  CHECK(refused({"cast x string"}) == "'cast x string'" + no);
  CHECK(refused({"hash_fast x 9"}) == "'hash_fast x 9'" + no);
  CHECK(refused({"add x c1"}) == "'add x c1'" + no);
  CHECK(refused({"cast x float32", "add v0 c1"}) == "'add v0 c1'" + no);
  CHECK(refused({"cast x bool", "less v0 v0"}) == "'less v0 v0'" + no);
  CHECK(refused({"cast x bool", "as_string v0"}) == "'as_string v0'" + no);
  CHECK(refused({"cast x bool", "bucketize v0 0 2"}) == "'bucketize v0 0 2'" + no);
  CHECK(refused({"cast x int32", "cast x bool", "select v1 x v0"}) == "'select v1 x v0'" + no);
  CHECK(refused({"bucketize x 0 2", "add v0 x"}) == "'add v0 x'" + no);
  for (const std::string range : {"-1 1", "2 1", "0 3", "3 3"}) {
    CHECK(refused({"bucketize x " + range}) ==
          "'bucketize x " + range + "': there are no such boundaries.");
  }
  const Lines taken = {"cast x bool", "take x v0"};
  const auto after = [&](const std::string& line) {
    return refused({taken[0], taken[1], line});
  };
  CHECK(after("take x v0").empty());
  CHECK(after("add v1 c0").empty());
  CHECK(after("add v1 z0").empty());
  CHECK(after("add v1 x") == "'add v1 x': 'x' has another number of elements.");
  CHECK(after("add x v1") == "'add x v1': 'v1' has another number of elements.");
  CHECK(after("take v1 v0") == "'take v1 v0': 'v0' has another number of elements.");
  CHECK(refused({taken[0], taken[1], "not v0", "take x v2"}) ==
        "'take x v2': there is another mask.");
  CHECK(refused({taken[0], taken[1], "cast v1 bool", "take v1 v2"}) ==
        "'take v1 v2': there is another mask.");
  CHECK(refused({"cast x bool", "take c0 v0"}) == "'take c0 v0': it takes of a part.");
}

void TestParsedProgram() {
  const Surroundings around = {DType::kString, {DType::kString, DType::kInt64}, 1, 0};
  Program program;
  CHECK(ProgramParser(around, &program)
            .Parse({"not_equal x c0", "take x v0", "find v1 c1 0 int64", "as_string v2"})
            .empty());
  const std::vector<DType> dtypes = {DType::kString, DType::kString, DType::kInt64, DType::kInt64,
                                     DType::kBool, DType::kString, DType::kInt64, DType::kString};
  const std::vector<Level> levels = {Level::kAll, Level::kScalar, Level::kScalar, Level::kScalar,
                                     Level::kAll, Level::kTaken, Level::kTaken, Level::kTaken};
  CHECK(program.dtypes == dtypes);
  CHECK(program.levels == levels);
  CHECK(program.mask == 4);
}

}  // namespace

int main() {
  TestWrongProgramsOfStrings();
  TestWrongProgramsOfNumbers();
  TestParsedProgram();
  return Report();
}
