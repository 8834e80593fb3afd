#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>

namespace vpfs {

// What a request may show about its owner, besides its client's address and its operation.
enum class Attribute : std::uint8_t {
  hint,
  file_system,
  uid,
  node,
  target,
  owner,
  directory,
  metadata,  // requests on names and attributes
  // The id of the request's job, from the wire or from a registration.
  jobid,
  gid,
  account,
};

// A set of attributes.
class Attributes {
 public:
  constexpr Attributes() = default;
  constexpr Attributes(std::initializer_list<Attribute> attributes) {
    for (const Attribute each : attributes) add(each);
  }

  [[nodiscard]] constexpr bool has(Attribute attribute) const {
    return (bits_ >> std::to_underlying(attribute) & 1U) != 0;
  }
  constexpr void add(Attribute attribute) { bits_ |= 1U << std::to_underlying(attribute); }

 private:
  std::uint32_t bits_ = 0;
};

}  // namespace vpfs
