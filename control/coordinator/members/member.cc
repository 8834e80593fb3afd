#include "control/coordinator/members/member.h"

#include <utility>

#include <asio/post.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "base/json_text.h"
#include "base/signal_block.h"
#include "control/coordinator/members/members_port.h"
#include "control/site/site_metrics.h"
#include "control/wire/leader/address_list.h"

namespace vpfs::coordinator {

namespace {

// Its cycles are those of the leader, which has a log of them.
Coordinator::Options without_log(Coordinator::Options options) {
  options.cycle_log.clear();
  return options;
}

}  // namespace

Member::Member(const Parts& parts)
    : config_(member_config(parts.config)),
      options_(without_log(parts.options)),
      name_(parts.name),
      work_(asio::make_work_guard(context_)),
      store_(parts.store,
             [this](std::function<void()> what) { asio::post(context_, std::move(what)); }) {}

Result<std::unique_ptr<Member>> Member::start(const Parts& parts) {
  std::unique_ptr<Member> member(new Member(parts));
  auto coordinator =
      Coordinator::make({.context = member->context_,
                         .clock = parts.clock,
                         .config = member->config_,
                         .options = member->options_,
                         .incarnation = parts.incarnation,
                         .clear_from = TimePoint::min(),
                         .records = {},
                         .store = member->store_,
                         .over = [](const std::string& /*why*/) {},
                         .store_problem = [] { return std::string(); },
                         .part = ServedPart(member->name_, stage_addresses_of(parts.config))});
  VPFS_TRY(coordinator);
  member->coordinator_ = std::move(*coordinator);
  member->tcp_endpoint_ = member->coordinator_->tcp_endpoint();
  const SignalBlock block;
  member->thread_ = std::thread([&self = *member] {
    self.coordinator_->start();
    self.context_.run();
    self.coordinator_->stop();
  });
  return member;
}

Member::~Member() {
  context_.stop();
  if (thread_.joinable()) thread_.join();
  store_.end();
}

void Member::follow(const std::vector<std::string>& leader) {
  auto addresses = control::parse_addresses(leader);
  asio::post(context_, [this, addresses = std::move(addresses)] {
    coordinator_->follow(addresses.value_or(std::vector<control::PortAddress>()));
  });
}

void Member::follow_none() {
  asio::post(context_, [this] { coordinator_->follow_none(); });
}

bool Member::has_turned() {
  if (!has_turned_.exchange(false)) return false;
  asio::post(context_, [this] { has_turned_ = true; });
  return true;
}

void Member::answer_status(std::string status, control::Answer answer) {
  asio::post(context_, [this, status = std::move(status), answer = std::move(answer)] {
    control::Envelope reply;
    reply.mutable_status_reply()->set_json(with_own_part(status));
    answer(std::move(reply));
  });
}

void Member::give_metrics(MakeText others, std::function<void(MakeText)> give) {
  asio::post(context_, [this, others = std::move(others), give = std::move(give)] {
    const ServedPart& part = *coordinator_->part();
    const MemberState state = {.epoch = part.view().epoch,
                               .members = part.view().members.size(),
                               .takes_part = part.takes_part()};
    give([others, state, numbers = coordinator_->numbers()] {
      return others() + member_metrics(numbers, state);
    });
  });
}

std::string Member::with_own_part(const std::string& status) {
  using nlohmann::ordered_json;
  ordered_json whole = ordered_json::parse(status, nullptr, false);
  const ordered_json of_part = ordered_json::parse(coordinator_->status(), nullptr, false);
  if (!whole.is_object() || !of_part.is_object()) return status;
  const members::View& view = coordinator_->part()->view();
  ordered_json member;
  member["name"] = name_;
  member["view"] = view.epoch;
  member["takes_part"] = coordinator_->part()->takes_part();
  ordered_json names = ordered_json::array();
  for (const members::Member& each : view.members) names.push_back(each.name);
  member["members"] = std::move(names);
  for (const char* const key : {"policy_problem", "sequence", "capacity", "in_force", "cycles",
                                "connections", "parent", "stages", "jobs"}) {
    if (const auto place = of_part.find(key); place != of_part.end()) member[key] = *place;
  }
  whole["member"] = std::move(member);
  return json_text(whole, 2) + "\n";
}

}  // namespace vpfs::coordinator
