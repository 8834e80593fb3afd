#include "stage/book/operation.h"

#include <string_view>

#include <fmt/format.h>

#include "base/units.h"
#include "stage/config/live_words.h"

namespace vpfs::stage {
namespace {

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

struct Speller {
  WallTime at;

  [[nodiscard]] std::string duration(WallTime until) const {
    return without_spaces(to_string(Duration(until - at)));
  }
  [[nodiscard]] std::string lasting(const std::optional<WallTime>& until) const {
    return until ? " for=" + duration(*until) : "";
  }
  [[nodiscard]] std::string lasting(const UntilChange& until) const {
    if (!until) return "";
    return *until ? lasting(*until) : " for=none";
  }
  [[nodiscard]] static std::string spaced(const std::vector<std::string>& words) {
    return words.empty() ? "" : " " + words_line(words);
  }

  std::string operator()(const StartRule& start) const {
    return "rule start " + rule_line(start.rule) + lasting(start.until);
  }
  std::string operator()(const ChangeRule& change) const {
    return fmt::format("rule change {}{}{}", words_line({change.name}), spaced(change.words),
                       lasting(change.until));
  }
  std::string operator()(const ChangeShare& change) const {
    return fmt::format("rule change {}{}{}", words_line({change.virtual_pfs}), spaced(change.words),
                       lasting(change.until));
  }
  std::string operator()(const StopRule& stop) const {
    return "rule stop " + words_line({stop.name});
  }
  std::string operator()(const StopShare& stop) const {
    return "rule stop " + words_line({stop.virtual_pfs});
  }
  std::string operator()(const ApplySet& apply) const {
    return fmt::format("rule apply ({} rules)", apply.rules.size());
  }
  std::string operator()(const Confirm&) const { return "rule confirm"; }
  std::string operator()(const Rollback& rollback) const {
    return fmt::format("rule rollback {}", rollback.version);
  }
  std::string operator()(const StartJob& start) const {
    return "job start " + words_line({start.job.jobid}) + spaced(start.words);
  }
  std::string operator()(const StopJob& stop) const {
    return "job stop " + words_line({stop.jobid});
  }
  std::string operator()(const ReplaceSite& site) const {
    return fmt::format("site {} ({} rules, {} jobs)", words_line({site.site}), site.rules.size(),
                       site.jobs.size());
  }
  std::string operator()(const SetBypass& bypass) const {
    return fmt::format("bypass {}{}", bypass.on ? "on" : "off", lasting(bypass.until));
  }
  std::string operator()(const Expire&) const { return "end what is due"; }
};

}  // namespace

std::string command_of(const BookOperation& operation) {
  const Speller speller{.at = operation.at};
  std::string command = std::visit(speller, operation.what);
  if (operation.confirm_by) command += " --confirm " + speller.duration(*operation.confirm_by);
  return command;
}

}  // namespace vpfs::stage
