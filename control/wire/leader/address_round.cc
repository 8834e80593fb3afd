#include "control/wire/leader/address_round.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/joined.h"

namespace vpfs::control {

AddressRound::AddressRound(std::vector<PortAddress> addresses)
    : addresses_(std::move(addresses)), problems_(addresses_.size()) {}

void AddressRound::change(std::vector<PortAddress> addresses) {
  const auto place = std::ranges::find(addresses, current());
  VPFS_ASSERT(place != addresses.end());
  current_ = static_cast<std::size_t>(place - addresses.begin());
  addresses_ = std::move(addresses);
  problems_.resize(addresses_.size());
  begin();
}

bool AddressRound::fail(std::string why) {
  if (failed_ == addresses_.size()) begin();
  if (!has_failed(current_)) ++failed_;
  problems_[current_] = why.empty() ? "it has ended" : std::move(why);
  const bool have_all_failed = failed_ == addresses_.size();
  do {
    current_ = (current_ + 1) % addresses_.size();
  } while (!have_all_failed && has_failed(current_));
  return have_all_failed;
}

void AddressRound::prefer(const std::vector<std::string>& named) {
  const bool have_all_failed = failed_ == addresses_.size();
  for (const std::string& each : named) {
    const auto address = parse_port_address(each);
    const auto place = address ? std::ranges::find(addresses_, *address) : addresses_.end();
    if (place == addresses_.end()) continue;
    const auto which = static_cast<std::size_t>(place - addresses_.begin());
    if (!have_all_failed && has_failed(which)) continue;
    current_ = which;
    return;
  }
}

void AddressRound::begin() {
  failed_ = 0;
  std::ranges::fill(problems_, "");
}

std::string AddressRound::problem() const {
  if (is_alone()) return problems_.front();
  // Those with the same problem together, so that the text is short where all are away.
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    auto group =
        std::ranges::find(groups, problems_[i], [](const auto& each) { return each.first; });
    if (group == groups.end()) group = groups.insert(group, {problems_[i], {}});
    group->second.push_back(to_string(addresses_[i]));
  }
  std::vector<std::string> parts;
  for (const auto& [why, whose] : groups)
    parts.push_back(fmt::format("{}: {}", joined(whose), why));
  return fmt::format("no coordinator of {} can be reached: {}", to_string(addresses_),
                     joined(parts, "; "));
}

}  // namespace vpfs::control
