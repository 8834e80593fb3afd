#include "protocols/orangefs/file_request.h"

#include <algorithm>

#include "protocols/orangefs/basic_fields.h"

namespace vpfs::orangefs {
namespace {

constexpr std::size_t kElementSize = kMinWireSize<FileRequestElement>;

// Saturating numbers: too large for any file, but small enough to add.
class Bounded {
 public:
  [[nodiscard]] std::int64_t sum(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    return kept(__builtin_add_overflow(a, b, &result), result);
  }
  [[nodiscard]] std::int64_t product(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    return kept(__builtin_mul_overflow(a, b, &result), result);
  }
  [[nodiscard]] std::int64_t difference(std::int64_t a, std::int64_t b) {
    std::int64_t result = 0;
    return kept(__builtin_sub_overflow(a, b, &result), result);
  }
  [[nodiscard]] bool exceeded() const { return exceeded_; }

 private:
  [[nodiscard]] std::int64_t kept(bool overflow, std::int64_t result) {
    constexpr std::int64_t kMost = DatafileLayout::kMostLimit;
    if (!overflow && result >= -kMost && result <= kMost) return result;
    exceeded_ = true;
    return 0;
  }

  bool exceeded_ = false;
};

// The bytes of a block or a type and their order.
struct Shape {
  std::int64_t bytes = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
  std::int64_t runs = 0;
  bool ordered = true;

  void move(std::int64_t distance, Bounded& bounded) {
    low = bounded.sum(low, distance);
    high = bounded.sum(high, distance);
  }
  void repeat(std::int64_t count, std::int64_t distance, Bounded& bounded) {
    if (count == 1) return;
    ordered = ordered && distance >= high - low;
    const std::int64_t reach = bounded.product(count - 1, distance);
    low = bounded.sum(low, std::min<std::int64_t>(reach, 0));
    high = bounded.sum(high, std::max<std::int64_t>(reach, 0));
    bytes = bounded.product(bytes, count);
    runs = bounded.product(runs, count);
  }
  void append(const Shape& other, Bounded& bounded) {
    if (other.bytes == 0) return;
    if (bytes == 0) {
      *this = other;
      return;
    }
    ordered = ordered && other.ordered && other.low >= high;
    low = std::min(low, other.low);
    high = std::max(high, other.high);
    bytes = bounded.sum(bytes, other.bytes);
    runs = bounded.sum(runs, other.runs);
  }
};

Shape plain_run(std::int64_t begin, std::int64_t bytes, Bounded& bounded) {
  return {.bytes = bytes, .low = begin, .high = bounded.sum(begin, bytes), .runs = 1};
}

// OrangeFS's test of whether elements of this type follow each other without holes.
bool is_packed(const FileRequestElement& type) {
  return type.num_contig_chunks == 1 &&
         static_cast<std::uint64_t>(type.aggregate_size) ==
             static_cast<std::uint64_t>(type.ub) - static_cast<std::uint64_t>(type.lb);
}
// OrangeFS's test of whether any number of this type is one run.
template <typename Elements>
bool is_plain(const FileRequestElement& type, const Elements& elements) {
  if (type.ereq < 0) return true;
  return static_cast<std::uint64_t>(type.aggregate_size) ==
             static_cast<std::uint64_t>(type.ub) - static_cast<std::uint64_t>(type.lb) &&
         elements[static_cast<std::size_t>(type.ereq)].num_contig_chunks == 1;
}

template <typename Elements>
bool has(const Elements& elements, std::int32_t index) {
  return index >= 0 && static_cast<std::size_t>(index) < elements.size();
}

template <typename Elements>
std::optional<std::int64_t> start_of_dense(const Elements& elements) {
  if (elements.size() == 0) return std::nullopt;
  FileRequestElement type = elements[0];
  if (type.ereq >= 0 && !has(elements, type.ereq)) return std::nullopt;
  if (!is_plain(type, elements) || type.aggregate_size <= 0) return std::nullopt;
  Bounded bounded;
  std::int64_t start = bounded.sum(type.offset, 0);
  // Each element can be nested in another only once.
  for (std::size_t left = elements.size(); type.ereq >= 0; --left) {
    if (left == 0 || !has(elements, type.ereq)) return std::nullopt;
    type = elements[static_cast<std::size_t>(type.ereq)];
    start = bounded.sum(start, type.offset);
  }
  if (bounded.exceeded() || start < 0) return std::nullopt;
  return start;
}

template <typename Elements>
class Checker {
 public:
  Checker(const Elements& elements, Datatype::Storage& nodes)
      : elements_(elements), nodes_(nodes) {}

  [[nodiscard]] bool check() {
    if (elements_.size() == 0 || elements_.size() > kMostElements || !check_type(0)) return false;
    const FileRequestElement whole = elements_[0];
    // The data server assumes that a repetition has `aggregate_size` bytes when it counts them.
    // Types with empty blocks may be longer. It gives up past `depth`.
    return whole.aggregate_size > 0 && nodes_[0].type_bytes >= whole.aggregate_size &&
           facts_[0].levels <= whole.depth && !bounded_.exceeded();
  }

 private:
  enum class State : std::uint8_t { unseen, entered, checked };
  struct Facts {
    State state = State::unseen;
    bool loaded = false;
    std::int32_t levels = 1;         // of elements that are not plain, from this one down
    std::int64_t offsets_below = 0;  // of the elements that this one is of, down to the bytes
  };

  [[nodiscard]] bool count_step() { return ++steps_ <= kMostSteps && !bounded_.exceeded(); }

  // Checks the type that begins with this element.
  [[nodiscard]] bool check_type(std::size_t head) {
    Facts& facts = facts_[head];
    if (facts.state != State::unseen) return facts.state == State::checked;
    facts.state = State::entered;
    const FileRequestElement type = elements_[head];
    if (!load(head, type)) return false;
    DatatypeNode& node = nodes_[head];
    node.extent = bounded_.difference(type.ub, type.lb);
    node.plain_type = is_plain(type, elements_);
    node.type_offset = bounded_.sum(type.offset, facts.offsets_below);
    Shape whole;
    if (node.plain_type) {
      if (type.aggregate_size < 0) return false;
      whole = plain_run(node.type_offset, type.aggregate_size, bounded_);
    } else if (!check_sequence(head, type, whole)) {
      return false;
    }
    node.type_bytes = whole.bytes;
    node.low = whole.low;
    node.high = whole.high;
    node.runs = whole.runs;
    node.ordered = whole.ordered;
    facts.state = State::checked;
    return !bounded_.exceeded();
  }

  // The elements that follow each other in a type.
  [[nodiscard]] bool check_sequence(std::size_t head, FileRequestElement element, Shape& whole) {
    for (std::size_t at = head;;) {
      Shape blocks = shape_of_block(at, element);
      if (blocks.bytes < 0) return false;
      facts_[head].levels = std::max(
          facts_[head].levels,
          nodes_[at].plain_block ? 1 : 1 + facts_[static_cast<std::size_t>(element.ereq)].levels);
      blocks.repeat(nodes_[at].blocks, element.stride, bounded_);
      whole.append(blocks, bounded_);
      if (element.sreq < 0) return true;
      if (!has(elements_, element.sreq)) return false;
      at = static_cast<std::size_t>(element.sreq);
      element = elements_[at];
      if (element.ereq < 0 || !load(at, element)) return false;
    }
  }

  // Reads its own fields after those of the nested type.
  [[nodiscard]] bool load(std::size_t at, const FileRequestElement& element) {
    if (!count_step() || element.num_ereqs < 0) return false;
    if (facts_[at].loaded) return true;
    DatatypeNode& node = nodes_[at];
    node = {.offset = bounded_.sum(element.offset, 0),
            .stride = bounded_.sum(element.stride, 0),
            // The data server runs each loop once before it checks the count.
            .blocks = std::max(element.num_blocks, 1),
            .block_elements = element.num_ereqs,
            .next = static_cast<std::int16_t>(has(elements_, element.sreq) ? element.sreq : -1)};
    if (element.ereq < 0) return facts_[at].loaded = true;
    if (!has(elements_, element.ereq)) return false;
    const auto below = static_cast<std::size_t>(element.ereq);
    if (!check_type(below)) return false;
    const FileRequestElement type = elements_[below];
    node.element = static_cast<std::int16_t>(below);
    node.plain_block = is_packed(type);
    facts_[at].offsets_below = bounded_.sum(type.offset, facts_[below].offsets_below);
    if (node.plain_block) node.offset = bounded_.sum(node.offset, facts_[at].offsets_below);
    if (!node.plain_block && !nodes_[below].plain_type) {
      node.block_elements = std::max(element.num_ereqs, 1);
    }
    return facts_[at].loaded = true;
  }

  // REQUIRES: load(at), of an element that is not bytes itself.
  [[nodiscard]] Shape shape_of_block(std::size_t at, const FileRequestElement& element) {
    const auto below = static_cast<std::size_t>(element.ereq);
    DatatypeNode& node = nodes_[at];
    const DatatypeNode& inner = nodes_[below];
    Shape block;
    if (node.plain_block) {
      const std::int64_t size = elements_[below].aggregate_size;
      block = plain_run(node.offset, bounded_.product(size, node.block_elements), bounded_);
    } else if (inner.plain_type) {
      block = plain_run(inner.type_offset, bounded_.product(inner.type_bytes, node.block_elements),
                        bounded_);
      block.move(node.offset, bounded_);
    } else {
      block = {.bytes = inner.type_bytes,
               .low = inner.low,
               .high = inner.high,
               .runs = inner.runs,
               .ordered = inner.ordered};
      block.repeat(node.block_elements, inner.extent, bounded_);
      block.move(node.offset, bounded_);
    }
    node.block_bytes = block.bytes;
    return block;
  }

  const Elements& elements_;
  Datatype::Storage& nodes_;
  std::array<Facts, kMostElements> facts_ = {};
  std::int64_t steps_ = 0;
  Bounded bounded_;
};

template <typename Elements>
std::optional<Datatype> checked(const Elements& elements, Datatype::Storage& storage) {
  if (!Checker<Elements>(elements, storage).check()) return std::nullopt;
  return Datatype(std::span<const DatatypeNode>(storage).first(elements.size()));
}

}  // namespace

std::size_t WireElements::size() const {
  return bytes_.size() / kElementSize;
}

FileRequestElement WireElements::operator[](std::size_t i) const {
  WireDecoder in(bytes_.subspan(i * kElementSize, kElementSize));
  FileRequestElement element;
  in(element);
  return element;
}

std::optional<std::int64_t> dense_start(const WireElements& elements) {
  return start_of_dense(elements);
}
std::optional<std::int64_t> dense_start(std::span<const FileRequestElement> elements) {
  return start_of_dense(elements);
}

std::optional<Datatype> Datatype::check(const WireElements& elements, Storage& storage) {
  return checked(elements, storage);
}
std::optional<Datatype> Datatype::check(std::span<const FileRequestElement> elements,
                                        Storage& storage) {
  return checked(elements, storage);
}

std::optional<Datatype::Span> Datatype::span(const Range& range, std::int64_t limit) const {
  const DatatypeNode& type = nodes_[0];
  const std::int64_t first = range.offset / bytes();
  const std::int64_t last = (range.offset + (range.size - 1)) / bytes();
  Bounded bounded;
  Shape all{
      .bytes = 0, .low = type.low, .high = type.high, .runs = type.runs, .ordered = type.ordered};
  all.move(bounded.product(first, type.extent), bounded);
  all.repeat(last - first + 1, type.extent, bounded);
  if (bounded.exceeded() || all.low < 0 || all.high > limit) return std::nullopt;
  return Span{.low = all.low, .high = all.high, .ordered = all.ordered, .runs = all.runs};
}

Datatype::Run Datatype::run_at(std::int64_t at) const {
  const DatatypeNode* type = nodes_.data();
  std::int64_t base = 0;
  for (;;) {
    base += at / type->type_bytes * type->extent;
    at %= type->type_bytes;
    const DatatypeNode* node = type;
    while (at >= node->block_bytes * node->blocks) {
      at -= node->block_bytes * node->blocks;
      node = &nodes_[static_cast<std::size_t>(node->next)];
    }
    base += node->offset + at / node->block_bytes * node->stride;
    at %= node->block_bytes;
    if (node->plain_block) return {.logical = base + at, .size = node->block_bytes - at};
    type = &nodes_[static_cast<std::size_t>(node->element)];
    if (type->plain_type) {
      return {.logical = base + type->type_offset + at, .size = node->block_bytes - at};
    }
  }
}

}  // namespace vpfs::orangefs
