#pragma once

#include <cstdint>
#include <vector>

#include "protocols/orangefs/message.h"

namespace vpfs::client {

// An encoded IO or SMALL_IO request of one file. Requests to its datafiles and for their ranges
// differ in a few numbers only, which are written into a copy.
class RequestTemplate {
 public:
  struct Io {
    orangefs::Handle datafile = 0;
    std::uint32_t server_nr = 0;
    std::int64_t offset = 0;
    std::int64_t aggregate_size = 0;
    std::uint64_t data_size = 0;  // of what follows the message (SMALL_IO writes)
  };

  RequestTemplate() = default;
  // The body is an IoRequestBody or a SmallIoRequest without data.
  explicit RequestTemplate(const orangefs::Request& request);

  // Whether servers take the request with so many bytes of data behind it.
  [[nodiscard]] bool fits(std::uint64_t data_size) const;
  // The message without its data.
  [[nodiscard]] std::vector<std::byte> message(orangefs::Tag tag, const Io& io) const;

 private:
  std::vector<std::byte> bytes_;
  std::size_t body_at_ = 0;
  bool small_ = false;
};

}  // namespace vpfs::client
