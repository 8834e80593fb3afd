#include "bench/control/control_cycles/stage_messages.h"

#include <stdexcept>

#include <fmt/format.h>

#include "base/version.h"
#include "control/wire/framing.h"
#include "control/wire/protocol.h"

namespace vpfs::bench {
namespace {

constexpr std::uint32_t kFlow = 1;
constexpr std::uint32_t kWeights = 4;

void append(const control::Envelope& envelope, std::string& out) {
  if (!control::append_frame(envelope, control::kMostAnswer, out)) {
    throw std::runtime_error("a message is too long");
  }
}

// SplitMix64: equal for the same stage and report in each run, and without a pattern.
std::uint64_t random_of(std::uint64_t stage, std::uint64_t report) {
  std::uint64_t z = (stage << 32U | report) * 0x9e3779b97f4a7c15U;
  z = (z ^ z >> 30U) * 0xbf58476d1ce4e5b9U;
  z = (z ^ z >> 27U) * 0x94d049bb133111ebU;
  return z ^ z >> 31U;
}

// Demands between a quarter and the whole of an amount.
void grow(VirtualFlow& flow) {
  const std::uint64_t random = random_of(flow.stage, ++flow.reports);
  flow.requests += 16 + random % 48;
  flow.bytes += (std::uint64_t{256} << 10U) + (random >> 8U) % (std::uint64_t{768} << 10U);
  flow.metadata_operations += 4 + (random >> 40U) % 12;
}

void fill(control::FlowReport& report, const VirtualFlow& flow) {
  // Some requests are always queued and some under way.
  constexpr std::uint64_t kQueued = 4;
  constexpr std::uint64_t kSize = std::uint64_t{16} << 10U;
  report.set_flow(kFlow);
  report.set_arrived_requests(flow.requests);
  report.set_arrived_bytes(flow.bytes);
  report.set_sent_requests(flow.requests - kQueued);
  report.set_sent_bytes(flow.bytes - kQueued * kSize);
  report.set_sent_cost(flow.bytes - kQueued * kSize);
  report.set_done_requests(flow.requests - 2 * kQueued);
  report.set_done_bytes(flow.bytes - 2 * kQueued * kSize);
  report.set_done_cost(flow.bytes - 2 * kQueued * kSize);
  report.set_queued_requests(kQueued);
  report.set_queued_bytes(kQueued * kSize);
  report.set_metadata_operations(flow.metadata_operations);
}

}  // namespace

void StageMessages::add_hello(const VirtualFlow& flow, std::string& out) const {
  control::Envelope envelope;
  envelope.set_id(1);
  control::Hello& hello = *envelope.mutable_hello();
  constexpr control::Versions kVersions;
  hello.set_version(kVersions.newest);
  hello.set_least(kVersions.least);
  hello.set_role(control::Hello::STAGE);
  hello.set_name(fmt::format("stage{:05}", flow.stage));
  hello.set_incarnation(incarnation_);
  hello.add_capabilities("caps");
  hello.add_capabilities("metadata_caps");
  hello.add_capabilities("elsewhere");
  hello.set_cost_model("bytes");
  hello.set_program(fmt::format("vpfs-bench-virtual-stages {}", version()));
  append(envelope, out);
}

void StageMessages::add_flows(const VirtualFlow& flow, std::string& out) {
  control::Envelope envelope;
  control::Flow& announced = *envelope.mutable_flows()->add_flows();
  announced.set_id(kFlow);
  announced.set_generation(1);
  announced.set_name(fmt::format("job{:04}", flow.job));
  announced.set_jobid(fmt::format("{}", flow.job));
  announced.set_nodes(1);
  announced.set_weight(1 + flow.job % kWeights);
  append(envelope, out);
}

void StageMessages::add_report(std::uint64_t id, const control::Cycle& cycle, VirtualFlow& flow,
                               std::string& out) {
  report_.set_id(id);
  report_.set_answer(true);
  control::Report& report = *report_.mutable_report();
  report.set_sequence(cycle.sequence());
  report.set_term(cycle.term());
  report.set_applied(true);
  if (cycle.want_report()) {
    grow(flow);
    if (report.flows_size() == 0) report.add_flows();
    fill(*report.mutable_flows(0), flow);
  } else {
    report.mutable_flows()->Clear();
  }
  append(report_, out);
}

void StageMessages::add_ack(std::uint64_t id, std::string& out) {
  control::Envelope envelope;
  envelope.set_id(id);
  envelope.set_answer(true);
  envelope.mutable_ack();
  append(envelope, out);
}

void StageMessages::add_refusal(std::uint64_t id, std::string& out) {
  control::Envelope envelope;
  envelope.set_id(id);
  envelope.set_answer(true);
  *envelope.mutable_error() =
      control::make_error(control::Error::UNSUPPORTED, "", "a virtual stage only has cycles");
  append(envelope, out);
}

}  // namespace vpfs::bench
