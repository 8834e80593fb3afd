#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

#include "protocols/orangefs/message.h"
#include "protocols/orangefs/striping.h"

// The fields of IO and SMALL_IO requests that a proxy needs, found without allocating.
namespace vpfs::orangefs {

// The hints of a message, borrowed from it.
class HintView {
 public:
  HintView() = default;
  explicit HintView(std::span<const std::byte> bytes) : bytes_(bytes) {}
  // The text of the first hint of that name ("jobid").
  [[nodiscard]] std::optional<std::string_view> named(std::string_view key) const;
  // The value of a numeric hint.
  [[nodiscard]] std::optional<std::uint64_t> number(HintType type) const;
  // The bytes of all hints, count included: equal bytes are equal hints.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

// Borrows from its payload.
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

// Whether programs cause this operation, on names and attributes of one server. Each such operation
// has exactly one answer. Excluded are I/O, mounting and administration, operations between servers
// (their time-outs are shorter) and those that make a server ask others (servers could wait for
// each other's slots).
[[nodiscard]] bool is_metadata(Op op);
// Whether requests of that operation carry a credential.
[[nodiscard]] bool carries_credential(Op op);
// The uid of the credential in a request payload that carries one; nothing for others or when
// malformed.
[[nodiscard]] std::optional<std::uint32_t> peek_uid(std::span<const std::byte> payload);
// The handle whose queue a metadata request takes at the server; zero for one that takes none or is
// malformed.
[[nodiscard]] Handle peek_handle(std::span<const std::byte> payload);

}  // namespace vpfs::orangefs
