#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "sim/proxies/replay/recorded_io.h"
#include "stage/config/config.h"
#include "stage/rules/classifier.h"

namespace vpfs::sim {

// Where requests belong whose rule cannot be told from a recording: to the virtual PFS that they
// were recorded in, as the configuration has it.
class RecordedPlaces {
 public:
  // The configuration outlives it, and was read without errors.
  explicit RecordedPlaces(const stage::Config& config) : config_(config) {}

  // `match` is what the rules say of that which is recorded. Takes it to the virtual PFS of the
  // recording, with the class and the exemption that its rules give. False: the configuration has
  // none of that name, nor a template for it.
  [[nodiscard]] bool keep(const RecordedSource& who, IoKind kind, stage::Classifier::Match& match);
  // Virtual PFSes to which rules with different classes, exemptions or templates lead. The first
  // such rule counts.
  [[nodiscard]] const std::set<std::string>& ambiguous() const { return ambiguous_; }

 private:
  // What a rule gives.
  struct Standing {
    std::string declared_name;
    std::uint8_t traffic_class = 0;
    bool exempt = false;

    bool operator==(const Standing&) const = default;
  };
  class Candidates;
  [[nodiscard]] std::optional<Standing> standing_of(const RecordedSource& who, IoKind kind,
                                                    const stage::Classifier::Match& match);

  const stage::Config& config_;
  std::set<std::string> ambiguous_;
};

}  // namespace vpfs::sim
