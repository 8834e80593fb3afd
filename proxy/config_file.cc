#include "proxy/config_file.h"

#include <fstream>
#include <sstream>

namespace vpfs::proxy {

Result<std::string> read_config_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) return fail(path + ": cannot be read");
  return text.str();
}

}  // namespace vpfs::proxy
