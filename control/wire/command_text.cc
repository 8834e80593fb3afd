#include "control/wire/command_text.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/utf8.h"
#include "control/wire/protocol.h"

namespace vpfs::control {
namespace {

constexpr std::size_t kMostText = 4096;

// Words with a space between; quoted where a shell would need it.
class Words {
 public:
  explicit Words(std::string_view first) : text_(first) {}

  void add(std::string_view word) {
    if (text_.size() > kMostText) return;
    const bool plain = !word.empty() && word.find_first_of(" \t\n\"'\\") == std::string_view::npos;
    text_ += plain ? fmt::format(" {}", word) : fmt::format(" '{}'", word);
  }
  void add(std::string_view option, std::string_view value) {
    if (value.empty()) return;
    add(option);
    add(value);
  }
  void add(std::string_view option, std::uint64_t value) {
    if (value != 0) add(option, std::string_view(std::to_string(value)));
  }
  template <typename List>
  void add_list(std::string_view option, const List& list) {
    std::string all;
    for (const auto& each : list) {
      if (all.size() > kMostText) break;
      all += fmt::format("{}{}", all.empty() ? "" : ",", each);
    }
    add(option, std::string_view(all));
  }
  template <typename List>
  void add_words(const List& list) {
    for (const std::string& each : list) add(std::string_view(each));
  }

  [[nodiscard]] std::string text() && {
    if (text_.size() <= kMostText) return std::move(text_);
    return std::string(utf8_prefix(text_, kMostText)) + "...";
  }

 private:
  std::string text_;
};

std::string lower(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

std::string rule_text(const Rule& rule) {
  Words words("rule " + lower(Rule::Action_Name(rule.action())));
  if (rule.action() == Rule::APPLY) {
    words.add(fmt::format("{} ({} bytes)", rule.file_name().empty() ? "-" : rule.file_name(),
                          rule.file().size()));
    if (rule.dry_run()) words.add("--dry-run");
    words.add("--confirm", rule.confirm_seconds());
  } else if (rule.action() == Rule::ROLLBACK) {
    words.add(std::to_string(rule.version()));
  }
  if (!rule.name().empty()) words.add(rule.name());
  if (!rule.condition().empty()) words.add(rule.condition());
  words.add_words(rule.words());
  return std::move(words).text();
}

std::string job_text(const Job& job) {
  Words words("job " + lower(Job::Action_Name(job.action())));
  if (!job.jobid().empty()) words.add(job.jobid());
  words.add("--nodes", job.nodes());
  words.add_list("--uid", job.uids());
  words.add_list("--gid", job.gids());
  words.add_list("--clients", job.clients());
  words.add("--account", job.account());
  words.add("--time-limit", job.time_limit_seconds());
  words.add_words(job.words());
  return std::move(words).text();
}

}  // namespace

std::string command_text(const Envelope& request) {
  switch (request.body_case()) {
    case Envelope::kRule:
      return rule_text(request.rule());
    case Envelope::kJob:
      return job_text(request.job());
    case Envelope::kBypass: {
      Words words(request.bypass().on() ? "bypass on" : "bypass off");
      words.add("--for", request.bypass().for_seconds());
      return std::move(words).text();
    }
    case Envelope::kRecord: {
      Words words("record " + lower(Record::Action_Name(request.record().action())));
      words.add("--size", request.record().bytes());
      words.add("--for", request.record().for_seconds());
      return std::move(words).text();
    }
    case Envelope::kInForce:
      return "config";
    case Envelope::kPast: {
      Words words(request.past().name().empty() ? "fairness" : "why");
      if (!request.past().name().empty()) words.add(request.past().name());
      return std::move(words).text();
    }
    case Envelope::kSeries:
      return "series";
    case Envelope::kLedger: {
      Words words("ledger");
      if (!request.ledger().name().empty()) words.add(request.ledger().name());
      return std::move(words).text();
    }
    case Envelope::kWhy: {
      Words words("who");
      if (!request.why().who().empty()) words.add(request.why().who());
      return std::move(words).text();
    }
    case Envelope::kForward: {
      const Forward& forward = request.forward();
      // One inside another is refused.
      Words words("forward " + (forward.request().has_forward() ? std::string("forward")
                                                                : command_text(forward.request())));
      words.add_list("--stage", forward.stages());
      return std::move(words).text();
    }
    case Envelope::kSite: {
      Words words("site");
      if (!request.site().origin().empty()) words.add(request.site().origin());
      words.add(fmt::format("({} rules, {} jobs)", request.site().rules_size(),
                            request.site().jobs_size()));
      return std::move(words).text();
    }
    default:
      return std::string(body_name(request));
  }
}

}  // namespace vpfs::control
