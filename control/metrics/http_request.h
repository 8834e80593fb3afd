#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace vpfs::control {

struct HttpRequest {
  bool head_only = false;
  std::string path;   // without the query
  std::string query;  // behind the question mark
  std::string host;   // as the field Host has it; "": there is none

  bool operator==(const HttpRequest&) const = default;
};

// The length of the head that the text begins with, with the empty line at its end; 0: more is to
// come.
[[nodiscard]] std::size_t head_size(std::string_view text);

// Whether this can be the beginning of a request at all. Looks at the first byte.
[[nodiscard]] bool may_be_request(std::string_view text);

// Reads the first line of a head, and the field Host. The error is a status code: 400 (no
// HTTP), 405 (neither GET nor HEAD), 505 (not HTTP/1).
[[nodiscard]] std::expected<HttpRequest, int> parse_request(std::string_view head);

struct HttpAnswer {
  int status = 200;
  std::string_view type = "text/plain; charset=utf-8";
  std::size_t size = 0;        // of the body
  std::string_view more = "";  // lines of the head
};
// The head of an answer, after which the connection is closed.
[[nodiscard]] std::string answer_head(const HttpAnswer& answer);

}  // namespace vpfs::control
