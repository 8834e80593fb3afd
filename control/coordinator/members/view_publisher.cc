#include "control/coordinator/members/view_publisher.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/joined.h"
#include "base/one_line.h"
#include "control/coordinator/members/messages.h"
#include "control/wire/protocol.h"

namespace vpfs::coordinator {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAnswersWithin = 500ms;
constexpr Duration kTellAgain = 100ms;

std::string names_of(const members::View& view) {
  std::vector<std::string> names;
  for (const members::Member& each : view.members) names.push_back(one_short_line(each.name));
  return joined(names, ", ");
}

}  // namespace

ViewPublisher::ViewPublisher(asio::io_context& context, const Clock& clock, std::uint64_t term,
                             std::function<void()> used_up)
    : clock_(clock),
      used_up_(std::move(used_up)),
      keeper_(term, clock.now()),
      view_timer_(context),
      retry_timer_(context) {}

void ViewPublisher::stop() {
  is_stopped_ = true;
  view_timer_.cancel();
  retry_timer_.cancel();
}

void ViewPublisher::joined(allocation::StageId member, const StageHello& hello) {
  connected_[member.index] = {.connection = ++connections_};
  keeper_.joined({.name = hello.name,
                  .stage_addresses = hello.member->stage_addresses,
                  .incarnation = hello.incarnation},
                 view_of(hello.member->view), clock_.now());
  look();
  // One that is not in the view keeps what it has until the next one, which has it.
  const auto is_it = [&](const members::Member& each) { return each.name == hello.name; };
  if (std::ranges::any_of(view().members, is_it)) tell(member.index);
  learn_cost_model(member, hello.cost_model);
}

void ViewPublisher::left(allocation::StageId member, const StageHello& hello) {
  connected_.erase(member.index);
  if (!has_given_model_) choose_cost_model();
  keeper_.left(hello.name, clock_.now());
  look();
}

void ViewPublisher::learn_cost_model(allocation::StageId member, const std::string& model) {
  const auto place = connected_.find(member.index);
  if (has_given_model_ || place == connected_.end() || place->second.cost_model == model) return;
  place->second.cost_model = one_short_line(model);
  choose_cost_model();
}

void ViewPublisher::choose_cost_model() {
  std::map<std::string, std::size_t> members;
  for (const auto& [number, each] : connected_) {
    if (!each.cost_model.empty()) ++members[each.cost_model];
  }
  std::string most;
  for (const auto& [model, count] : members) {
    const bool is_more = most.empty() || count > members[most];
    const bool is_as_before = !is_more && count == members[most] && model == cost_model_;
    if (is_more || is_as_before) most = model;
  }
  if (std::exchange(cost_model_, most) == most) return;
  ++version_;
  tell_all();
}

void ViewPublisher::look() {
  if (is_stopped_) return;
  if (const auto view = keeper_.next(clock_.now())) {
    spdlog::info("view {}: {} member{}: {}", view->epoch, view->members.size(),
                 view->members.size() == 1 ? "" : "s", names_of(*view));
    ++version_;
    tell_all();
  }
  if (keeper_.is_used_up()) return used_up_();
  const auto due = keeper_.due();
  if (!due) return;
  view_timer_.expires_at(*due);
  view_timer_.async_wait([this](std::error_code error) {
    if (!error) look();
  });
}

void ViewPublisher::tell_all() {
  for (const auto& [member, connected] : connected_) tell(member);
}

void ViewPublisher::tell(std::uint32_t member) {
  const auto place = connected_.find(member);
  if (is_stopped_ || place == connected_.end() || keeper_.view().epoch == 0) return;
  Connected& to = place->second;
  if (to.is_asked || to.told == version_) return;
  to.is_asked = true;
  control::Envelope request;
  *request.mutable_member_view() = to_message(keeper_.view());
  request.mutable_member_view()->set_cost_model(cost_model_);
  links_->ask(
      allocation::StageId{member}, request, kAnswersWithin,
      [this, member, version = version_, connection = to.connection](
          const control::Envelope& answer) { answered(member, connection, version, answer); });
}

void ViewPublisher::answered(std::uint32_t member, std::uint64_t connection, std::uint64_t version,
                             const control::Envelope& answer) {
  const auto place = connected_.find(member);
  if (is_stopped_ || place == connected_.end() || place->second.connection != connection) return;
  Connected& from = place->second;
  from.is_asked = false;
  if (answer.has_ack()) {
    from.told = version;
    from.problem.clear();
    return tell(member);
  }
  const std::string why = control::describe(answer.error());
  if (std::exchange(from.problem, why) != why) {
    spdlog::warn("the member {} does not take its view: {}",
                 links_->hello(allocation::StageId{member}).name, why);
  }
  retry_timer_.expires_after(kTellAgain);
  retry_timer_.async_wait([this](std::error_code error) {
    if (!error) tell_all();
  });
}

}  // namespace vpfs::coordinator
