// Rules for the tests of the GPU's packed update: those of some optimizers, and
// random ones.

#ifndef PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_RULES_H_
#define PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_RULES_H_

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "picasso_tf/cc/kernels/update_program.h"

namespace picasso {
namespace packed_update {
namespace cases {

using Random = std::mt19937_64;
using Words = std::vector<std::string>;

inline int64_t Draw(Random& random, int64_t begin, int64_t end) {
  return begin + static_cast<int64_t>(random() % static_cast<uint64_t>(end - begin));
}

struct Rule {
  Counts counts;  // states, row gradients, table gradients, parameters
  Words program;
  Words results;
};

inline const Rule kSgd = {{1, 1, 0, 1}, {"mul g0 p0", "scatter_sub s0 v0"}, {"v1"}};
inline const Rule kAdagrad = {{2, 1, 0, 2},
                              {"square g0", "scatter_add s1 v0", "mul g0 p0", "add v1 p1",
                               "sqrt v3", "div v2 v4", "scatter_sub s0 v5"},
                              {"v6", "v1"}};
inline const Rule kAdam = {{3, 1, 0, 4},
                           {"segment_sum g0", "sub v0 s1", "mul v1 p0", "add s1 v2", "square g0",
                            "segment_sum v4", "sub v5 s2", "mul v6 p1", "add s2 v7", "mul v3 p2",
                            "sqrt v8", "add v10 p3", "div v9 v11", "sub s0 v12"},
                           {"v13", "v3", "v8"}};

// Empty where the rule is right.
inline std::string Parse(const Rule& rule, Program* program) {
  *program = {};
  return ProgramParser(rule.counts, program).Parse(rule.program, rule.results);
}

// A rule of `length` instructions of all kinds. Without `pow` its result is the same
// to the bit wherever it is computed.
inline Rule RandomRule(Random& random, int length, bool pow) {
  Rule rule;
  rule.counts.states = Draw(random, 1, 4);
  rule.counts.row_gradients = Draw(random, 0, 3);
  rule.counts.table_gradients = Draw(random, 0, 2);
  rule.counts.parameters = Draw(random, 0, 4);
  std::vector<std::pair<std::string, int>> opcodes;
#define PICASSO_OPCODE(opcode, name, operands) opcodes.push_back({name, operands});
  PICASSO_UPDATE_ELEMENTWISE(PICASSO_OPCODE)
  for (int i = 0; i < 3; ++i) {
    PICASSO_UPDATE_REDUCTIONS(PICASSO_OPCODE)
    PICASSO_UPDATE_TOUCHED(PICASSO_OPCODE)
  }
#undef PICASSO_OPCODE
  const auto value = [&] {
    const std::pair<char, int> kinds[] = {{'s', rule.counts.states},
                                          {'g', rule.counts.row_gradients},
                                          {'t', rule.counts.table_gradients},
                                          {'p', rule.counts.parameters},
                                          {'v', static_cast<int>(rule.program.size())},
                                          {'v', static_cast<int>(rule.program.size())}};
    for (;;) {
      const auto [kind, count] = kinds[Draw(random, 0, 6)];
      if (count > 0) return kind + std::to_string(Draw(random, 0, count));
    }
  };
  // What the parser refuses is drawn again.
  Program program;
  for (int i = 0; i < rule.counts.states; ++i) rule.results.push_back("s" + std::to_string(i));
  while (static_cast<int>(rule.program.size()) < length) {
    const auto& [name, operands] = opcodes[Draw(random, 0, opcodes.size())];
    std::string text = name;
    for (int i = 0; i < operands; ++i) text += " " + value();
    if (name == "pow" && !pow) continue;
    rule.program.push_back(text);
    if (!Parse(rule, &program).empty()) rule.program.pop_back();
  }
  for (std::string& result : rule.results) {
    do {
      result = value();
    } while (!Parse(rule, &program).empty());
  }
  return rule;
}

}  // namespace cases
}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_PACKED_UPDATE_GPU_RULES_H_
