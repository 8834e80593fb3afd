#include "test/protocols/orangefs/payload_properties.h"

#include <algorithm>
#include <vector>

#include "protocols/orangefs/io_summary.h"
#include "protocols/orangefs/message.h"
#include "protocols/orangefs/message_trace.h"
#include "protocols/orangefs/striping.h"

namespace vpfs::orangefs::test {
namespace {

using Problem = std::optional<std::string>;

void encode(const Request& request, std::vector<std::byte>& out) {
  encode_request(request, out);
}
void encode(const Response& response, std::vector<std::byte>& out) {
  encode_response(response, out);
}

// Only undefined bytes and the minor protocol version may differ.
Problem compare(std::span<const std::byte> original, std::vector<std::byte> encoded,
                const WireTrace& trace) {
  if (encoded.size() != original.size()) return "the encoded size differs";
  constexpr std::size_t kVersionSize = 4;
  std::ranges::copy(original.first(kVersionSize), encoded.begin());
  for (const auto& [offset, size] : trace.pads) {
    std::ranges::copy(original.subspan(offset, size),
                      encoded.begin() + static_cast<std::ptrdiff_t>(offset));
  }
  const auto differs = std::ranges::mismatch(original, encoded).in1;
  if (differs == original.end()) return std::nullopt;
  return "the encoded bytes differ at offset " + std::to_string(differs - original.begin());
}

template <typename Message, typename Decode>
Problem broken_round_trip(std::span<const std::byte> payload, Decode decode) {
  WireTrace trace;
  const std::expected<Message, DecodeError> message = decode(payload, &trace);
  if (!message) return std::nullopt;
  std::vector<std::byte> encoded;
  encode(*message, encoded);
  if (Problem problem = compare(payload, encoded, trace)) return problem;
  const std::expected<Message, DecodeError> again = decode(encoded, nullptr);
  if (!again || !(*again == *message)) return "decoding what was encoded gives something else";
  return std::nullopt;
}

TransferSize readable(const IoSummary& summary, std::int64_t end) {
  if (const auto size = summary.part.readable(end)) return *size;
  return SparseIo::of(summary.fields(), summary.elements)->readable(end);
}

bool equal(const TransferSize& a, const TransferSize& b) {
  return a.bytes == b.bytes && a.exact == b.exact;
}

template <typename Io>
Problem broken_summary(const Io& io, const Hints& hints, const IoSummary& summary) {
  if (summary.io_type != io.io_type || summary.fs_id != io.fs_id) return "io_type or fs_id";
  if (summary.datafile != io.handle) return "handle";
  if (!equal(summary.part.requested, requested_bytes(io))) return "requested bytes";
  for (const std::int64_t end : {std::int64_t{0}, std::int64_t{100000}, io.aggregate_size}) {
    if (!equal(readable(summary, end), readable_bytes(io, end))) return "readable bytes";
  }
  for (const Hint& hint : hints) {
    if (hint.type == HintType::named) {
      const auto first = std::ranges::find_if(hints, [&](const Hint& other) {
        return other.type == HintType::named && other.key == hint.key;
      });
      if (summary.hints.named(hint.key) != first->text) return "named hint";
    } else {
      const auto first = std::ranges::find(hints, hint.type, &Hint::type);
      if (summary.hints.number(hint.type) != first->number) return "numeric hint";
    }
  }
  return std::nullopt;
}

Problem summary_disagrees(std::span<const std::byte> payload) {
  const std::optional<Op> op = peek_operation(payload);
  if (op != Op::io && op != Op::small_io) return std::nullopt;
  const auto request = decode_request(payload);
  const auto summary = summarise_io(payload);
  if (request.has_value() != summary.has_value()) {
    return "summarise_io and decode_request do not accept the same";
  }
  if (!request) {
    if (request.error() != summary.error()) return "summarise_io gives another error";
    return std::nullopt;
  }
  if (summary->op != op_of(request->body)) return "the summary's op";
  Problem problem;
  if (const auto* io = std::get_if<IoRequestBody>(&request->body)) {
    problem = broken_summary(*io, request->hints, *summary);
  } else if (const auto* small = std::get_if<SmallIoRequest>(&request->body)) {
    problem = broken_summary(*small, request->hints, *summary);
  }
  if (problem) return "the summary disagrees: " + *problem;
  return std::nullopt;
}

}  // namespace

Problem broken_property(std::span<const std::byte> payload) {
  using DecodeRequest = std::expected<Request, DecodeError>(std::span<const std::byte>, WireTrace*);
  using DecodeResponse =
      std::expected<Response, DecodeError>(std::span<const std::byte>, WireTrace*);
  DecodeRequest* const request = decode_request;
  DecodeResponse* const response = decode_response;
  if (Problem problem = broken_round_trip<Request>(payload, request)) return "request: " + *problem;
  if (Problem problem = broken_round_trip<Response>(payload, response)) {
    return "response: " + *problem;
  }
  return summary_disagrees(payload);
}

}  // namespace vpfs::orangefs::test
