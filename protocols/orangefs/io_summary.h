#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

#include "protocols/orangefs/message.h"
#include "protocols/orangefs/striping.h"

// What a proxy needs of IO and SMALL_IO requests, found without allocating.
namespace vpfs::orangefs {

// The hints of a message, borrowed from it.
class HintView {
 public:
  HintView() = default;
  explicit HintView(std::span<const std::byte> bytes) : bytes_(bytes) {}
  // The text of a named hint ("jobid"), the first if there are several.
  [[nodiscard]] std::optional<std::string_view> named(std::string_view key) const;
  // The value of a numeric hint.
  [[nodiscard]] std::optional<std::uint64_t> number(HintType type) const;
  // The bytes of all hints, count included: equal bytes are equal hints.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// Borrows from the payload it was made of.
struct IoSummary {
  Op op = Op::io;  // io or small_io
  IoType io_type = IoType::read;
  FsId fs_id = 0;
  Handle datafile = 0;
  HintView hints;
  IoPart part;

  Distribution distribution;  // without the text of a varstrip_dist
  std::string_view strips;    // that text
  Placement placement;
  WireElements elements;
  std::int64_t offset = 0;
  std::int64_t aggregate_size = 0;

  // Borrows from the summary.
  [[nodiscard]] IoFields fields() const;
};

// The operation of a request payload, from its first 12 bytes; nothing when the generic header is
// not that of protocol 7.x or the payload is shorter.
[[nodiscard]] std::optional<Op> peek_operation(std::span<const std::byte> payload);

// Summarises the payload of an IO or SMALL_IO request (checked like decode_request, field by
// field).
[[nodiscard]] std::expected<IoSummary, DecodeError> summarise_io(
    std::span<const std::byte> payload);

// The hints of any request; an error when its head, up to them, is malformed.
[[nodiscard]] std::expected<HintView, DecodeError> hints_of_request(
    std::span<const std::byte> payload);

// Whether an operation is one that programs cause on names and attributes of one server: none of
// I/O, mounting or administration, none that servers send to each other (whose time-outs are
// shorter), and none that makes a server ask others (which could wait for each other's slots). Each
// has exactly one answer.
[[nodiscard]] bool is_metadata(Op op);
// Whether a server answers every request of that operation: not those that are responses only, that
// servers keep to themselves, or that no server knows.
[[nodiscard]] bool has_answer(Op op);
// Whether requests of that operation say who asks.
[[nodiscard]] bool carries_credential(Op op);
// The uid of the credential in a request payload that carries one; nothing for others or when
// malformed.
[[nodiscard]] std::optional<std::uint32_t> peek_uid(std::span<const std::byte> payload);

}  // namespace vpfs::orangefs
