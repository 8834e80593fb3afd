#include "protocols/orangefs/message.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "protocols/orangefs/attribute_fields.h"
#include "protocols/orangefs/io_fields.h"
#include "protocols/orangefs/management_fields.h"
#include "protocols/orangefs/message_trace.h"
#include "protocols/orangefs/namespace_fields.h"
#include "protocols/orangefs/operation_table.h"

namespace vpfs::orangefs {
namespace {

template <typename Body>
Op op_of_alternative(const Body& body) {
  if constexpr (requires { body.op; }) {
    return body.op;
  } else {
    return kOpsOf<Body>.front();
  }
}

// Decodes the alternative of Variant that belongs to `op`, if there is one.
template <typename Variant, std::size_t kIndex = 0>
void decode_body(WireDecoder& in, Op op, Variant& body) {
  if constexpr (kIndex == std::variant_size_v<Variant>) {
    in.fail(DecodeError::unknown_operation);
  } else {
    using Body = std::variant_alternative_t<kIndex, Variant>;
    if (!belongs_to<Body>(op)) return decode_body<Variant, kIndex + 1>(in, op, body);
    Body& found = body.template emplace<Body>();
    if constexpr (requires { found.op; }) found.op = op;
    in(found);
  }
}

template <typename Variant>
void encode_body(WireEncoder& out, const Variant& body) {
  std::visit([&out](const auto& alternative) { out(alternative); }, body);
}

void decode_generic_header(WireDecoder& in) {
  const std::uint32_t version = in.u32();
  const std::uint32_t encoding = in.u32();
  if (version / 1000 != kProtocolVersion / 1000) in.fail(DecodeError::bad_version);
  if (encoding != kEncodingLittleEndian) in.fail(DecodeError::bad_encoding);
}

template <typename T>
std::expected<T, DecodeError> finished(const WireDecoder& in, T message) {
  VPFS_TRY(in.finish());
  return message;
}

// Enough for most messages, so that encoding allocates once.
constexpr std::size_t kTypicalPayload = 512;

// The BMI header and the payload without its last `left_out` bytes of contents.
template <typename EncodePayload>
std::vector<std::byte> whole_message(BmiMode mode, Tag tag, std::uint64_t left_out,
                                     EncodePayload encode_payload) {
  std::vector<std::byte> message;
  message.reserve(kBmiHeaderSize + kTypicalPayload);
  message.resize(kBmiHeaderSize);
  encode_payload(message);
  BmiHeader header{.mode = mode, .tag = tag};
  header.payload_size = message.size() - kBmiHeaderSize + left_out;
  if (mode != BmiMode::unexpected) header.mode = expected_mode(header.payload_size);
  std::ranges::copy(encode(header), message.begin());
  return message;
}

void encode_request(const Request& request, std::vector<std::byte>& out,
                    WireEncoder::Contents contents) {
  WireEncoder wire(out, contents);
  wire(kProtocolVersion, kEncodingLittleEndian, op_of(request.body), kPad4, request.capability,
       request.hints);
  encode_body(wire, request.body);
}

void encode_response(Op op, Status status, std::vector<std::byte>& out) {
  WireEncoder wire(out);
  wire(kProtocolVersion, kEncodingLittleEndian, op, status);
}

std::uint64_t contents_size(bool carried, std::int64_t size) {
  VPFS_ASSERT(!carried || size >= 0);
  return carried ? static_cast<std::uint64_t>(size) : 0;
}

}  // namespace

const char* describe(DecodeError error) {
  switch (error) {
    case DecodeError::truncated:
      return "a field reaches past the end of the message";
    case DecodeError::trailing_bytes:
      return "bytes are left over after the last field";
    case DecodeError::bad_version:
      return "not protocol version 7";
    case DecodeError::bad_encoding:
      return "not the little-endian encoding";
    case DecodeError::unknown_operation:
      return "unknown operation";
    case DecodeError::bad_value:
      return "a field has a value that cannot be";
  }
  return "unknown decode error";
}

Op op_of(const RequestBody& body) {
  return std::visit([](const auto& alternative) { return op_of_alternative(alternative); }, body);
}
Op op_of(const ResponseBody& body) {
  return std::visit([](const auto& alternative) { return op_of_alternative(alternative); }, body);
}

std::expected<Request, DecodeError> decode_request(std::span<const std::byte> payload,
                                                   WireTrace* trace) {
  WireDecoder in(payload, trace);
  Request request;
  decode_generic_header(in);
  Op op = Op::invalid;
  in(op, kPad4, request.capability, request.hints);
  if (!in.failed()) decode_body(in, op, request.body);
  return finished(in, std::move(request));
}
std::expected<Request, DecodeError> decode_request(std::span<const std::byte> payload) {
  return decode_request(payload, nullptr);
}

std::expected<Response, DecodeError> decode_response(std::span<const std::byte> payload,
                                                     WireTrace* trace) {
  WireDecoder in(payload, trace);
  Response response;
  decode_generic_header(in);
  Op op = Op::invalid;
  in(op, response.status);
  if (!in.failed() && response.status == 0) {
    decode_body(in, op, response.body);
  } else {
    if (!has_response(op)) in.fail(DecodeError::unknown_operation);
    response.body = EmptyResponse{.op = op};
  }
  return finished(in, std::move(response));
}
std::expected<Response, DecodeError> decode_response(std::span<const std::byte> payload) {
  return decode_response(payload, nullptr);
}

void encode_request(const Request& request, std::vector<std::byte>& out) {
  encode_request(request, out, WireEncoder::Contents::written);
}

void encode_response(const Response& response, std::vector<std::byte>& out) {
  WireEncoder wire(out);
  wire(kProtocolVersion, kEncodingLittleEndian, op_of(response.body), response.status);
  if (response.status == 0) encode_body(wire, response.body);
}

std::vector<std::byte> request_message(Tag tag, const Request& request) {
  return whole_message(BmiMode::unexpected, tag, 0,
                       [&](std::vector<std::byte>& out) { encode_request(request, out); });
}

std::vector<std::byte> response_message(Tag tag, const Response& response) {
  return whole_message(BmiMode::eager, tag, 0,
                       [&](std::vector<std::byte>& out) { encode_response(response, out); });
}

std::vector<std::byte> error_message(Tag tag, Op op, Status status) {
  VPFS_ASSERT(status != 0);
  return whole_message(BmiMode::eager, tag, 0,
                       [&](std::vector<std::byte>& out) { encode_response(op, status, out); });
}

std::vector<std::byte> small_io_request_head(Tag tag, const Request& request) {
  const auto* body = std::get_if<SmallIoRequest>(&request.body);
  VPFS_ASSERT(body != nullptr);
  const std::uint64_t contents = contents_size(body->io_type == IoType::write, body->total_bytes);
  return whole_message(BmiMode::unexpected, tag, contents, [&](std::vector<std::byte>& out) {
    encode_request(request, out, WireEncoder::Contents::left_out);
  });
}

std::vector<std::byte> small_io_response_head(Tag tag, const SmallIoResponse& response) {
  const std::uint64_t contents =
      contents_size(response.io_type == IoType::read, response.result_size);
  return whole_message(BmiMode::eager, tag, contents, [&](std::vector<std::byte>& out) {
    WireEncoder wire(out, WireEncoder::Contents::left_out);
    wire(kProtocolVersion, kEncodingLittleEndian, Op::small_io, Status{0}, response);
  });
}

}  // namespace vpfs::orangefs
