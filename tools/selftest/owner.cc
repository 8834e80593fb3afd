#include "tools/selftest/owner.h"

#include <algorithm>

#include <fmt/format.h>

namespace vpfs::selftest {
namespace {

constexpr std::string_view kBegin = "vpfs-selftest.";

}  // namespace

std::string to_value(const LoadProcess& owner) {
  return fmt::format("{}{}", kBegin, load::owner_text(owner));
}

std::optional<LoadProcess> owner_of(std::string_view condition) {
  const std::size_t begin = condition.find(kBegin);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::string_view rest = condition.substr(begin + kBegin.size());
  return load::parse_owner(rest.substr(0, rest.find_first_of(" }\"")));
}

}  // namespace vpfs::selftest
