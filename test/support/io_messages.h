#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "protocols/orangefs/message.h"
#include "test/support/wire_peer.h"

// The messages that tests of the proxy exchange, and data that tell where they belong.
namespace vpfs::test {

// A file's bytes as they were written for the `generation`-th time: every block of 4 KiB carries
// file, offset, generation and a checksum of the rest, whatever piece of it is looked at.
struct StampedFile {
  std::uint64_t file = 0;
  std::uint64_t generation = 0;

  // The `size` bytes at `offset`.
  [[nodiscard]] Buffer bytes(std::uint64_t offset, std::size_t size) const;
};
// What is wrong with `bytes`, which were read at `offset`; empty when nothing is.
[[nodiscard]] std::string problem_of(std::span<const std::byte> bytes, const StampedFile& expected,
                                     std::uint64_t offset);

struct IoSpec {
  orangefs::IoType type = orangefs::IoType::read;
  std::int64_t offset = 0;
  std::int64_t size = 65536;
  std::string job;                // the hint jobid; "" sends none
  orangefs::Handle datafile = 0;  // zero: the one that all tests use
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
// With ClientJobBMITimeoutSecs in the text.
[[nodiscard]] Buffer getconfig_response(orangefs::Tag tag, unsigned client_timeout_seconds);
// Raw bytes under a tag, EAGER or RENDEZVOUS by their size.
[[nodiscard]] Buffer data_message(orangefs::Tag tag, std::span<const std::byte> data);

[[nodiscard]] std::optional<orangefs::Op> operation_of_request(const WireMessage& message);
// Whether it is the response of a failed `op`, in the protocol's terms.
[[nodiscard]] bool is_error_response(const WireMessage& message, orangefs::Op op);

}  // namespace vpfs::test
