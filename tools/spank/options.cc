#include "tools/spank/options.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

namespace vpfs::spank {
namespace {

using wishes::Bound;
using wishes::Bounds;
using wishes::Wish;

std::string_view meaning(Wish wish) {
  switch (wish) {
    case Wish::weight:
      return "weight of the job's I/O among others";
    case Wish::rate:
      return "limit on the rate of the job's I/O";
    case Wish::deadline:
      break;
  }
  return "time within which the job's I/O should be answered";
}

std::string upper(std::string_view name) {
  std::string made(name);
  for (char& letter : made) letter = static_cast<char>(letter - 'a' + 'A');
  return made;
}

}  // namespace

Options::Options(const std::vector<std::string_view>& bounds) {
  Result<Bounds> parsed = Bounds::parse(bounds);
  if (parsed) {
    bounds_ = std::move(*parsed);
  } else {
    mistake_ = std::move(parsed.error().message);
  }
}

bool Options::offers(Wish wish) const {
  return mistake_ || bounds_.find(wish) != nullptr;
}

std::string Options::usage(Wish wish) const {
  const Bound* const bound = bounds_.find(wish);
  if (bound == nullptr) return std::string(meaning(wish));
  return fmt::format("{} ({})", meaning(wish), wishes::expectation(wish, *bound));
}

Result<void> Options::take(Wish wish, std::string_view value) {
  const std::string name = option_name(wish);
  if (mistake_) {
    return fail(
        fmt::format("--{}: the bounds that the administrator has set are mistyped, so it "
                    "cannot be used: {}",
                    name, *mistake_));
  }
  const Result<std::string> granted = bounds_.grant(wish, value);
  if (!granted) return fail(fmt::format("--{}: {}", name, granted.error().message));
  taken_[static_cast<std::size_t>(wish)] = std::string(value);
  return {};
}

const std::optional<std::string>& Options::taken(Wish wish) const {
  return taken_[static_cast<std::size_t>(wish)];
}

std::string option_name(Wish wish) {
  return fmt::format("vpfs-{}", wishes::name_of(wish));
}

std::string variable_name(Wish wish) {
  return fmt::format("VPFS_{}", upper(wishes::name_of(wish)));
}

std::string inherited_name(Wish wish) {
  return fmt::format("SLURM_SPANK__SLURM_SPANK_OPTION_vpfs_vpfs_{}", wishes::name_of(wish));
}

}  // namespace vpfs::spank
