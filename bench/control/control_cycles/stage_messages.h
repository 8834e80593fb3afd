#pragma once

#include <cstdint>
#include <string>

#include "control/wire/control.pb.h"

namespace vpfs::bench {

// The one flow of a virtual stage, whose counters grow by another amount with each report.
struct VirtualFlow {
  std::uint32_t stage = 0;
  std::uint32_t job = 0;
  bool announced = false;
  std::uint64_t reports = 0;
  std::uint64_t requests = 0;
  std::uint64_t bytes = 0;
  std::uint64_t metadata_operations = 0;
};

// What virtual stages say. Messages are reused, so that none allocates after the first ones.
class StageMessages {
 public:
  explicit StageMessages(std::uint64_t incarnation) : incarnation_(incarnation) {}

  // All append a frame to `out`.
  void add_hello(const VirtualFlow& flow, std::string& out) const;
  static void add_flows(const VirtualFlow& flow, std::string& out);
  // The answer to a cycle.
  void add_report(std::uint64_t id, const control::Cycle& cycle, VirtualFlow& flow,
                  std::string& out);
  static void add_ack(std::uint64_t id, std::string& out);
  static void add_refusal(std::uint64_t id, std::string& out);

 private:
  const std::uint64_t incarnation_;
  control::Envelope report_;
};

}  // namespace vpfs::bench
