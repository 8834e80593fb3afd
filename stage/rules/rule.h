#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/attributes.h"
#include "stage/rules/address.h"
#include "stage/rules/identity.h"
#include "stage/rules/pattern.h"

namespace vpfs::stage {

// One of the alternatives of a rule, prepared for comparing requests with it. Lists of numbers are
// ascending. A request must have one value of each list that is not empty.
struct Rule {
  struct HintCondition {
    std::size_t index;  // into Identity::hints
    std::vector<Pattern> patterns;
  };
  std::vector<AddressBlock> clients;
  std::vector<HintCondition> hints;  // each must hold
  std::vector<IoKind> kinds;
  std::vector<std::uint64_t> file_systems;
  std::vector<std::uint64_t> uids;
  std::vector<std::uint64_t> nodes;
  std::vector<std::uint64_t> targets;
  std::vector<std::uint64_t> owners;
  std::vector<Pattern> directories;
  std::vector<Pattern> jobids;
  std::vector<Pattern> accounts;
  std::vector<std::uint64_t> gids;
  std::vector<Attribute> needed;  // attributes that must be known: the name's fields
  std::uint32_t number = 0;       // of the rule, from 0
  bool is_shadow = false;
};

// The rules' view of a request. Borrows everything.
struct Sight {
  const Address& client;
  const Identity& identity;
  std::optional<std::size_t> hidden_hint = std::nullopt;  // counts as missing
  // The id of the request's job.
  std::optional<std::string_view> jobid = std::nullopt;
  std::string_view account = {};  // "": not known
  std::span<const std::uint64_t> gids = {};

  [[nodiscard]] std::optional<std::string_view> hint(std::size_t index) const {
    return hidden_hint == index ? std::nullopt : identity.hints[index];
  }
  // uid, node, target, or owner; of a job's groups the first.
  [[nodiscard]] std::optional<std::uint64_t> number(Attribute attribute) const;
  // The directory, the job's id, or its account.
  [[nodiscard]] std::optional<std::string_view> text(Attribute attribute) const;
  [[nodiscard]] bool knows(Attribute attribute) const {
    return number(attribute).has_value() || text(attribute).has_value();
  }
};

[[nodiscard]] bool matches(const Rule& rule, const Sight& sight);

}  // namespace vpfs::stage
