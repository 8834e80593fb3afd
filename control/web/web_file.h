#pragma once

#include <span>
#include <string_view>

namespace vpfs::control {

// A file of the page that shows a stage or a coordinator in a browser. They are part of the
// program: nothing is read from a disk, and the page loads nothing from elsewhere.
struct WebFile {
  std::string_view path;  // "/page.js"
  std::string_view type;
  std::string_view text;
};
[[nodiscard]] std::span<const WebFile> web_files();
// nullptr: there is no file of that path.
[[nodiscard]] const WebFile* find_web_file(std::string_view path);

// Lines of the head of every answer: the browser may load, run and ask only what comes from the
// same port, and shows the page in no other page.
inline constexpr std::string_view kWebHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n";

// Whether the Host of a request is an address or localhost. With another name a foreign page could
// have its own name lead here, and read what this port answers.
[[nodiscard]] bool is_own_host(std::string_view host);

}  // namespace vpfs::control
