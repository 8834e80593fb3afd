#include "proxy/control_side.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <asio/post.hpp>
#include <fmt/format.h>

#include "base/version.h"
#include "control/admin/flow_reports.h"
#include "control/metrics/http_source.h"
#include "control/wire/protocol.h"
#include "proxy/dispatcher_access.h"
#include "stage/allocations.h"

namespace vpfs::proxy {
namespace {

// What a coordinator's connection was told, and the allocations of its present cycle.
struct CoordinatorLink final : control::Link {
  CoordinatorLink(Dispatcher& dispatcher, const Clock& clock) : access(dispatcher, clock) {}

  DispatcherAccess access;
  control::FlowReports reports;
  std::vector<stage::Allocation> allocations;
};

std::string cost_text(const CostModel::Settings& cost) {
  return fmt::format("per_request={} read_permille={} write_permille={} metadata={}",
                     cost.per_request.count, cost.read_factor_permille, cost.write_factor_permille,
                     cost.metadata.count);
}

// Fills in the allocations of flows that are known. Returns what no policy can do. Without
// `metadata_caps`, limits of metadata operations are left out.
std::optional<std::string> read_allocations(const control::Cycle& cycle, bool metadata_caps,
                                            CoordinatorLink& link) {
  link.allocations.clear();
  for (const control::Allocation& each : cycle.allocations()) {
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

void refuse(control::Report& report, control::Error error) {
  report.set_applied(false);
  *report.mutable_refused() = std::move(error);
}

}  // namespace

ControlSide::ControlSide(control::Administration& administration, Dispatcher& dispatcher,
                         const SharedState& shared, asio::io_context& context)
    : administration_(administration),
      dispatcher_(dispatcher),
      shared_(shared),
      context_(context),
      incarnation_(control::new_incarnation()) {}

Result<void> ControlSide::open(const Config& config, const std::string& address) {
  introduce(config, address);
  if (config.http.enabled()) {
    const auto not_ready = [this] {
      return std::string(shared_.draining.load() ? "the proxy is draining" : "");
    };
    Result<std::unique_ptr<control::HttpPort>> http = control::HttpPort::open(
        config.http, control::http_source(*this, not_ready), std::string(version()), shared_.clock);
    if (!http) return std::unexpected(std::move(http.error()));
    http_ = std::move(*http);
  }
  return open_port(config);
}

Result<void> ControlSide::open_port(const Config& config) {
  if (!config.control.enabled()) return {};
  Result<std::unique_ptr<control::Port>> port =
      control::Port::open(config.control, *this, shared_.clock);
  if (!port) return std::unexpected(std::move(port.error()));
  port_ = std::move(*port);
  port_->start();
  return {};
}

void ControlSide::introduce(const Config& config, const std::string& address) {
  control::Hello hello;
  hello.set_role(control::Hello::STAGE);
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
  hello.set_program("vpfs-proxy " + std::string(version()));
  const std::lock_guard lock(mutex_);
  hello_ = std::move(hello);
}

Result<void> ControlSide::reload(const Config& config) {
  return port_ == nullptr ? open_port(config) : port_->reload(config.control);
}

std::optional<control::DialledCoordinator> ControlSide::coordinator() const {
  return port_ == nullptr ? std::nullopt : port_->coordinator();
}

void ControlSide::stop() {
  if (port_ != nullptr) port_->stop();
  http_.reset();
}

control::Hello ControlSide::hello() const {
  const std::lock_guard lock(mutex_);
  control::Hello hello = hello_;
  hello.set_term(term_);
  return hello;
}

void ControlSide::ask(control::Envelope request, const control::Caller& caller,
                      control::Answer answer) {
  asio::post(context_, [this, request = std::move(request), caller, answer = std::move(answer)] {
    administration_.ask(request, caller, answer);
  });
}

std::unique_ptr<control::Link> ControlSide::make_link(const control::Caller& /*caller*/) {
  return std::make_unique<CoordinatorLink>(dispatcher_, shared_.clock);
}

void ControlSide::cycle(const control::Cycle& cycle, control::Link& link,
                        control::CycleAnswer& answer) {
  auto& coordinator = static_cast<CoordinatorLink&>(link);
  control::Report& report = answer.report;
  report.set_applied(true);
  const bool asks_only = cycle.allocations_size() == 0 && !cycle.complete();
  if (const auto impossible = read_allocations(cycle, metadata_caps_, coordinator)) {
    refuse(report, control::make_error(control::Error::UNSUPPORTED, *impossible,
                                       "this stage cannot set it"));
  } else if (cycle.allocations_size() > 0 && cycle.lease_us() == 0) {
    refuse(report, control::make_error(control::Error::INVALID, "lease_us",
                                       "limits without a lease would end at once"));
  } else if (!asks_only) {
    const stage::Cycle head = {
        .epoch = {.term = cycle.term(), .sequence = cycle.sequence()},
        .lease = std::chrono::microseconds(std::min(cycle.lease_us(), kLongestLeaseUs)),
        .complete = cycle.complete()};
    const auto result =
        dispatcher_.allocate(head, coordinator.allocations, shared_.clock.now()).result;
    if (result == stage::CycleResult::applied) {
      term_ = cycle.term();
    } else if (result == stage::CycleResult::outdated) {
      refuse(report, control::make_error(
                         control::Error::OUTDATED, "sequence",
                         fmt::format("a cycle of this or a later epoch was applied before; the "
                                     "last one has term {}",
                                     term_.load())));
    } else if (result == stage::CycleResult::unsupported) {
      refuse(report, control::make_error(control::Error::UNSUPPORTED, "allocations",
                                         "the policy cannot enforce these limits"));
    }
  }
  if (cycle.want_report()) coordinator.reports.add(coordinator.access, answer.flows, report);
}

}  // namespace vpfs::proxy
