#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "protocols/orangefs/message.h"
#include "test/support/servers/wire_peer.h"

// The messages that tests of the proxy exchange, and file data that identify themselves.
namespace vpfs::test {

// The bytes of a file after its `generation`-th write. Every block of 4 KiB has the file, its
// offset, the generation, and a checksum of the rest.
struct StampedFile {
  std::uint64_t file = 0;
  std::uint64_t generation = 0;

  // The `size` bytes at `offset`.
  [[nodiscard]] Buffer bytes(std::uint64_t offset, std::size_t size) const;
};
// Describes what is wrong with `bytes`, read at `offset`; empty if nothing is.
[[nodiscard]] std::string problem_of(std::span<const std::byte> bytes, const StampedFile& expected,
                                     std::uint64_t offset);

struct IoSpec {
  orangefs::IoType type = orangefs::IoType::read;
  std::int64_t offset = 0;
  std::int64_t size = 65536;
  std::string job;                // the hint jobid; "" sends none
  orangefs::Handle datafile = 0;  // 0: the datafile that all tests use
};

[[nodiscard]] Buffer io_request(orangefs::Tag tag, const IoSpec& spec);
[[nodiscard]] Buffer small_read_request(orangefs::Tag tag, const IoSpec& spec);
[[nodiscard]] Buffer small_write_request(orangefs::Tag tag, const IoSpec& spec, const Buffer& data);
[[nodiscard]] Buffer getattr_request(orangefs::Tag tag);
[[nodiscard]] Buffer getconfig_request(orangefs::Tag tag);

[[nodiscard]] Buffer io_response(orangefs::Tag tag, std::int64_t bstream_size);
[[nodiscard]] Buffer small_read_response(orangefs::Tag tag, const Buffer& data);
[[nodiscard]] Buffer small_write_response(orangefs::Tag tag, std::int64_t written);
[[nodiscard]] Buffer write_completion(orangefs::Tag tag, std::int64_t written);
[[nodiscard]] Buffer getattr_response(orangefs::Tag tag);
// The configuration text sets ClientJobBMITimeoutSecs.
[[nodiscard]] Buffer getconfig_response(orangefs::Tag tag, unsigned client_timeout_seconds);
// A request of `size` bytes of payload that is not held, and passes before the rest of it is there.
[[nodiscard]] Buffer passing_request(orangefs::Tag tag, std::size_t size);
// Flow data under a tag. Their size decides between EAGER and RENDEZVOUS.
[[nodiscard]] Buffer data_message(orangefs::Tag tag, std::span<const std::byte> data);

[[nodiscard]] std::optional<orangefs::Op> operation_of_request(const WireMessage& message);
// Whether `message` is the protocol's response to a failed `op`.
[[nodiscard]] bool is_error_response(const WireMessage& message, orangefs::Op op);

}  // namespace vpfs::test
