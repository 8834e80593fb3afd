#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace vpfs::test {

// The path of a program of vpfs: in the directory that VPFS_PROGRAMS names, or else in the test's
// own build. So one build of the tests drives the programs of every sanitizer.
[[nodiscard]] std::string program(std::string_view name);
// Where program() looks.
[[nodiscard]] std::filesystem::path program_directory();
// Whether these programs have a sanitizer, which slows them down and keeps freed memory.
[[nodiscard]] bool programs_have_sanitizer();

// A file of the source tree: source("conf/proxy.yaml").
[[nodiscard]] std::string source(std::string_view path);

}  // namespace vpfs::test
