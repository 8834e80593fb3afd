#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/io_kind.h"

// Rules as they are written and read; stage/rules/rule.h has them prepared for requests.
namespace vpfs::stage {

// A rule as an administrator writes it: NAME, COND and words such as "weight=4" or "realtime".
struct RuleText {
  std::string name;
  std::string condition;  // "jobid={a b}&op=read"; "": every request
  std::vector<std::string> words;

  bool operator==(const RuleText&) const = default;
};

enum class RuleOrigin : std::uint8_t { file, administrator, job, coordinator };

enum class RuleMode : std::uint8_t {
  enforce,
  shadow,  // holds nothing: reports what its limits would have held
};

// All conditions that are set must hold; one of the values of each.
struct Conditions {
  std::vector<std::string> clients = {};  // CIDR blocks or addresses
  // Name, patterns. Each hint must be there.
  std::vector<std::pair<std::string, std::vector<std::string>>> hints = {};
  std::vector<IoKind> kinds = {};
  std::vector<std::uint64_t> file_systems = {};
  std::vector<std::uint64_t> uids = {};
  std::vector<std::uint64_t> nodes = {};
  std::vector<std::uint64_t> targets = {};
  std::vector<std::uint64_t> owners = {};
  std::vector<std::string> directories = {};  // patterns
  // A job's, from the wire or from its registration. Job ids and accounts are patterns.
  std::vector<std::string> jobids = {};
  std::vector<std::string> accounts = {};
  std::vector<std::uint64_t> gids = {};

  bool operator==(const Conditions&) const = default;
};

struct RuleConfig {
  std::string name;  // no other rule has it
  RuleOrigin origin = RuleOrigin::file;
  RuleMode mode = RuleMode::enforce;
  RuleText text;                   // in its shortest form, for listing
  std::vector<Conditions> any_of;  // one of them must hold; none: every request matches
  std::string virtual_pfs;
  std::uint8_t traffic_class = 0;  // index into Config::scheduler.classes
  bool exempt = false;             // its requests are never held

  bool operator==(const RuleConfig&) const = default;
};

}  // namespace vpfs::stage
