#pragma once

#include <cstdint>
#include <vector>

#include "protocols/orangefs/message.h"

namespace vpfs::client {

// An encoded IO or SMALL_IO request of one datafile. Requests for other ranges of it differ in a
// few numbers only, which are written into a copy.
class RequestTemplate {
 public:
  RequestTemplate() = default;
  // The body is an IoRequestBody or a SmallIoRequest without data.
  explicit RequestTemplate(const orangefs::Request& request);

  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  // The message without the `data_size` bytes that follow it (SMALL_IO writes).
  [[nodiscard]] std::vector<std::byte> message(orangefs::Tag tag, std::int64_t offset,
                                               std::int64_t aggregate_size,
                                               std::uint64_t data_size) const;

 private:
  std::vector<std::byte> bytes_;
  bool small_ = false;
};

}  // namespace vpfs::client
