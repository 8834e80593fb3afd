#include "control/host/control_side.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <asio/post.hpp>
#include <fmt/format.h>

#include "base/result.h"
#include "base/version.h"
#include "control/admin/flow_reports.h"
#include "control/metrics/http_source.h"
#include "control/metrics/http_tls.h"
#include "control/wire/protocol.h"
#include "net/tls.h"
#include "stage/allocations.h"

namespace vpfs::control {
namespace {

// What a coordinator's connection was told, and the allocations of its present cycle.
struct CoordinatorLink final : Link {
  FlowReports reports;
  std::vector<stage::Allocation> allocations;
};

std::string cost_text(const CostModel::Settings& cost) {
  return fmt::format("per_request={} read_permille={} write_permille={} metadata={}",
                     cost.per_request.count, cost.read_factor_permille, cost.write_factor_permille,
                     cost.metadata.count);
}

// Fills in the allocations of flows that are known. Returns what no policy can do. Without
// `metadata_caps`, limits of metadata operations are left out.
std::optional<std::string> read_allocations(const Cycle& cycle, bool metadata_caps,
                                            CoordinatorLink& link) {
  link.allocations.clear();
  for (const Allocation& each : cycle.allocations()) {
    if (each.has_weight()) return "allocations[].weight";
    if (each.has_nodes()) return "allocations[].nodes";
    const auto id = link.reports.find(each.flow());
    if (!id) continue;
    stage::Allocation& allocation = link.allocations.emplace_back();
    allocation.id = *id;
    if (each.has_bytes_per_second()) {
      allocation.limits.bytes = BytesPerSecond{each.bytes_per_second()};
    }
    if (each.has_operations_per_second()) {
      allocation.limits.operations = each.operations_per_second();
    }
    if (each.has_metadata_operations_per_second() && metadata_caps) {
      allocation.limits.metadata_operations = each.metadata_operations_per_second();
    }
    if (each.has_elsewhere_total()) allocation.elsewhere_total = each.elsewhere_total();
  }
  return std::nullopt;
}

// Longer leases count as this one.
constexpr std::uint64_t kLongestLeaseUs = std::uint64_t{365} * 24 * 3600 * 1'000'000;

void refuse(Report& report, Error error) {
  report.set_applied(false);
  *report.mutable_refused() = std::move(error);
}

}  // namespace

ControlSide::ControlSide(Administrate administrate, StageGate& gate, Identity program,
                         asio::io_context& context, const Clock& clock)
    : administrate_(std::move(administrate)),
      gate_(gate),
      program_(std::move(program)),
      context_(context),
      clock_(clock),
      incarnation_(new_incarnation()) {}

Result<void> ControlSide::open(const HostConfig& config, const std::string& address,
                               net::Inherited* inherited) {
  introduce(config, address);
  look_at_certificate(config);
  VPFS_TRY(open_http(config, inherited));
  return open_port(config, inherited);
}

void ControlSide::look_at_certificate(const HostConfig& config) {
  certificate_end_.reset();
  if (config.control.certificate.empty()) return;
  if (const auto end = net::end_of_certificate(config.control.certificate)) certificate_end_ = *end;
}

Result<void> ControlSide::start() {
  if (port_ != nullptr) port_->start();
  return http_.start();
}

Result<void> ControlSide::open_http(const HostConfig& config, net::Inherited* inherited) {
  auto http = HttpPorts::open(config.http, config.control, http_source(*this, program_.not_ready),
                              std::string(version()), clock_, inherited, false);
  VPFS_TRY(http);
  http_ = std::move(*http);
  return {};
}

Result<void> ControlSide::open_port(const HostConfig& config, net::Inherited* inherited) {
  if (!config.control.enabled()) return {};
  Port::Options options;
  options.accounts = program_.accounts;
  options.inherited = inherited;
  Result<std::unique_ptr<Port>> port = Port::open(config.control, *this, clock_, options);
  VPFS_TRY(port);
  port_ = std::move(*port);
  return {};
}

void ControlSide::introduce(const HostConfig& config, const std::string& address) {
  Hello hello;
  hello.set_role(Hello::STAGE);
  hello.set_name(config.name.empty() ? address : config.name);
  hello.set_incarnation(incarnation_);
  for (const char* const each : {"rules", "jobs", "bypass", "site", "forward_as"}) {
    hello.add_capabilities(each);
  }
  const PolicyKind& policy = stage::policy_of(config);
  if (policy.caps) hello.add_capabilities("caps");
  // Metadata requests that do not wait their turn cannot be held.
  metadata_caps_ = policy.caps && config.schedule_metadata;
  if (metadata_caps_) hello.add_capabilities("metadata_caps");
  if (policy.elsewhere) hello.add_capabilities("elsewhere");
  hello.set_cost_model(cost_text(config.cost));
  hello.set_program(program_.name + " " + std::string(version()));
  const std::lock_guard lock(mutex_);
  hello_ = std::move(hello);
}

Result<void> ControlSide::reload(const HostConfig& config) {
  std::optional<HttpTls> tls;
  if (http_.has_tls()) {
    auto loaded = load_http_tls(config.control, program_.accounts);
    VPFS_TRY(loaded);
    tls = std::move(*loaded);
  }
  if (port_ != nullptr) {
    VPFS_TRY(port_->reload(config.control));
  } else {
    VPFS_TRY(open_port(config, nullptr));
    if (port_ != nullptr) port_->start();
  }
  if (tls) http_.use(std::move(*tls));
  look_at_certificate(config);
  return {};
}

void ControlSide::reopen_audit() {
  if (port_ != nullptr) port_->reopen_audit();
}

std::optional<DialledCoordinator> ControlSide::coordinator() const {
  return port_ == nullptr ? std::nullopt : port_->coordinator();
}

void ControlSide::stop() {
  if (port_ != nullptr) port_->stop();
  http_.close();
}

void ControlSide::leave() {
  if (port_ != nullptr) port_->leave();
  http_.close();
}

std::vector<std::pair<std::string, int>> ControlSide::descriptors() const {
  std::vector<std::pair<std::string, int>> all = http_.descriptors();
  if (port_ == nullptr) return all;
  const auto more = port_->descriptors();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Hello ControlSide::hello() const {
  const std::lock_guard lock(mutex_);
  Hello hello = hello_;
  hello.set_term(term_);
  return hello;
}

void ControlSide::ask(Envelope request, const Caller& caller, Answer answer) {
  asio::post(context_, [this, request = std::move(request), caller, answer = std::move(answer)] {
    administrate_(request, caller, answer);
  });
}

std::unique_ptr<Link> ControlSide::make_link(const Caller& /*caller*/) {
  return std::make_unique<CoordinatorLink>();
}

void ControlSide::refuse_cycles(bool refuses) {
  const std::lock_guard lock(cycles_);
  refuses_cycles_ = refuses;
}

std::optional<Error> ControlSide::apply(const Cycle& cycle,
                                        std::span<const stage::Allocation> allocations) {
  const std::lock_guard lock(cycles_);
  if (refuses_cycles_) {
    return make_error(Error::UNAVAILABLE, "allocations", "another process takes the stage over");
  }
  const stage::Cycle head = {
      .epoch = {.term = cycle.term(), .sequence = cycle.sequence()},
      .lease = std::chrono::microseconds(std::min(cycle.lease_us(), kLongestLeaseUs)),
      .complete = cycle.complete()};
  switch (gate_.allocate(head, allocations, clock_.now()).result) {
    case stage::CycleResult::applied:
      term_ = cycle.term();
      return std::nullopt;
    case stage::CycleResult::outdated:
      return make_error(Error::OUTDATED, "sequence",
                        fmt::format("a cycle of this or a later epoch was applied before; the "
                                    "last one has term {}",
                                    term_.load()));
    case stage::CycleResult::unsupported:
      return make_error(Error::UNSUPPORTED, "allocations",
                        "the policy cannot enforce these limits");
  }
  return std::nullopt;
}

void ControlSide::cycle(const Cycle& cycle, Link& link, CycleAnswer& answer) {
  auto& coordinator = static_cast<CoordinatorLink&>(link);
  Report& report = answer.report;
  report.set_applied(true);
  const bool asks_only = cycle.allocations_size() == 0 && !cycle.complete();
  if (const auto impossible = read_allocations(cycle, metadata_caps_, coordinator)) {
    refuse(report, make_error(Error::UNSUPPORTED, *impossible, "this stage cannot set it"));
  } else if (cycle.allocations_size() > 0 && cycle.lease_us() == 0) {
    refuse(report,
           make_error(Error::INVALID, "lease_us", "limits without a lease would end at once"));
  } else if (!asks_only) {
    if (auto refused = apply(cycle, coordinator.allocations)) refuse(report, std::move(*refused));
  }
  if (cycle.want_report()) coordinator.reports.add(gate_, clock_.now(), answer.flows, report);
}

}  // namespace vpfs::control
