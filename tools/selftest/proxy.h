#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace vpfs::selftest {

struct Done {
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
};

// What has been done for each virtual PFS (its id and generation) that is there now.
using DoneFor = std::map<std::pair<std::uint32_t, std::uint32_t>, Done>;

// What was done in between. Those that have come count whole, and those that have gone not at all.
[[nodiscard]] Done done_between(const DoneFor& before, const DoneFor& after);

struct LiveRule {
  std::string name;
  std::string condition;
};

struct ProxyState {
  std::string name;
  std::string policy;
  std::uint64_t depth_requests = 0;
  Duration at = {};  // by the proxy's clock
  bool bypass = false;
  bool draining = false;
  bool sees_all = true;  // the caller may see all virtual PFSes
  bool coordinated = false;
  DoneFor own;  // the virtual PFSes of self-tests
  DoneFor others;
  std::vector<LiveRule> rules;  // of self-tests
};

// What rules and virtual PFSes of self-tests are called begins so.
inline constexpr std::string_view kMark = "vpfs-selftest-";

// The proxy that is tested. Errors are one line for people.
class TestedProxy {
 public:
  virtual ~TestedProxy() = default;

  [[nodiscard]] virtual Result<ProxyState> state() = 0;
  [[nodiscard]] virtual Result<void> start_rule(const LiveRule& rule,
                                                const std::vector<std::string>& words) = 0;
  [[nodiscard]] virtual Result<void> change_rule(const std::string& name,
                                                 const std::vector<std::string>& words) = 0;
  [[nodiscard]] virtual Result<void> stop_rule(const std::string& name) = 0;
};

}  // namespace vpfs::selftest
