#include "protocols/orangefs/io_summary.h"

#include "base/byte_reader.h"
#include "base/result.h"
#include "protocols/orangefs/basic_fields.h"
#include "protocols/orangefs/io_fields.h"

namespace vpfs::orangefs {
namespace {

bool is_protocol_7(std::uint32_t version) {
  return version / 1000 == kProtocolVersion / 1000;
}

template <typename T>
T read(WireDecoder& in) {
  T value{};
  in(value);
  return value;
}

void skip_list(WireDecoder& in, std::size_t element_size) {
  (void)in.bytes(in.count(element_size) * element_size);
}

void skip_capability(WireDecoder& in) {
  (void)in.text();
  in.pad(8);  // fs_id and padding
  skip_list(in, 1);
  in.align8();
  in.pad(12);  // timeout and op_mask
  skip_list(in, sizeof(Handle));
  in.align8();
}

// Calls use(type, number, key, text) for each hint, until it returns true.
template <typename Use>
void walk_hints(WireDecoder& in, Use use) {
  for (std::uint32_t left = in.count(kMinWireSize<Hint>); left > 0 && !in.failed(); --left) {
    const std::uint32_t type = in.u32();
    std::uint64_t number = 0;
    std::string_view key;
    std::string_view text;
    if (is_wide_hint(type)) {
      number = read<std::uint64_t>(in);
    } else if (is_numeric_hint(type)) {
      number = in.u32();
    } else {
      key = in.text();
      text = in.text();
    }
    if (!in.failed() && use(type, number, key, text)) return;
  }
}

HintView view_hints(WireDecoder& in, std::span<const std::byte> payload) {
  const std::size_t begin = in.offset();
  walk_hints(
      in, [](std::uint32_t, std::uint64_t, std::string_view, std::string_view) { return false; });
  if (in.failed()) return {};
  return HintView(payload.subspan(begin, in.offset() - begin));
}

// Like Distribution, but borrows its text, so nothing is allocated.
Distribution distribution_without_text(WireDecoder& in, std::string_view& strips) {
  const std::optional<Distribution> found = distribution_named(in.text());
  if (!found) in.fail(DecodeError::bad_value);
  Distribution distribution = found.value_or(BasicDistribution{});
  if (std::holds_alternative<VarStrip>(distribution)) {
    strips = in.text();
  } else {
    std::visit([&in](auto& parameters) { in(parameters); }, distribution);
  }
  in.align8();
  return distribution;
}

WireElements view_elements(WireDecoder& in) {
  constexpr std::size_t kSize = kMinWireSize<FileRequestElement>;
  const std::size_t nested = in.count(kSize);
  in.pad(4);
  return WireElements(in.bytes((nested + 1) * kSize));
}

void summarise_body(WireDecoder& in, IoSummary& summary) {
  summary.datafile = read<Handle>(in);
  summary.fs_id = read<FsId>(in);
  if (summary.op == Op::io) in.pad(4);
  summary.io_type = read<IoType>(in);
  if (summary.op == Op::io) in.pad(4);  // flow_type
  summary.placement.server_nr = in.u32();
  summary.placement.server_ct = in.u32();
  summary.distribution = distribution_without_text(in, summary.strips);
  summary.elements = view_elements(in);
  summary.offset = read<std::int64_t>(in);
  summary.aggregate_size = read<std::int64_t>(in);
}

// Only SMALL_IO ends with the contents of a write.
void skip_contents(WireDecoder& in, IoType io_type) {
  const auto size = read<std::int64_t>(in);
  in.pad(4);
  if (!is_known(io_type)) in.fail(DecodeError::bad_value);
  if (io_type != IoType::write) return;
  if (size < 0) return in.fail(DecodeError::bad_value);
  (void)in.bytes(static_cast<std::size_t>(size));
}

}  // namespace

bool carries_credential(Op op) {
  switch (op) {
    case Op::create:
    case Op::remove:
    case Op::getattr:
    case Op::setattr:
    case Op::lookup_path:
    case Op::crdirent:
    case Op::mkdir:
    case Op::unstuff:
    case Op::tree_remove:
    case Op::tree_get_file_size:
    case Op::tree_getattr:
    case Op::tree_setattr:
      return true;
    default:
      return false;
  }
}

std::optional<std::string_view> HintView::named(std::string_view key) const {
  std::optional<std::string_view> found;
  WireDecoder in(bytes_);
  walk_hints(in,
             [&](std::uint32_t type, std::uint64_t, std::string_view name, std::string_view text) {
               if (is_numeric_hint(type) || name != key) return false;
               found = text;
               return true;
             });
  return found;
}

std::optional<std::uint64_t> HintView::number(HintType type) const {
  std::optional<std::uint64_t> found;
  WireDecoder in(bytes_);
  walk_hints(in,
             [&](std::uint32_t its_type, std::uint64_t number, std::string_view, std::string_view) {
               if (!is_numeric_hint(its_type) || its_type != static_cast<std::uint32_t>(type))
                 return false;
               found = number;
               return true;
             });
  return found;
}

IoFields IoSummary::fields() const {
  return {.distribution = distribution,
          .strips = strips,
          .placement = placement,
          .offset = offset,
          .size = aggregate_size};
}

std::optional<Op> peek_operation(std::span<const std::byte> payload) {
  ByteReader in(payload);
  const std::uint32_t version = in.u32();
  const std::uint32_t encoding = in.u32();
  const auto op = static_cast<Op>(in.i32());
  if (in.failed() || !is_protocol_7(version) || encoding != kEncodingLittleEndian) {
    return std::nullopt;
  }
  return op;
}

std::expected<IoSummary, DecodeError> summarise_io(std::span<const std::byte> payload) {
  WireDecoder in(payload);
  IoSummary summary;
  if (!is_protocol_7(in.u32())) in.fail(DecodeError::bad_version);
  if (in.u32() != kEncodingLittleEndian) in.fail(DecodeError::bad_encoding);
  in(summary.op, kPad4);
  if (summary.op != Op::io && summary.op != Op::small_io) in.fail(DecodeError::unknown_operation);
  skip_capability(in);
  summary.hints = view_hints(in, payload);
  summarise_body(in, summary);
  if (summary.op == Op::small_io) {
    skip_contents(in, summary.io_type);
  } else if (!is_known(summary.io_type)) {
    in.fail(DecodeError::bad_value);
  }
  VPFS_TRY(in.finish());
  summary.part = part_of(summary.fields(), summary.elements);
  return summary;
}

std::expected<HintView, DecodeError> hints_of_request(std::span<const std::byte> payload) {
  WireDecoder in(payload);
  if (!is_protocol_7(in.u32())) in.fail(DecodeError::bad_version);
  if (in.u32() != kEncodingLittleEndian) in.fail(DecodeError::bad_encoding);
  Op op = {};
  in(op, kPad4);
  skip_capability(in);
  const HintView hints = view_hints(in, payload);
  // The rest is the body.
  if (const auto result = in.finish(); !result && result.error() != DecodeError::trailing_bytes) {
    return std::unexpected(result.error());
  }
  return hints;
}

bool is_metadata(Op op) {
  switch (op) {
    case Op::create:
    case Op::remove:
    case Op::getattr:
    case Op::setattr:
    case Op::lookup_path:
    case Op::crdirent:
    case Op::rmdirent:
    case Op::chdirent:
    case Op::truncate:
    case Op::mkdir:
    case Op::readdir:
    case Op::flush:
    case Op::statfs:
    case Op::geteattr:
    case Op::seteattr:
    case Op::deleattr:
    case Op::listeattr:
    case Op::atomiceattr:
    case Op::listattr:
    case Op::unstuff:
      return true;
    default:
      return false;
  }
}

// Metadata requests are rare beside I/O, so a full decode is cheap enough.
std::optional<std::uint32_t> peek_uid(std::span<const std::byte> payload) {
  const std::optional<Op> op = peek_operation(payload);
  if (!op || !carries_credential(*op)) return std::nullopt;
  const auto request = decode_request(payload);
  if (!request) return std::nullopt;
  return std::visit(
      [](const auto& body) -> std::optional<std::uint32_t> {
        if constexpr (requires { body.credential; }) return body.credential.uid;
        return std::nullopt;
      },
      request->body);
}

Handle peek_handle(std::span<const std::byte> payload) {
  const auto request = decode_request(payload);
  if (!request) return 0;
  return std::visit(
      [](const auto& body) -> Handle {
        if constexpr (requires { body.handle; }) return body.handle;
        if constexpr (requires { body.dirdata_handle; }) return body.dirdata_handle;
        if constexpr (requires { body.starting_handle; }) return body.starting_handle;
        return 0;
      },
      request->body);
}

}  // namespace vpfs::orangefs
