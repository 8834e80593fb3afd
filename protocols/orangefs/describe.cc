#include "protocols/orangefs/describe.h"

#include <string_view>
#include <variant>

#include "protocols/orangefs/attribute_fields.h"
#include "protocols/orangefs/errors.h"
#include "protocols/orangefs/io_fields.h"
#include "protocols/orangefs/management_fields.h"
#include "protocols/orangefs/namespace_fields.h"
#include "protocols/orangefs/striping.h"
#include "protocols/orangefs/wire_printer.h"

namespace vpfs::orangefs {
namespace {

template <typename T>
void add(std::string& line, std::string_view name, const T& value) {
  if (!line.empty()) line += ' ';
  line.append(name).append("=");
  if constexpr (std::is_convertible_v<T, std::string_view>) {
    line += value;
  } else {
    line += std::to_string(value);
  }
}

std::string_view hint_name(HintType type) {
  switch (type) {
    case HintType::request_id:
      return "request_id";
    case HintType::client_id:
      return "client_id";
    case HintType::handle:
      return "handle";
    case HintType::rank:
      return "rank";
    case HintType::server_id:
      return "server_id";
    case HintType::owner_gid:
      return "owner_gid";
    default:
      return "type";
  }
}

// Text from the wire, made safe for a line of a terminal.
std::string printable(std::string_view text) {
  std::string shown(text);
  for (char& c : shown) {
    if (c < 0x20 || c == 0x7f) c = '?';
  }
  return shown;
}

void add_hints(std::string& line, const Hints& hints) {
  if (hints.empty()) return;
  std::string text;
  for (const Hint& hint : hints) {
    if (hint.type == HintType::named) {
      add(text, printable(hint.key), printable(hint.text));
    } else {
      add(text, hint_name(hint.type), hint.number);
    }
  }
  line.append(" hints{").append(text).append("}");
}

template <typename Io>
std::string io_summary(const Io& io) {
  const TransferSize size = requested_bytes(io);
  std::string line(io.io_type == IoType::write ? "WRITE" : "READ");
  add(line, "handle", io.handle);
  line += " range=" + std::to_string(io.file_request_offset) + "+" +
          std::to_string(io.aggregate_size) + (io.file_request.dense() ? "" : " sparse");
  line += (size.exact ? " here=" : " here<=") + std::to_string(size.bytes);
  line += " server=" + std::to_string(io.server_nr) + "/" + std::to_string(io.server_ct) + " ";
  line += name(io.distribution);
  if (const auto* stripe = std::get_if<SimpleStripe>(&io.distribution)) {
    line += ":" + std::to_string(stripe->strip_size);
  }
  add(line, "fs", io.fs_id);
  return line;
}

template <typename Body>
std::string body_summary(const Body& body) {
  if constexpr (requires { body.file_request; }) {
    return io_summary(body);
  } else {
    std::string line;
    if constexpr (requires { body.path; }) add(line, "path", printable(body.path));
    if constexpr (requires { body.name; }) add(line, "name", printable(body.name));
    if constexpr (requires { body.handle; }) add(line, "handle", body.handle);
    if constexpr (requires { body.count; }) add(line, "count", body.count);
    if constexpr (requires { body.fs_id; }) add(line, "fs", body.fs_id);
    if constexpr (requires { body.credential; }) {
      add(line, "uid", body.credential.uid);
      add(line, "from", printable(body.credential.issuer));
    }
    return line;
  }
}

template <typename Body>
void add_answer(std::string& line, const Body& body) {
  if constexpr (requires { body.bstream_size; }) add(line, "bstream_size", body.bstream_size);
  if constexpr (requires { body.result_size; }) add(line, "result_size", body.result_size);
  if constexpr (requires { body.total_completed; }) add(line, "completed", body.total_completed);
  if constexpr (requires { body.handle; }) add(line, "handle", body.handle);
  if constexpr (requires { body.metafile_handle; }) add(line, "handle", body.metafile_handle);
  if constexpr (requires { body.entries; }) add(line, "entries", body.entries.size());
  if constexpr (requires { body.handles; }) add(line, "handles", body.handles.size());
}

}  // namespace

std::string summary(const Request& request) {
  std::string line = std::visit([](const auto& body) { return body_summary(body); }, request.body);
  add_hints(line, request.hints);
  return line;
}

std::string summary(const Response& response) {
  std::string line;
  if (response.status != 0) return line.append("status=").append(describe_status(response.status));
  add(line, "status", 0);
  std::visit([&line](const auto& body) { add_answer(line, body); }, response.body);
  return line;
}

std::string details(const Request& request) {
  WirePrinter printer;
  printer.named("capability, hints", request.capability, request.hints);
  std::visit([&printer](const auto& body) { printer.named("body", body); }, request.body);
  return printer.text();
}

std::string details(const Response& response) {
  WirePrinter printer;
  printer.named("status", response.status);
  std::visit([&printer](const auto& body) { printer.named("body", body); }, response.body);
  return printer.text();
}

}  // namespace vpfs::orangefs
