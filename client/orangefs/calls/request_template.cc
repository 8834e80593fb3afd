#include "client/orangefs/calls/request_template.h"

#include <array>
#include <variant>

#include "base/check.h"

namespace vpfs::client {
namespace {

constexpr std::size_t kTagAt = 8;
constexpr std::size_t kPayloadSizeAt = 16;
// From the start of the body.
constexpr std::size_t kDatafileAt = 0;
constexpr std::size_t kIoServerAt = 24;
constexpr std::size_t kSmallIoServerAt = 16;
// From the end. IO ends with offset, aggregate_size; SMALL_IO with those, total_bytes and 4 pad
// bytes.
constexpr std::size_t kIoTail = 16;
constexpr std::size_t kSmallIoTail = 28;

template <typename Number>
void store(std::vector<std::byte>& bytes, std::size_t at, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    bytes[at + i] = static_cast<std::byte>(value >> (8 * i) & 0xffU);
  }
}

}  // namespace

RequestTemplate::RequestTemplate(const orangefs::Request& request)
    : small_(std::holds_alternative<orangefs::SmallIoRequest>(request.body)) {
  const orangefs::Request without_body{
      .capability = request.capability, .hints = request.hints, .body = orangefs::EmptyRequest{}};
  body_at_ = orangefs::request_message(0, without_body).size();
  bytes_ =
      small_ ? orangefs::small_io_request_head(0, request) : orangefs::request_message(0, request);
}

bool RequestTemplate::fits(std::uint64_t data_size) const {
  return bytes_.size() - orangefs::kBmiHeaderSize + data_size <= orangefs::kMaxEagerSize;
}

std::vector<std::byte> RequestTemplate::message(orangefs::Tag tag, const Io& io) const {
  VPFS_ASSERT(!bytes_.empty() && (small_ || io.data_size == 0));
  std::vector<std::byte> bytes = bytes_;
  const std::size_t tail = bytes.size() - (small_ ? kSmallIoTail : kIoTail);
  store(bytes, kTagAt, tag);
  store(bytes, kPayloadSizeAt, bytes.size() - orangefs::kBmiHeaderSize + io.data_size);
  store(bytes, body_at_ + kDatafileAt, io.datafile);
  store(bytes, body_at_ + (small_ ? kSmallIoServerAt : kIoServerAt), io.server_nr);
  store(bytes, tail, static_cast<std::uint64_t>(io.offset));
  store(bytes, tail + 8, static_cast<std::uint64_t>(io.aggregate_size));
  if (small_) store(bytes, tail + 16, io.data_size);
  return bytes;
}

}  // namespace vpfs::client
