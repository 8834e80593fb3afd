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

// A rule in the form in which requests are compared with it. Lists of numbers are in ascending
// order; one of the values of each list that is not empty must be there.
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
  std::vector<Attribute> needed;  // known they must be: the name's fields
  std::string virtual_pfs;
  bool is_template = false;
  std::uint8_t traffic_class = 0;
};

// A request, as rules see it. Borrows everything.
struct Sight {
  const Address& client;
  const Identity& identity;
  std::optional<std::size_t> hidden_hint = std::nullopt;  // counts as not there

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
