#include "control/site/site_stages.h"

#include <algorithm>
#include <utility>

#include <asio/post.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "control/wire/protocol.h"

namespace vpfs::coordinator {
namespace {

constexpr const char* kTooOld =
    "does not take rules of a coordinator: its program is an older version";

}  // namespace

void SiteStages::joined(allocation::StageId id) {
  left(id);
  Stage& stage = stages_[id.index];
  stage.member.id = id;
  stage.member.hello = &requests_->hello(id);
  stage.connection = ++connections_;
  if (!stage.member.hello->takes_site) stage.member.problem = kTooOld;
  ask(stage);
  send_some();
}

void SiteStages::left(allocation::StageId id) {
  const auto place = stages_.find(id.index);
  if (place == stages_.end()) return;
  set_asked(place->second, false);
  stages_.erase(place);
  tell_those_who_wait();
}

bool SiteStages::set(control::Site site) {
  site.clear_term();
  std::string text = site.SerializeAsString();
  if (version_ != 0 && text == text_) return false;
  text_ = std::move(text);
  *site_.mutable_site() = std::move(site);
  ++version_;
  for (auto& [index, stage] : stages_) {
    stage.member.has_newest = false;
    ask(stage);
  }
  send_some();
  return true;
}

void SiteStages::tick() {
  const TimePoint now = clock_.now();
  for (auto& [index, stage] : stages_) {
    if (stage.again_at && *stage.again_at <= now) ask(stage);
  }
  send_some();
}

void SiteStages::set_asked(Stage& stage, bool is_asked) {
  if (std::exchange(stage.member.is_asked, is_asked) == is_asked) return;
  is_asked ? ++asked_ : --asked_;
}

// At most one is under way: the answer to it is followed by the newest.
void SiteStages::ask(Stage& stage) {
  stage.again_at.reset();
  if (version_ == 0 || stage.member.is_asked || !stage.member.hello->takes_site) return;
  set_asked(stage, true);
  due_.push_back({.stage = stage.member.id.index, .connection = stage.connection});
}

void SiteStages::send_some() {
  if (goes_on_) return tell_those_who_wait();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < limits_.stages_at_once && !due_.empty(); ++i) {
    const Due next = due_.front();
    due_.pop_front();
    const auto place = stages_.find(next.stage);
    if (place == stages_.end() || place->second.connection != next.connection) continue;
    send(place->second);
    bytes += text_.size();
    if (bytes >= limits_.bytes_at_once) break;
  }
  tell_those_who_wait();
  if (due_.empty()) return;
  goes_on_ = true;
  asio::post(context_, [this] {
    goes_on_ = false;
    send_some();
  });
}

void SiteStages::send(Stage& stage) {
  Member& member = stage.member;
  if (text_.size() > limits_.most_bytes) {
    member.problem = fmt::format("the rules and jobs of the site have {} bytes, a stage takes {}",
                                 text_.size(), limits_.most_bytes);
    return set_asked(stage, false);
  }
  if (may_send_ && !may_send_()) {
    member.problem = "was not sent the rules: this coordinator may lead no more";
    stage.again_at = clock_.now();
    return set_asked(stage, false);
  }
  if (term_) site_.mutable_site()->set_term(term_());
  stage.version = version_;
  requests_->ask(
      member.id, site_, limits_.patience,
      [this, id = member.id, connection = stage.connection, version = version_](
          const control::Envelope& answer) { answered(id, connection, version, answer); });
}

void SiteStages::answered(allocation::StageId id, std::uint64_t connection, std::uint64_t version,
                          const control::Envelope& answer) {
  const auto place = stages_.find(id.index);
  if (place == stages_.end() || place->second.connection != connection) return;
  Stage& stage = place->second;
  Member& member = stage.member;
  set_asked(stage, false);
  member.warnings.clear();
  member.problem.clear();
  if (answer.has_ack()) {
    member.warnings.assign(answer.ack().warnings().begin(), answer.ack().warnings().end());
    member.has_newest = version == version_;
  } else {
    member.problem = answer.has_error() ? control::describe(answer.error()) : "gave another answer";
    spdlog::warn("stage {}: the site's rules: {}", member.hello->name, member.problem);
    if (answer.error().code() == control::Error::UNAVAILABLE) {
      stage.again_at = clock_.now() + limits_.pause;
    }
  }
  if (version != version_) ask(stage);
  send_some();
}

void SiteStages::when_answered(Duration patience, Told done) {
  const std::uint64_t number = ++last_waiting_;
  auto waiting = std::make_unique<Waiting>(asio::steady_timer(context_), std::move(done));
  waiting->timer.expires_after(patience);
  waiting->timer.async_wait([this, number](std::error_code error) {
    if (error) return;
    const auto place = waiting_.find(number);
    if (place == waiting_.end()) return;
    const Told told = std::move(place->second->done);
    waiting_.erase(place);
    told(lines());
  });
  waiting_.emplace(number, std::move(waiting));
  tell_those_who_wait();
}

void SiteStages::tell_those_who_wait() {
  if (waiting_.empty() || asked_ > 0) return;
  const std::vector<std::string> all = lines();
  for (auto& [number, waiting] : std::exchange(waiting_, {})) {
    asio::post(context_, [told = std::move(waiting->done), all] { told(all); });
  }
}

std::vector<SiteStages::Member> SiteStages::members() const {
  std::vector<Member> all;
  all.reserve(stages_.size());
  for (const auto& [index, stage] : stages_) all.push_back(stage.member);
  std::ranges::sort(all, {}, [](const Member& each) { return each.hello->name; });
  return all;
}

std::vector<std::string> SiteStages::lines() const {
  std::vector<std::string> lines;
  for (const Member& member : members()) {
    const std::string& name = member.hello->name;
    if (member.is_asked) {
      lines.push_back(fmt::format("{} has not answered yet", name));
    } else if (!member.hello->takes_site) {
      lines.push_back(fmt::format("{} {}", name, member.problem));
    } else if (!member.problem.empty()) {
      lines.push_back(fmt::format("{}: {}", name, member.problem));
    }
    for (const std::string& warning : member.warnings) {
      lines.push_back(fmt::format("{}: {}", name, warning));
    }
  }
  for (const AbsentStage& each : requests_->absent()) {
    lines.push_back(fmt::format("{} is not connected: it gets the rules when it comes",
                                each.name.empty() ? each.address : each.name));
  }
  if (lines.size() > limits_.most_lines) {
    const std::size_t more = lines.size() - limits_.most_lines;
    lines.resize(limits_.most_lines);
    lines.push_back(fmt::format("and {} more: `vpfsctl --coordinator ... status` has all", more));
  }
  return lines;
}

}  // namespace vpfs::coordinator
