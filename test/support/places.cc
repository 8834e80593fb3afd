#include "test/support/places.h"

#include <cstdlib>
#include <fstream>

namespace vpfs::test {

std::filesystem::path program_directory() {
  const char* const chosen = std::getenv("VPFS_PROGRAMS");
  return chosen != nullptr && *chosen != '\0' ? chosen : VPFS_BIN_DIR;
}

std::string program(std::string_view name) {
  return (program_directory() / name).string();
}

// CMake writes the name of the sanitizer beside the programs.
bool programs_have_sanitizer() {
  std::ifstream file(program_directory() / "sanitizer.txt");
  std::string name;
  return static_cast<bool>(file >> name);
}

std::string source(std::string_view path) {
  return (std::filesystem::path(VPFS_SOURCE_DIR) / path).string();
}

}  // namespace vpfs::test
