#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "protocols/orangefs/bmi_header.h"
#include "protocols/orangefs/requests.h"
#include "protocols/orangefs/responses.h"

// Whole BMI payloads of requests and responses. Raw flow data never comes here; only the state of
// its tag identifies it.
namespace vpfs::orangefs {

struct Request {
  Capability capability;
  Hints hints;
  RequestBody body;
  bool operator==(const Request&) const = default;
};

struct Response {
  Status status = 0;
  ResponseBody body;
  bool operator==(const Response&) const = default;
};

[[nodiscard]] Op op_of(const RequestBody& body);
[[nodiscard]] Op op_of(const ResponseBody& body);

enum class DecodeError {
  truncated,          // a field reaches past the end
  trailing_bytes,     // the message is longer than its fields
  bad_version,        // not protocol 7.x
  bad_encoding,       // not the little-endian byte field
  unknown_operation,  // no such request or response
  bad_value,          // a count, length or enumerator that cannot be
};
[[nodiscard]] const char* describe(DecodeError error);

// Each decodes one payload that is complete in `payload` (without the BMI header). Allocates at
// most a small constant times payload.size(); reads nothing past its end.
[[nodiscard]] std::expected<Request, DecodeError> decode_request(
    std::span<const std::byte> payload);
[[nodiscard]] std::expected<Response, DecodeError> decode_response(
    std::span<const std::byte> payload);

// Append the payload to `out`.
void encode_request(const Request& request, std::vector<std::byte>& out);
void encode_response(const Response& response, std::vector<std::byte>& out);

// A whole message, BMI header included.
[[nodiscard]] std::vector<std::byte> request_message(Tag tag, const Request& request);
[[nodiscard]] std::vector<std::byte> response_message(Tag tag, const Response& response);
// The 16-byte response for a failed operation; `status` is not zero.
[[nodiscard]] std::vector<std::byte> error_message(Tag tag, Op op, Status status);

// SMALL_IO writes and reads carry their data last. These functions encode everything before the
// data, with lengths that include it, so that a sender can gather the data from elsewhere. The
// message is the returned bytes followed by the data (request: total_bytes, response: result_size).
[[nodiscard]] std::vector<std::byte> small_io_request_head(Tag tag, const Request& request);
[[nodiscard]] std::vector<std::byte> small_io_response_head(Tag tag,
                                                            const SmallIoResponse& response);

}  // namespace vpfs::orangefs
