// Datatype::count(). The levels of a datatype are loops. The longest of nested loops over one run
// is counted in closed form, the others round by round.

#include <algorithm>
#include <utility>

#include "protocols/orangefs/file_request.h"

namespace vpfs::orangefs {
namespace {

// Partial sums of positions may wrap around; the results are in range.
using Position = std::uint64_t;

struct Loop {
  Position stride = 0;
  std::int64_t count = 1;
};

// Each loop has at least two rounds, so their number is limited by the bits of the byte count.
class Loops {
 public:
  void push(std::int64_t stride, std::int64_t count) {
    if (count > 1) loops_[size_++] = {.stride = static_cast<Position>(stride), .count = count};
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  void cut(std::size_t size) { size_ = size; }
  void remove(std::size_t i) {
    std::move(begin() + i + 1, end(), begin() + i);
    --size_;
  }
  [[nodiscard]] Loop& operator[](std::size_t i) { return loops_[i]; }
  [[nodiscard]] Loop* begin() { return loops_.data(); }
  [[nodiscard]] Loop* end() { return loops_.data() + size_; }

 private:
  std::array<Loop, 64> loops_;
  std::size_t size_ = 0;
};

class Counter {
 public:
  Counter(std::span<const DatatypeNode> nodes, const DatafileLayout& layout, std::int64_t end)
      : nodes_(nodes), layout_(layout), end_(end) {}

  // Adds the datafile's share of the first `bytes` bytes of repetitions of a type at `base`.
  void add_first(const DatatypeNode& type, Position base, std::int64_t bytes) {
    if (bytes == 0 || !step()) return;
    if (type.plain_type) return add_run(base + static_cast<Position>(type.type_offset), bytes);
    const std::int64_t whole = bytes / type.type_bytes;
    if (whole > 0) {
      const std::size_t outer = loops_.size();
      loops_.push(type.extent, whole);
      add_type(type, base);
      loops_.cut(outer);
    }
    add_part(type, base + at(type.extent, whole), bytes % type.type_bytes);
  }

  [[nodiscard]] std::optional<std::int64_t> bytes() const {
    if (steps_ > kMostSteps) return std::nullopt;
    return static_cast<std::int64_t>(bytes_);
  }

 private:
  [[nodiscard]] static Position at(std::int64_t stride, std::int64_t count) {
    return static_cast<Position>(stride) * static_cast<Position>(count);
  }
  [[nodiscard]] bool step(std::int64_t steps = 1) {
    steps_ = std::min(steps_ + steps, kMostSteps + 1);
    return steps_ <= kMostSteps;
  }
  [[nodiscard]] const DatatypeNode& node(std::int16_t index) const {
    return nodes_[static_cast<std::size_t>(index)];
  }

  // Adds the first `bytes` bytes of one repetition, which has more.
  void add_part(const DatatypeNode& type, Position base, std::int64_t bytes) {
    for (const DatatypeNode* part = &type; bytes > 0 && step(); part = &node(part->next)) {
      if (part->block_bytes > 0) {
        const std::int64_t whole = std::min<std::int64_t>(part->blocks, bytes / part->block_bytes);
        add_blocks(*part, base, whole);
        bytes -= whole * part->block_bytes;
        if (whole < part->blocks) {
          const Position begin =
              base + static_cast<Position>(part->offset) + at(part->stride, whole);
          if (part->plain_block)
            add_run(begin, bytes);
          else
            add_first(node(part->element), begin, bytes);
          return;
        }
      }
    }
  }

  void add_type(const DatatypeNode& type, Position base) {
    for (const DatatypeNode* part = &type; step(); part = &node(part->next)) {
      if (part->block_bytes > 0) add_blocks(*part, base, part->blocks);
      if (part->next < 0) return;
    }
  }

  void add_blocks(const DatatypeNode& part, Position base, std::int64_t count) {
    if (count == 0) return;
    const std::size_t outer = loops_.size();
    loops_.push(part.stride, count);
    const Position begin = base + static_cast<Position>(part.offset);
    if (part.plain_block) {
      add_run(begin, part.block_bytes);
    } else if (const DatatypeNode& type = node(part.element); type.plain_type) {
      add_run(begin + static_cast<Position>(type.type_offset), part.block_bytes);
    } else {
      loops_.push(type.extent, part.block_elements);
      add_type(type, begin);
    }
    loops_.cut(outer);
  }

  // Adds a run in all rounds of the current loops.
  void add_run(Position begin, std::int64_t size) {
    Loops loops = loops_;
    std::uint64_t times = 1;
    simplify(loops, begin, size, times);
    add_rounds(loops, begin, size, times);
  }

  [[nodiscard]] static std::int64_t as_signed(Position position) {
    return static_cast<std::int64_t>(position);
  }

  // Makes strides positive and sorts them; joins runs and loops that continue each other. `times`
  // takes the rounds of loops with a stride of zero.
  static void simplify(Loops& loops, Position& begin, std::int64_t& size, std::uint64_t& times) {
    for (std::size_t i = loops.size(); i-- > 0;) {
      Loop& loop = loops[i];
      if (as_signed(loop.stride) < 0) {
        begin += loop.stride * static_cast<Position>(loop.count - 1);
        loop.stride = -loop.stride;
      } else if (loop.stride == 0) {
        times *= static_cast<std::uint64_t>(loop.count);
        loops.remove(i);
      }
    }
    std::ranges::sort(loops, {}, &Loop::stride);
    while (loops.size() > 0 && loops[0].stride == static_cast<Position>(size)) {
      size *= loops[0].count;
      loops.remove(0);
    }
    for (std::size_t i = 1; i < loops.size();) {
      Loop& inner = loops[i - 1];
      if (loops[i].stride == inner.stride * static_cast<Position>(inner.count)) {
        inner.count *= loops[i].count;
        loops.remove(i);
      } else {
        ++i;
      }
    }
  }

  void add_rounds(Loops& loops, Position begin, std::int64_t size, std::uint64_t times) {
    Loop counted{.stride = 1, .count = 1};
    if (loops.size() > 0) {
      Loop* const longest = std::ranges::max_element(loops, {}, &Loop::count);
      counted = *longest;
      loops.remove(static_cast<std::size_t>(longest - loops.begin()));
    }
    std::array<std::int64_t, 64> round = {};
    for (;;) {
      const Runs runs{.begin = as_signed(begin),
                      .stride = as_signed(counted.stride),
                      .count = counted.count,
                      .size = size};
      if (!step(layout_.steps(runs))) return;
      bytes_ += times * in(runs);
      std::size_t i = 0;
      for (; i < loops.size(); ++i) {
        begin += loops[i].stride;
        if (++round[i] < loops[i].count) break;
        begin -= loops[i].stride * static_cast<Position>(loops[i].count);
        round[i] = 0;
      }
      if (i == loops.size()) return;
    }
  }

  // Counts the runs up to the end.
  [[nodiscard]] std::uint64_t in(Runs runs) const {
    const std::int64_t last = runs.begin + runs.stride * (runs.count - 1);
    if (last + runs.size <= end_) return static_cast<std::uint64_t>(layout_.in_runs(runs));
    if (runs.begin >= end_) return 0;
    // The end cuts at most one run, since they are in order.
    const std::int64_t fit = end_ - runs.size - runs.begin;
    runs.count = fit < 0 ? 0 : fit / runs.stride + 1;
    const std::int64_t cut = runs.begin + runs.stride * runs.count;
    const std::int64_t rest = cut < end_ ? layout_.below(end_) - layout_.below(cut) : 0;
    return static_cast<std::uint64_t>(layout_.in_runs(runs) + rest);
  }

  std::span<const DatatypeNode> nodes_;
  const DatafileLayout& layout_;
  std::int64_t end_;
  Loops loops_;
  std::int64_t steps_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::optional<std::int64_t> Datatype::count(const Range& range, const DatafileLayout& layout,
                                            std::int64_t end) const {
  const DatatypeNode& type = nodes_[0];
  const std::int64_t repetition = range.offset / bytes();
  const std::int64_t before = range.offset % bytes();
  const auto base = static_cast<Position>(repetition) * static_cast<Position>(type.extent);
  Counter with(nodes_, layout, end);
  with.add_first(type, base, before + range.size);
  Counter without(nodes_, layout, end);
  without.add_first(type, base, before);
  if (!with.bytes() || !without.bytes()) return std::nullopt;
  return *with.bytes() - *without.bytes();
}

}  // namespace vpfs::orangefs
