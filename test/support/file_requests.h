#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "protocols/orangefs/basic_types.h"

// Datatypes for tests, built as OrangeFS's client library does, with the bytes that they select.
namespace vpfs::test {

class DatatypeBuilder {
 public:
  // One byte.
  DatatypeBuilder();
  [[nodiscard]] DatatypeBuilder contiguous(std::int32_t count) const;
  // `count` blocks of `length` elements. Blocks start `stride` bytes apart.
  [[nodiscard]] DatatypeBuilder hvector(std::int32_t count, std::int32_t length,
                                        std::int64_t stride) const;
  [[nodiscard]] DatatypeBuilder resized(std::int64_t lower_bound, std::int64_t extent) const;

  struct Member {
    std::int32_t length = 1;
    std::int64_t displacement = 0;  // in bytes
    std::shared_ptr<const DatatypeBuilder> type;
  };
  // REQUIRES: at least one member.
  [[nodiscard]] static DatatypeBuilder structure(const std::vector<Member>& members);
  // A structure whose members have this type.
  [[nodiscard]] DatatypeBuilder hindexed(const std::vector<std::int32_t>& lengths,
                                         const std::vector<std::int64_t>& displacements) const;

  [[nodiscard]] std::int64_t extent() const;
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(bytes_.size()); }
  [[nodiscard]] int depth() const;
  // The offsets of its bytes from its start, in order.
  [[nodiscard]] const std::vector<std::int64_t>& bytes() const { return bytes_; }
  // The datatype as the protocol sends it.
  [[nodiscard]] orangefs::FileRequest request() const;

 private:
  struct Element;
  using ElementPtr = std::shared_ptr<const Element>;
  struct Element {
    orangefs::FileRequestElement fields;
    ElementPtr ereq;
    ElementPtr sreq;
  };

  DatatypeBuilder(ElementPtr head, std::vector<std::int64_t> bytes);
  [[nodiscard]] static Element block_of(const ElementPtr& old, std::int64_t offset,
                                        std::int32_t length, std::int64_t stride,
                                        std::int32_t count);

  ElementPtr head_;
  std::vector<std::int64_t> bytes_;
};

// The logical bytes [offset, offset + size) of the stream that repetitions of a type make.
[[nodiscard]] std::vector<std::int64_t> stream_bytes(const DatatypeBuilder& type,
                                                     std::int64_t offset, std::int64_t size);

}  // namespace vpfs::test
