#include "tools/vpfsctl/atomic.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace vpfs::ctl {
namespace {

bool is_done(const Answer& answer) {
  return answer.outcome == Outcome::done;
}

// Whether the change is in force until it is confirmed. A change that changed nothing is not.
bool waits(const Answer& answer) {
  return is_done(answer) && answer.reply.rule_reply().confirm_by_at() != 0;
}

control::Envelope confirmation() {
  control::Envelope request;
  request.mutable_rule()->set_action(control::Rule::CONFIRM);
  return request;
}

void set(Answer& answer, Outcome outcome, std::string code, std::string text) {
  answer.outcome = outcome;
  answer.code = std::move(code);
  answer.place.clear();
  answer.text = std::move(text);
  answer.reply.Clear();
}

control::Envelope rollback(const Answer& applied) {
  control::Envelope request;
  const std::uint64_t version = applied.reply.rule_reply().version();
  request.mutable_rule()->set_action(control::Rule::ROLLBACK);
  request.mutable_rule()->set_version(version > 0 ? version - 1 : 0);
  return request;
}

// Takes the change back at the proxies that have it.
void roll_back(std::vector<Answer>& answers, std::uint64_t seconds, const AskSome& ask) {
  std::string why;
  std::vector<Question> questions;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Answer& answer = answers[i];
    if (waits(answer)) questions.push_back({.proxy = i, .request = rollback(answer)});
    if (is_done(answer)) continue;
    if (why.empty()) why = fmt::format("{}: {}", answer.name, answer.text);
    if (answer.outcome == Outcome::unreachable) {
      answer.text += fmt::format(
          " (if the change has arrived there, it is rolled back by itself within {} s)", seconds);
    }
  }
  for (Answer& answer : answers) {
    if (!is_done(answer) || waits(answer)) continue;
    set(answer, Outcome::refused, "rolled_back",
        "nothing had to be changed here, and nothing was elsewhere, because of " + why);
  }
  if (questions.empty()) return;
  const std::vector<Answer> undone = ask(questions);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    Answer& answer = answers[questions[i].proxy];
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

// Confirms at all, twice where the first attempt was in vain.
void confirm(std::vector<Answer>& answers, std::uint64_t seconds, const AskSome& ask) {
  std::vector<Question> open;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (waits(answers[i])) open.push_back({.proxy = i, .request = confirmation()});
  }
  std::vector<Answer> failures;
  for (int attempt = 0; attempt < 2 && !open.empty(); ++attempt) {
    const std::vector<Answer> confirmed = ask(open);
    std::vector<Question> still;
    failures.clear();
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (is_done(confirmed[i])) continue;
      still.push_back(open[i]);
      failures.push_back(confirmed[i]);
    }
    open = std::move(still);
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    set(answers[open[i].proxy], failures[i].outcome, "pending",
        fmt::format("applied, but the confirmation failed: {}; unless it arrived, the change is "
                    "rolled back by itself within {} s",
                    failures[i].text, seconds));
  }
  for (Answer& answer : answers) {
    if (is_done(answer) && answer.reply.has_rule_reply()) {
      answer.reply.mutable_rule_reply()->set_confirm_by_at(0);
    }
  }
}

}  // namespace

std::uint64_t confirm_seconds(std::chrono::nanoseconds timeout) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(timeout).count();
  // Applying, rolling back or confirming twice, and as much again.
  return std::max<std::uint64_t>(30, 6 * static_cast<std::uint64_t>(seconds));
}

std::vector<Answer> change_all(std::size_t count, control::Envelope request, std::uint64_t seconds,
                               const AskSome& ask) {
  const bool is_left_to_caller = request.rule().confirm_seconds() != 0;
  if (is_left_to_caller) {
    seconds = request.rule().confirm_seconds();
  } else {
    request.mutable_rule()->set_confirm_seconds(seconds);
  }
  std::vector<Question> questions;
  for (std::size_t i = 0; i < count; ++i) questions.push_back({.proxy = i, .request = request});
  std::vector<Answer> answers = ask(questions);
  if (!std::ranges::all_of(answers, is_done)) {
    roll_back(answers, seconds, ask);
  } else if (!is_left_to_caller) {
    confirm(answers, seconds, ask);
  }
  return answers;
}

}  // namespace vpfs::ctl
