// Elementwise instructions on the elements of a tile. Those that follow each other
// are collected and then run as one chain, block by block; between the blocks the
// rows of the next tile are prefetched.

#ifndef PICASSO_TF_CC_KERNELS_UPDATE_MAPPER_H_
#define PICASSO_TF_CC_KERNELS_UPDATE_MAPPER_H_

#include <algorithm>
#include <type_traits>
#include <vector>

#include "picasso_tf/cc/kernels/update_chain.h"
#include "picasso_tf/cc/kernels/update_located.h"
#include "picasso_tf/cc/kernels/update_loops.h"

namespace picasso {
namespace packed_update {

template <typename T>
class Mapper {
 public:
  using C = Compute<T>;

  Mapper() : loops_(Loops<T>::OfThisMachine()), chains_(Chains<C>::OfThisMachine()) {}

  // What is to be fetched in the meantime, a little after each block of elements.
  Ahead* ahead() { return &ahead_; }

  // `all_work`: elements times instructions until what is fetched ahead is needed.
  // `streams`: where rows begin that are used in place; what follows them is
  // prefetched.
  void BeginTile(int64_t all_work, const std::vector<C*>& streams) {
    all_work_ = all_work;
    last_streams_.swap(streams_);
    streams_ = streams;
    num_chains_ = 0;
    is_one_chain_ = true;
  }

  // Whether all instructions since BeginTile were one chain, which Repeat can run
  // for another tile.
  bool IsOneChain() const {
    return is_one_chain_ && num_chains_ == 1 && whole_ == elements_;
  }

  // Does what was done to the tile before this one.
  void Repeat() {
    ++num_chains_;
    if (!streams_.empty()) {
      const int64_t step = streams_[0] - last_streams_[0];
      for (const C** pointer : moving_) *pointer += step;
    }
    RunBlocks();
  }

  // Does `instruction` to n elements, now or when Flush is called. `brief`: nothing
  // but the next instruction reads the result.
  void Map(const Instruction& instruction, const Operand<C>* in, C* out, int64_t n, bool brief) {
    const bool scalars = in[0].scalar && (instruction.num_operands == 1 || in[1].scalar);
    if (!kHasChains || !IsChainable(instruction.opcode) || n < chains_.block ||
        chains_.block == 0 || scalars) {
      Break();
      RunLoop(instruction, in, out, n);
      ahead_.Fetch(n, all_work_);
      return;
    }
    if (n != elements_) Flush();
    elements_ = n;
    waiting_.push_back({instruction, {in[0], in[1]}, out, brief});
  }

  // To be called before anything but Map reads or writes values.
  void Break() {
    Flush();
    is_one_chain_ = false;
  }

  // Does what is waiting.
  void Flush() {
    if (waiting_.empty()) return;
    if constexpr (kHasChains) RunChain();
    waiting_.clear();
  }

 private:
  static constexpr int64_t kStreamAhead = 512;  // bytes: the next block or two
  // Half types are rounded after each instruction: a chain has no place for it.
  static constexpr bool kHasChains = std::is_same_v<T, C>;

  struct Waiting {
    Instruction instruction;
    Operand<C> in[2];
    C* out;
    bool brief;
  };

  void RunChain() {
    ++num_chains_;
    BuildChain();
    num_links_ = waiting_.size();
    whole_ = elements_ - elements_ % chains_.block;
    RunBlocks();
    if (whole_ == elements_) return;
    for (const Waiting& one : waiting_) {
      Operand<C> in[2] = {one.in[0], one.in[1]};
      for (Operand<C>& operand : in) {
        if (!operand.scalar) operand.data += whole_;
      }
      RunLoop(one.instruction, in, one.out + whole_, elements_ - whole_);
    }
  }

  void RunBlocks() {
    for (int64_t at = 0; at < whole_; at += chains_.block) {
      chains_.run(chain_.data(), at);
      ahead_.Fetch(chains_.block * num_links_, all_work_);
      if (num_chains_ > 1) continue;
      for (const C* stream : streams_) {
        const char* from = reinterpret_cast<const char*>(stream + at) + kStreamAhead;
        for (size_t k = 0; k < chains_.block * sizeof(C); k += kCacheLine) {
          __builtin_prefetch(from + k, 0, 3);
        }
      }
    }
  }

  void RunLoop(const Instruction& instruction, const Operand<C>* in, C* out, int64_t n) const {
    if (instruction.opcode == Opcode::kSqrt) {
      PacketRoots<T>(instruction.opcode, in[0].data, out, n);
    } else {
      loops_.map(instruction, out, in, n);
    }
  }

  void BuildChain() {
    chain_.clear();
    const C* last = nullptr;  // what the registers hold
    for (size_t i = 0; i < waiting_.size(); ++i) {
      const Waiting& one = waiting_[i];
      const bool is_first = Is(one.in[0], last);
      const bool is_second = !is_first && one.instruction.num_operands == 2 && Is(one.in[1], last);
      if (!is_first && !is_second) Add(Verb::kLoad, one.in[0]);
      Add(VerbOf(one.instruction.opcode, is_second), one.in[is_second ? 0 : 1]);
      last = one.out;
      if (!one.brief || !TakesOnce(i + 1, last)) {
        chain_.push_back(chains_.Make(Verb::kStore, false, nullptr, one.out));
      }
    }
    chain_.push_back(chains_.Make(Verb::kEnd, false, nullptr));
    FindMoving();
  }

  void FindMoving() {
    moving_.clear();
    for (Link<C>& link : chain_) {
      const bool in = std::find(streams_.begin(), streams_.end(), link.in) != streams_.end();
      const bool out = std::find(streams_.begin(), streams_.end(), link.out) != streams_.end();
      if (in) moving_.push_back(&link.in);
      if (out) moving_.push_back(&link.out);
    }
  }

  void Add(Verb verb, const Operand<C>& in) {
    chain_.push_back(chains_.Make(verb, in.scalar, in.data));
  }

  static bool Is(const Operand<C>& in, const C* data) { return !in.scalar && in.data == data; }

  // Whether instruction `i` takes the registers, and does not read them from memory
  // too.
  bool TakesOnce(size_t i, const C* last) const {
    if (i == waiting_.size()) return false;
    const Waiting& one = waiting_[i];
    return one.instruction.num_operands == 1 || Is(one.in[0], last) != Is(one.in[1], last);
  }

  static Verb VerbOf(Opcode opcode, bool swapped) {
    switch (opcode) {
      case Opcode::kAdd:
        return Verb::kAdd;
      case Opcode::kSub:
        return swapped ? Verb::kFrom : Verb::kSub;
      case Opcode::kMul:
        return Verb::kMul;
      case Opcode::kDiv:
        return swapped ? Verb::kInto : Verb::kDiv;
      case Opcode::kSquare:
        return Verb::kSquare;
      default:
        return Verb::kSqrt;
    }
  }

  const Loops<T>& loops_;
  const Chains<C>& chains_;
  Ahead ahead_;
  int64_t all_work_ = 1;
  std::vector<Waiting> waiting_;
  int64_t elements_ = 0;  // of each that is waiting
  std::vector<Link<C>> chain_;
  int64_t num_links_ = 0;  // instructions of the chain
  int64_t whole_ = 0;      // elements that the chain does
  int num_chains_ = 0;     // since the tile began
  bool is_one_chain_ = false;  // and nothing else was done
  std::vector<C*> streams_;
  std::vector<C*> last_streams_;  // of the tile before
  std::vector<const C**> moving_;  // what a chain holds of streams
};

}  // namespace packed_update
}  // namespace picasso

#endif  // PICASSO_TF_CC_KERNELS_UPDATE_MAPPER_H_
