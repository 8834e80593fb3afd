#include "protocols/beegfs/describe.h"

#include <limits>
#include <string_view>
#include <type_traits>

#include "protocols/beegfs/body_archive.h"

namespace vpfs::beegfs {
namespace {

// Text from the wire, made safe for a line of a terminal.
std::string printable(std::string_view text) {
  std::string shown(text);
  for (char& c : shown) {
    if (c < 0x20 || c == 0x7f) c = '?';
  }
  return shown;
}

void add(std::string& line, std::string_view name, std::string_view value) {
  if (!line.empty()) line += ' ';
  line.append(name).append("=").append(value);
}
void add(std::string& line, std::string_view name, std::int64_t value) {
  add(line, name, std::to_string(value));
}

std::string_view error_text(std::int64_t code) {
  if (code < 0 || code > std::numeric_limits<std::int32_t>::max()) return {};
  return describe(OpsError{static_cast<std::int32_t>(code)});
}

std::string with_text(std::int64_t number, std::string_view text) {
  std::string line = std::to_string(number);
  if (!text.empty()) line.append(" (").append(text).append(")");
  return line;
}

std::string describe_error(std::int64_t error) {
  return error == 0 ? "0" : with_text(error, error_text(error));
}

std::string_view role(NodeType type) {
  switch (type) {
    case NodeType::meta:
      return "meta";
    case NodeType::storage:
      return "storage";
    case NodeType::client:
      return "client";
    case NodeType::management:
      return "management";
  }
  return "unknown";
}

void add_header(std::string& line, const MessageHeader& header) {
  if (header.target != 0) add(line, "target", header.target);
  if (header.user != kNoUser) add(line, "uid", header.user);
}

void add_path(std::string& line, const ChunkPath& path) {
  if ((path.flags & PathInfo::kHasOrigin) == 0) return;
  add(line, "owner", path.owner);
  add(line, "dir", printable(path.directory));
}

template <typename Alternative>
void add_body(std::string& line, const Alternative& x) {
  if constexpr (requires { x.node_type; }) add(line, "role", role(x.node_type));
  if constexpr (requires { x.result; }) add(line, "result", describe_result(x.result));
  if constexpr (requires { x.error; }) {
    add(line, "error", describe_error(static_cast<std::int64_t>(x.error)));
  }
  if constexpr (requires { x.code; }) add(line, "code", x.code);
  if constexpr (requires { x.text; }) add(line, "text", printable(x.text));
  if constexpr (requires { x.offset; }) add(line, "offset", x.offset);
  if constexpr (requires { x.count; }) add(line, "count", x.count);
  if constexpr (requires { x.size; }) add(line, "size", x.size);
  if constexpr (requires { x.total; }) add(line, "total", x.total);
  if constexpr (requires { x.free; }) add(line, "free", x.free);
  if constexpr (requires { x.file_handle; }) add(line, "handle", printable(x.file_handle));
  if constexpr (requires { x.entry; }) add(line, "entry", printable(x.entry));
  if constexpr (requires { x.client; }) add(line, "node", x.client);
  if constexpr (requires { x.node; }) add(line, "node", x.node);
  if constexpr (requires { x.path; }) add_path(line, x.path);
  if constexpr (requires { x.file_owner; }) {
    if (x.file_owner) add(line, "file_uid", x.file_owner->uid);
  }
  if constexpr (requires { x.ack_id; }) add(line, "ack_id", printable(x.ack_id));
  if constexpr (requires { x.bytes; }) add(line, "body", std::to_string(x.bytes.size()) + " bytes");
}

void print(BodyPrinter& printer, const MessageHeader& x) {
  VPFS_FIELDS(printer, x.feature_flags, x.compat_flags, x.flags);
  printer.named("header_target", x.target);
  VPFS_FIELDS(printer, x.user, x.sequence, x.sequence_done);
}

}  // namespace

std::string type_name(MessageType type) {
  const std::string_view listed = name(type);
  if (!listed.empty()) return std::string(listed);
  return "type " + std::to_string(static_cast<std::uint16_t>(type));
}

std::string describe_result(std::int64_t result) {
  if (result >= 0) return std::to_string(result);
  const bool has_opposite = result != std::numeric_limits<std::int64_t>::min();
  return with_text(result, has_opposite ? error_text(-result) : std::string_view());
}

std::string summary(const Message& message) {
  std::string line;
  add_header(line, message.header);
  std::visit([&line](const auto& body) { add_body(line, body); }, message.body);
  return line;
}

std::string details(const Message& message) {
  BodyPrinter printer;
  print(printer, message.header);
  std::visit(
      [&printer]<typename Alternative>(const Alternative& body) {
        if constexpr (!std::is_same_v<Alternative, Opaque>) Alternative::fields(printer, body);
      },
      message.body);
  return printer.text();
}

}  // namespace vpfs::beegfs
