#include "stage/book/composer.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/result.h"
#include "stage/config/live_words.h"

namespace vpfs::stage {
namespace {

// Words of a rule that are not of its virtual PFS's share.
constexpr std::string_view kNoShareWords[] = {"class", "mode", "vpfs", "exempt"};

// The first problem; the others follow in its text.
RuleProblem one_problem(const std::vector<RuleProblem>& problems) {
  RuleProblem all = problems.empty() ? RuleProblem{} : problems.front();
  for (std::size_t at = 1; at < problems.size(); ++at) {
    all.text += fmt::format("; {}: {}", problems[at].place, problems[at].text);
  }
  return all;
}

}  // namespace

class Composer::Work {
 public:
  Work(const Config& file, RuleParser parse, Parsed& parsed, const ParsedRules* read)
      : file_(file), parse_(parse), parsed_(parsed), read_(read) {
    made_.config = file;
    made_.config.rules.clear();
    nearby_ = context_without_names(file);
    for (std::size_t at = 0; at < file.virtual_pfs.size(); ++at) {
      file_shares_.emplace(file.virtual_pfs[at].name, at);
      targets_.insert(file.virtual_pfs[at].name);
    }
    targets_.insert("default");
    for (const RuleConfig& rule : file.rules) file_rules_.insert(rule.name);
  }

  void add_shares(const LiveSet& administrators) {
    for (const auto& share : administrators.shares) {
      if (const std::optional<RuleProblem> problem =
              share->overrides ? override_share(*share) : declare(*share)) {
        suspend(share->virtual_pfs, RuleOrigin::administrator, *problem);
      }
    }
  }

  void add_rule(const std::shared_ptr<const LiveRule>& rule) {
    rules_.push_back({rule, {}});
    if (rule->origin != RuleOrigin::coordinator) local_.emplace(rule->text.name, rule.get());
  }

  // Rules that declare a virtual PFS are read before those that send to one.
  void read_rules() {
    for (const bool declares : {true, false}) {
      for (Rule& rule : rules_) {
        if (value_of(rule.live->text.words, "vpfs").has_value() == declares) continue;
        if (const std::optional<RuleProblem> problem = read(rule)) {
          suspend(rule.live->text.name, rule.live->origin, *problem);
        }
      }
    }
    for (Rule& rule : rules_) {
      if (rule.config) made_.config.rules.push_back(std::move(*rule.config));
    }
    for (const RuleConfig& rule : file_.rules) {
      const auto changed = changed_rules_.find(&rule);
      if (changed == changed_rules_.end()) {
        made_.config.rules.push_back(rule);
      } else {
        made_.config.rules.push_back(std::move(changed->second));
      }
    }
  }

  void add_jobs(const BookState& state) {
    std::vector<RegisteredJob>& all = made_.config.jobs;
    if (!state.jobs.empty()) {
      std::erase_if(all, [&](const RegisteredJob& job) { return state.jobs.contains(job.jobid); });
    }
    std::unordered_set<std::string_view> of_file;
    if (!state.site_jobs.empty()) {
      for (const RegisteredJob& job : file_.jobs) of_file.insert(job.jobid);
    }
    all.reserve(all.size() + state.jobs.size() + state.site_jobs.size());
    for (const auto& [id, job] : state.jobs) all.push_back(job.job);
    for (const auto& [id, job] : state.site_jobs) {
      if (!state.jobs.contains(id) && !of_file.contains(id)) all.push_back(job.job);
    }
  }

  Composed take_made() { return std::move(made_); }
  Parsed take_parsed() { return std::move(kept_); }

 private:
  struct Rule {
    std::shared_ptr<const LiveRule> live;  // also the book's
    std::optional<RuleConfig> config;      // none: it is suspended
  };

  void suspend(const std::string& name, RuleOrigin origin, const RuleProblem& problem) {
    made_.suspended.push_back(
        {.name = name, .origin = origin, .place = problem.place, .text = problem.text});
  }

  std::optional<RuleProblem> override_share(const LiveShare& share) {
    std::vector<VirtualPfsConfig>& all = made_.config.virtual_pfs;
    const auto found = file_shares_.find(share.virtual_pfs);
    if (found == file_shares_.end() && share.virtual_pfs != "default") {
      return RuleProblem{"NAME", "the configuration file has no virtual PFS of this name any more"};
    }
    const std::size_t place = found == file_shares_.end() ? all.size() : found->second;
    VirtualPfsConfig old = {.name = "default", .share = {}};
    const auto at = [&] { return all.begin() + static_cast<std::ptrdiff_t>(place); };
    if (found != file_shares_.end()) {
      old = std::move(all[place]);
      all.erase(at());
    }
    const RuleConfig* const rule = declaring_rule(file_, share.virtual_pfs);
    auto changed = changed_share(old, rule, share.words, made_.config, parse_);
    if (changed) {
      all.insert(at(), std::move(changed->share));
      if (auto& ours = changed->rule) changed_rules_.emplace(rule, std::move(*ours));
      return std::nullopt;
    }
    if (found != file_shares_.end()) all.insert(at(), std::move(old));
    return one_problem(changed.error());
  }

  std::optional<RuleProblem> declare(const LiveShare& share) {
    if (targets_.contains(share.virtual_pfs)) {
      return RuleProblem{"NAME", "the configuration file declares a virtual PFS of this name too"};
    }
    auto made = changed_share({.name = share.virtual_pfs, .share = {}}, nullptr, share.words,
                              made_.config, parse_);
    if (!made) return one_problem(made.error());
    targets_.insert(share.virtual_pfs);
    made_.config.virtual_pfs.push_back(std::move(made->share));
    return std::nullopt;
  }

  std::optional<RuleProblem> read(Rule& rule) {
    const RuleText& text = rule.live->text;
    const std::optional<std::string_view> target = value_of(text.words, "vpfs");
    if (file_rules_.contains(text.name)) {
      return RuleProblem{"NAME", "the configuration file has a rule of this name too"};
    }
    const auto local = local_.find(text.name);
    if (rule.live->origin == RuleOrigin::coordinator && local != local_.end()) {
      return RuleProblem{"NAME", fmt::format("the rule '{}' of {} is here, and goes before the "
                                             "coordinator's of this name",
                                             text.name, local->second->by)};
    }
    if (target && !file_.is_site && !targets_.contains(*target)) {
      return RuleProblem{"vpfs", fmt::format("'{}' is not declared", *target)};
    }
    if (!target && targets_.contains(text.name)) {
      return RuleProblem{"NAME", "there is another virtual PFS of this name"};
    }
    auto known = parsed_.extract(rule.live);
    if (known.empty()) {
      auto parsed = parse(text, target);
      if (!parsed) return one_problem(parsed.error());
      known = keep(rule.live, std::move(*parsed));
    }
    const ParsedRule& parsed = known.mapped();
    rule.config = parsed.rule;
    rule.config->name = text.name;
    rule.config->origin = rule.live->origin;
    if (parsed.declares) {
      made_.config.virtual_pfs.push_back(*parsed.declares);
      if (rule.live->origin != RuleOrigin::job) targets_.insert(text.name);
    }
    kept_.insert(std::move(known));
    return std::nullopt;
  }

  // Its names were looked at: the time to read a rule does not depend on the number of others.
  // Promises are the exception: all of them have to fit together.
  std::expected<ParsedRule, std::vector<RuleProblem>> parse(
      const RuleText& text, const std::optional<std::string_view>& target) {
    if (!target && may_promise(text)) return parse_(text, made_.config);
    if (const ParsedRule* const known = read_ == nullptr ? nullptr : read_->find(text)) {
      return *known;
    }
    nearby_.virtual_pfs.clear();
    if (target) nearby_.virtual_pfs.push_back({.name = std::string(*target), .share = {}});
    return parse_(text, nearby_);
  }

  static Parsed::node_type keep(const std::shared_ptr<const LiveRule>& rule, ParsedRule parsed) {
    Parsed one;
    one.emplace(rule, std::move(parsed));
    return one.extract(one.begin());
  }

  const Config& file_;
  RuleParser parse_;
  Parsed& parsed_;
  const ParsedRules* const read_;
  Parsed kept_;
  Config nearby_;  // with the virtual PFS that the rule at hand sends to
  Composed made_;
  std::vector<Rule> rules_;
  // Names, which the file's configuration and the live rules keep.
  std::unordered_map<std::string_view, std::size_t> file_shares_;
  std::unordered_set<std::string_view> file_rules_;
  std::unordered_map<std::string_view, const LiveRule*> local_;      // live rules made here
  std::unordered_set<std::string_view> targets_;                     // of `vpfs=`
  std::unordered_map<const RuleConfig*, RuleConfig> changed_rules_;  // by that of the file
};

Composer::Composed Composer::compose(const Config& file, const LiveSet& administrators,
                                     const BookState& state, const ParsedRules* read) {
  Work work(file, parse_, parsed_, read);
  work.add_shares(administrators);
  for (const auto& rule : administrators.rules) work.add_rule(rule);
  for (const auto& [id, job] : state.jobs) {
    if (job.rule) work.add_rule(job.rule);
  }
  for (const auto& rule : state.coordinators) work.add_rule(rule);
  work.read_rules();
  work.add_jobs(state);
  parsed_ = work.take_parsed();
  return work.take_made();
}

std::vector<Suspended> newly_suspended(const std::vector<Suspended>& before,
                                       const std::vector<Suspended>& after) {
  std::set<std::pair<std::string_view, RuleOrigin>> known;
  for (const Suspended& each : before) known.emplace(each.name, each.origin);
  std::vector<Suspended> found;
  std::ranges::copy_if(after, std::back_inserter(found), [&](const Suspended& each) {
    return !known.contains({each.name, each.origin});
  });
  return found;
}

const RuleConfig* declaring_rule(const Config& file, std::string_view virtual_pfs) {
  const auto found = std::ranges::find(file.rules, virtual_pfs, &RuleConfig::name);
  const bool declares = found != file.rules.end() && found->virtual_pfs == found->name &&
                        !value_of(found->text.words, "vpfs");
  return declares ? &*found : nullptr;
}

Config without(const Config& config, std::string_view virtual_pfs) {
  Config made = config;
  std::erase_if(made.virtual_pfs,
                [&](const VirtualPfsConfig& each) { return each.name == virtual_pfs; });
  return made;
}

std::expected<ChangedShare, std::vector<RuleProblem>> changed_share(
    const VirtualPfsConfig& share, const RuleConfig* declaring,
    const std::vector<std::string>& changes, const Config& context, RuleParser parse) {
  for (const std::string& word : changes) {
    if (std::ranges::find(kNoShareWords, word_key(word)) == std::end(kNoShareWords)) continue;
    return std::unexpected(
        std::vector{RuleProblem{std::string(word_key(word)), "is not a word of a share"}});
  }
  // "default" is what a share has as its name that belongs to no rule.
  RuleText text = {.name = "default", .condition = "", .words = words_of_share(share)};
  if (declaring != nullptr) text = declaring->text;
  text.words = with_changes(std::move(text.words), changes);
  auto parsed = parse(text, context);
  VPFS_TRY(parsed);
  std::optional<VirtualPfsConfig>& declares = parsed->declares;
  VPFS_ASSERT(declares);
  ChangedShare made = {.share = std::move(*declares), .rule = std::nullopt};
  made.share.name = share.name;
  if (declaring != nullptr) {
    made.rule = std::move(parsed->rule);
    made.rule->origin = RuleOrigin::administrator;
  }
  return made;
}

}  // namespace vpfs::stage
