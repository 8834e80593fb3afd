#include "control/metrics/http_request.h"

#include <algorithm>

#include <fmt/format.h>

namespace vpfs::control {
namespace {

bool is_capital(char c) {
  return c >= 'A' && c <= 'Z';
}

std::string_view phrase_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "HTTP Version Not Supported";
  }
}

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool same_letters(std::string_view one, std::string_view other) {
  const auto lower = [](char c) { return is_capital(c) ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(one, other, {}, lower, lower);
}

// The first field of that name; "": there is none.
std::string_view field(std::string_view head, std::string_view name) {
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find('\n'));
    head.remove_prefix(std::min(head.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !same_letters(line.substr(0, colon), name)) continue;
    return trimmed(line.substr(colon + 1));
  }
  return {};
}

}  // namespace

std::size_t head_size(std::string_view text) {
  // Some clients end lines with a line feed only.
  const std::size_t with_returns = text.find("\r\n\r\n");
  const std::size_t without = text.find("\n\n");
  if (with_returns == std::string_view::npos && without == std::string_view::npos) return 0;
  return with_returns < without ? with_returns + 4 : without + 2;
}

bool may_be_request(std::string_view text) {
  return text.empty() || is_capital(text.front());
}

std::expected<HttpRequest, int> parse_request(std::string_view head) {
  std::string_view line = head.substr(0, head.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return std::unexpected(400);
  const std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  const auto visible = [](char c) { return c > ' ' && c < '\x7f'; };
  if (method.empty() || !std::ranges::all_of(method, is_capital) || !target.starts_with('/') ||
      !std::ranges::all_of(target, visible) || !version.starts_with("HTTP/")) {
    return std::unexpected(400);
  }
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return std::unexpected(505);
  if (method != "GET" && method != "HEAD") return std::unexpected(405);
  const std::size_t question = std::min(target.find('?'), target.size());
  const std::string_view query = target.substr(std::min(target.size(), question + 1));
  return HttpRequest{.head_only = method == "HEAD",
                     .path = std::string(target.substr(0, question)),
                     .query = std::string(query),
                     .host = std::string(field(head, "host"))};
}

std::string answer_head(const HttpAnswer& answer) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{}Cache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
      answer.status, phrase_of(answer.status), answer.type, answer.size,
      answer.status == 405 ? "Allow: GET, HEAD\r\n" : "", answer.more);
}

}  // namespace vpfs::control
