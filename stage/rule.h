#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/attributes.h"
#include "stage/address.h"
#include "stage/identity.h"
#include "stage/pattern.h"

namespace vpfs::stage {

// A rule, prepared for comparing requests with it. Lists of numbers are ascending. A request must
// have one value of each list that is not empty.
struct Rule {
  struct HintCondition {
    std::size_t index;  // into Identity::hints
    Pattern pattern;
  };
  std::vector<AddressBlock> clients;
  std::vector<HintCondition> hints;  // each must hold
  std::optional<IoKind> kind;
  std::vector<std::uint64_t> file_systems;
  std::vector<std::uint64_t> uids;
  std::vector<std::uint64_t> nodes;
  std::vector<std::uint64_t> targets;
  std::vector<std::uint64_t> owners;
  std::vector<Pattern> directories;
  std::vector<Attribute> needed;  // attributes that must be known: the name's fields
  std::string virtual_pfs;
  bool is_template = false;
  std::uint8_t traffic_class = 0;
};

// The rules' view of a request. Borrows everything.
struct Sight {
  const Address& client;
  const Identity& identity;
  std::optional<std::size_t> hidden_hint = std::nullopt;  // counts as missing

  [[nodiscard]] std::optional<std::string_view> hint(std::size_t index) const {
    return hidden_hint == index ? std::nullopt : identity.hints[index];
  }
  // uid, node, target, or owner.
  [[nodiscard]] std::optional<std::uint32_t> number(Attribute attribute) const;
  // The same, or the directory.
  [[nodiscard]] bool knows(Attribute attribute) const {
    return attribute == Attribute::directory ? !identity.directory.empty()
                                             : number(attribute).has_value();
  }
};

[[nodiscard]] bool matches(const Rule& rule, const Sight& sight);

}  // namespace vpfs::stage
