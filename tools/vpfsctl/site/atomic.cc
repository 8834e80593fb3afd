#include "tools/vpfsctl/site/atomic.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace vpfs::ctl {
namespace {

bool is_done(const ProxyAnswer& answer) {
  return answer.outcome == Outcome::done;
}

control::Envelope confirmation() {
  control::Envelope request;
  request.mutable_rule()->set_action(control::Rule::CONFIRM);
  return request;
}

void set(ProxyAnswer& answer, Outcome outcome, std::string code, std::string text) {
  answer.outcome = outcome;
  answer.code = std::move(code);
  answer.place.clear();
  answer.text = std::move(text);
  answer.reply.Clear();
}

control::Envelope listing() {
  control::Envelope request;
  request.mutable_rule()->set_action(control::Rule::LIST);
  return request;
}

bool is_pending(const ProxyAnswer& applied) {
  return is_done(applied) && applied.reply.rule_reply().confirm_by_at() != 0 &&
         applied.reply.rule_reply().version() > 0;
}

// REQUIRES: is_pending(applied). The version before it is the one that the proxy goes back to.
control::Envelope rollback(const ProxyAnswer& applied) {
  control::Envelope request;
  request.mutable_rule()->set_action(control::Rule::ROLLBACK);
  request.mutable_rule()->set_version(applied.reply.rule_reply().version() - 1);
  return request;
}

// Takes the change back at the proxies that have it.
void roll_back(std::vector<ProxyAnswer>& answers, std::uint64_t seconds, const AskSome& ask) {
  std::string why;
  std::vector<Question> questions;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ProxyAnswer& answer = answers[i];
    if (is_pending(answer)) questions.push_back({.proxy = i, .request = rollback(answer)});
    if (is_done(answer)) continue;
    if (why.empty()) why = fmt::format("{}: {}", answer.name, answer.text);
    if (answer.outcome == Outcome::unreachable) {
      answer.text += fmt::format(
          " (if the change has arrived there, it is rolled back by itself within {} s)", seconds);
    }
  }
  for (ProxyAnswer& answer : answers) {
    if (!is_done(answer) || is_pending(answer)) continue;
    // To go back a version here could undo the change of another administrator.
    set(answer, Outcome::refused, "kept",
        "the change waits for no confirmation there: it changed nothing, or it stays; because of " +
            why + " it was not made everywhere");
  }
  if (questions.empty()) return;
  const std::vector<ProxyAnswer> undone = ask(questions);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    ProxyAnswer& answer = answers[questions[i].proxy];
    if (is_done(undone[i])) {
      set(answer, Outcome::refused, "rolled_back", "applied and rolled back, because of " + why);
    } else {
      set(answer, Outcome::refused, "pending",
          fmt::format(
              "applied; it is rolled back by itself within {} s, because of {}; to do it at "
              "once failed: {}",
              seconds, why, undone[i].text));
    }
  }
}

// Whether the change is there for good, although the answer to its confirmation was lost.
bool is_confirmed(const ProxyAnswer& applied, const ProxyAnswer& listed) {
  return is_done(listed) && listed.reply.rule_reply().confirm_by_at() == 0 &&
         listed.reply.rule_reply().version() == applied.reply.rule_reply().version();
}

// Confirms where it is waited for. Where the first answer is lost, the second is a refusal if the
// first confirmation arrived; then the list of rules tells.
void confirm(std::vector<ProxyAnswer>& answers, std::uint64_t seconds, const AskSome& ask) {
  std::vector<Question> open;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (is_pending(answers[i])) open.push_back({.proxy = i, .request = confirmation()});
  }
  std::vector<ProxyAnswer> failures;
  for (int attempt = 0; attempt < 3 && !open.empty(); ++attempt) {
    const bool is_listing = attempt == 2;
    const std::vector<ProxyAnswer> replies = ask(open);
    std::vector<Question> still;
    std::vector<ProxyAnswer> failed;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const bool good =
          is_listing ? is_confirmed(answers[open[i].proxy], replies[i]) : is_done(replies[i]);
      if (good) continue;
      still.push_back(
          {.proxy = open[i].proxy, .request = attempt == 1 ? listing() : confirmation()});
      failed.push_back(is_listing ? failures[i] : replies[i]);
    }
    open = std::move(still);
    failures = std::move(failed);
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    set(answers[open[i].proxy], failures[i].outcome, "pending",
        fmt::format("applied, but the confirmation failed: {}; unless it arrived, the change is "
                    "rolled back by itself within {} s",
                    failures[i].text, seconds));
  }
  for (ProxyAnswer& answer : answers) {
    if (is_done(answer) && answer.reply.has_rule_reply()) {
      answer.reply.mutable_rule_reply()->set_confirm_by_at(0);
    }
  }
}

}  // namespace

std::uint64_t confirm_seconds(std::chrono::nanoseconds timeout) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(timeout).count();
  // Applying, confirming twice and looking, and as much again.
  return std::max<std::uint64_t>(30, 8 * static_cast<std::uint64_t>(seconds));
}

std::vector<ProxyAnswer> change_all(std::size_t count, control::Envelope request,
                                    std::uint64_t seconds, const AskSome& ask) {
  const bool is_left_to_caller = request.rule().confirm_seconds() != 0;
  if (is_left_to_caller) {
    seconds = request.rule().confirm_seconds();
  } else {
    request.mutable_rule()->set_confirm_seconds(seconds);
  }
  std::vector<Question> questions;
  for (std::size_t i = 0; i < count; ++i) questions.push_back({.proxy = i, .request = request});
  std::vector<ProxyAnswer> answers = ask(questions);
  if (!std::ranges::all_of(answers, is_done)) {
    roll_back(answers, seconds, ask);
  } else if (!is_left_to_caller) {
    confirm(answers, seconds, ask);
  }
  return answers;
}

}  // namespace vpfs::ctl
