#include "stage/config/share_config.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "schedulers/policies/registry.h"
#include "stage/config/config_words.h"
#include "stage/rules/template_name.h"

namespace vpfs::stage {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kLongestLatency = hours(24);
constexpr BytesPerSecond kLeastRate = {1};
constexpr BytesPerSecond kMostRate = {Share::kMaxRate};
constexpr std::uint64_t kMostOperations = 1'000'000'000;
constexpr Bytes kMostFinish = {std::uint64_t{1} << 60U};
constexpr Duration kLongestFinish = hours(24 * 365);

// Reports a key that the policy would ignore.
bool allowed(ConfigReader& entry, std::string_view key, const Config& config, bool is_known) {
  if (!entry.has(key)) return false;
  if (is_known || config.is_site) return true;
  entry.report(key, fmt::format("would be ignored by the policy {}", policy_of(config).name));
  return false;
}
bool allowed(ConfigReader& entry, std::string_view key, const Config& config, ShareField field) {
  return allowed(entry, key, config, policy_of(config).knows(field));
}

// The one of two words for the same that the entry has.
std::string_view spelling(ConfigReader& entry, std::string_view word, std::string_view other) {
  const bool has_word = entry.has(word);
  if (!entry.has(other)) return word;
  if (!has_word) return other;
  entry.report(other, fmt::format("is another word for `{}`, which is given too", word));
  return word;
}

// A number of operations: "2000", "2k", "1.5M".
bool read_count(ConfigReader& entry, std::string_view key, std::uint64_t* value) {
  std::string text;
  const bool is_short = entry.is_scalar(key) && entry.get(key, &text) && !text.empty() &&
                        std::string_view("kKMG").contains(text.back());
  if (!is_short) return entry.get(key, value, 1, kMostOperations);
  const Result<Bytes> count = parse_bytes(text + "B");  // the same prefixes
  if (!count) {
    entry.report(
        key, fmt::format("\"{}\" is not a whole number: expected one such as 2000 or 2k", text));
    return false;
  }
  if (count->count < 1 || count->count > kMostOperations) {
    entry.report(key, fmt::format("\"{}\" is out of range: 1 to {}", text, kMostOperations));
    return false;
  }
  *value = count->count;
  return true;
}

struct HasLimits {
  bool rate = false;
  bool operations = false;
};

// `may_have`: whether a word is allowed.
template <typename MayHave>
HasLimits read_limits(ConfigReader& entry, MayHave may_have, Share& share) {
  HasLimits has;
  has.rate =
      may_have("rate", ShareField::rate) && entry.get("rate", &share.rate, kLeastRate, kMostRate);
  const std::string_view operations = spelling(entry, "operations", "iops");
  has.operations = may_have(operations, ShareField::operations) &&
                   read_count(entry, operations, &share.operations);
  const bool has_burst = entry.get("burst", &share.burst, {1}, {16 * kGiB});
  if (has_burst && !entry.has("rate") && !entry.has("finish")) {
    entry.report("burst", "needs a rate");
  }
  const std::string_view burst = spelling(entry, "burst_operations", "burst_iops");
  if (read_count(entry, burst, &share.burst_operations) && !entry.has(operations)) {
    entry.report(burst, fmt::format("needs `{}`", operations));
  }
  return has;
}

// What all stages give together.
void read_totals(ConfigReader& entry, const Config& config, VirtualPfsConfig& made) {
  const std::string_view operations = spelling(entry, "total_operations", "total_iops");
  if (config.is_site) {
    entry.get("total_rate", &made.total_rate, kLeastRate, kMostRate);
    (void)read_count(entry, operations, &made.total_operations);
    return;
  }
  const auto refuse = [&](std::string_view key, std::string_view instead) {
    if (!entry.has(key)) return;
    entry.report(key, fmt::format("counts for the whole site and needs a coordinator; `{}` counts "
                                  "for each data server",
                                  instead));
  };
  refuse("total_rate", "rate");
  refuse(operations, "iops");
}

void read_other_limits(ConfigReader& entry, const Config& config, HasLimits has, Share& share) {
  if (allowed(entry, "realtime", config, ShareField::realtime) &&
      entry.get("realtime", &share.realtime) && !has.rate && !has.operations) {
    entry.report("realtime", "needs a rate or `operations`");
  }
  if (allowed(entry, "min", config, ShareField::min)) {
    entry.get("min", &share.min, kLeastRate, kMostRate);
  }
  if (has.rate && share.min > share.rate) entry.report("min", "is more than `rate`");
  std::uint64_t rank = 0;
  if (allowed(entry, "rank", config, ShareField::rank) &&
      entry.get("rank", &rank, 0, Share::kMaxRank)) {
    share.rank = static_cast<std::uint8_t>(rank);
  }
}

void read_finish(ConfigReader& entry, VirtualPfsConfig& made) {
  std::string text;
  if (entry.is_scalar("finish") && entry.get("finish", &text)) {
    if (const std::optional<Finish> finish = parse_finish(text)) {
      made.share.finish_bytes = finish->bytes;
      made.finish_within = finish->within;
    } else {
      entry.report("finish",
                   fmt::format("\"{}\" is not BYTES/TIME: expected one such as 2TiB/8h", text));
    }
    if (made.share.rate.count > 0) entry.report("finish", "cannot be combined with a rate");
    return;
  }
  ConfigReader finish = entry.child("finish");
  finish.require("bytes");
  finish.get("bytes", &made.share.finish_bytes, {1}, kMostFinish);
  finish.require("within");
  finish.get("within", &made.finish_within, milliseconds(1), kLongestFinish);
  if (made.share.rate.count > 0) finish.report("bytes", "cannot be combined with a rate");
}

void read_deadlines(ConfigReader& entry, const Config& config, VirtualPfsConfig& made) {
  Share& share = made.share;
  if (allowed(entry, "latency", config, ShareField::latency)) {
    entry.get("latency", &share.latency, microseconds(1), kLongestLatency);
  } else if (share.rate.count > 0 && policy_of(config).knows(ShareField::latency)) {
    entry.report("rate", "the policy needs a latency with it: together they are a promise");
  }
  if (allowed(entry, "finish", config, ShareField::finish)) read_finish(entry, made);
}

// Reads the words that only single policies know.
void read_own_words(ConfigReader& entry, const Config& config, Share& share) {
  for (const ShareWord& word : own_words(config)) {
    std::uint64_t value = 0;
    if (entry.get(word.name, &value, word.least, word.most)) {
      share.own.push_back({.word = word.name, .value = value});
    }
  }
  const PolicyKind& policy = policy_of(config);
  for (const PolicyKind* const other : config.policies) {
    for (const ShareWord& word : other->share_words) {
      (void)allowed(entry, word.name, config, policy.knows(word.name));
    }
  }
}

bool is_promise(const VirtualPfsConfig& pfs) {
  return pfs.share.latency > Duration::zero() || pfs.share.finish_bytes.count > 0;
}

Share timed_share(const VirtualPfsConfig& pfs) {
  Share share = pfs.share;
  share.finish_by = TimePoint{} + pfs.finish_within;
  return share;
}

void report_promise(ConfigReader& entry, const Result<void>& promised) {
  if (promised) return;
  entry.report(entry.has("latency") ? "latency" : "finish", promised.error().message);
}

}  // namespace

std::optional<Finish> parse_finish(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view amount = text.substr(0, slash);
  const Result<Bytes> bytes = parse_bytes(amount);
  const Result<Duration> within = parse_duration(text.substr(slash + 1));
  const bool has_unit = amount.find('B') != std::string_view::npos;
  if (!bytes || !within || !has_unit || bytes->count < 1 || *bytes > kMostFinish ||
      *within < milliseconds(1) || *within > kLongestFinish) {
    return std::nullopt;
  }
  return Finish{.bytes = *bytes, .within = *within};
}

std::vector<ShareWord> own_words(const Config& config) {
  std::vector<ShareWord> words;
  const auto add = [&](const PolicyKind& policy) {
    words.insert(words.end(), policy.share_words.begin(), policy.share_words.end());
  };
  if (!config.is_site) {
    add(policy_of(config));
    return words;
  }
  for (const PolicyKind* const policy : config.policies) add(*policy);
  return words;
}

std::vector<std::string_view> share_words(const Config& config) {
  std::vector<std::string_view> words = {"weight",
                                         "rate",
                                         "operations",
                                         "iops",
                                         "min",
                                         "burst",
                                         "latency",
                                         "rank",
                                         "burst_operations",
                                         "finish",
                                         "realtime",
                                         "burst_iops",
                                         "total_rate",
                                         "total_operations",
                                         "total_iops"};
  for (const PolicyKind* const policy : config.policies) {
    for (const ShareWord& word : policy->share_words) words.push_back(word.name);
  }
  return words;
}

VirtualPfsConfig read_share(const std::string& name, ConfigReader& entry, const Config& config) {
  VirtualPfsConfig made = {.name = name, .share = {}};
  std::uint64_t weight = 1;
  if (entry.get("weight", &weight, 1, Share::kMaxWeight)) {
    made.share.weight = static_cast<std::uint32_t>(weight);
  }
  const HasLimits has = read_limits(
      entry,
      [&](std::string_view key, ShareField field) { return allowed(entry, key, config, field); },
      made.share);
  read_totals(entry, config, made);
  read_other_limits(entry, config, has, made.share);
  read_deadlines(entry, config, made);
  read_own_words(entry, config, made.share);
  return made;
}

VirtualPfsConfig read_shadow_share(const std::string& name, ConfigReader& entry,
                                   const Config& config) {
  constexpr std::string_view kLimits[] = {"rate",  "operations",       "iops",
                                          "burst", "burst_operations", "burst_iops"};
  VirtualPfsConfig made = {.name = name, .share = {}};
  const auto is_there = [&](std::string_view key, ShareField /*field*/) { return entry.has(key); };
  const HasLimits has = read_limits(entry, is_there, made.share);
  for (const std::string_view word : share_words(config)) {
    if (std::ranges::find(kLimits, word) == std::end(kLimits) && entry.has(word)) {
      entry.report(word, "a shadow rule has limits alone: rate, iops, and their bursts");
    }
  }
  if (!has.rate && !has.operations && !entry.has("rate") && !entry.has("iops") &&
      !entry.has("operations")) {
    entry.report("mode", "shadow needs a limit that it would hold to: rate or iops");
  }
  return made;
}

// Virtual PFSes of templates are admitted one by one later: their number is not known here.
void check_promise(ConfigReader& entry, const VirtualPfsConfig& made, const Config& config) {
  if (config.is_site || !is_promise(made) || !template_fields(made.name).empty()) return;
  const std::unique_ptr<Scheduler> trial = make_scheduler(policy_of(config), config.scheduler);
  std::uint32_t next = 0;
  for (const VirtualPfsConfig& each : config.virtual_pfs) {
    if (!template_fields(each.name).empty() || each.name == made.name) continue;
    (void)trial->set_share(AppId{next++}, timed_share(each), {});
  }
  report_promise(entry, trial->set_share(AppId{next}, timed_share(made), {}));
}

void read_shares(ConfigReader& reader, Config& config) {
  const std::unique_ptr<Scheduler> trial = make_scheduler(policy_of(config), config.scheduler);
  std::uint32_t next = 0;
  reader.for_each_named("virtual_pfs", [&](const std::string& name, ConfigReader& entry) {
    VirtualPfsConfig made = read_share(name, entry, config);
    suggest_share_words(entry, config);
    if (const auto problem = template_problem(name)) entry.report("", *problem);
    if (template_fields(name).empty()) {
      report_promise(entry, trial->set_share(AppId{next++}, timed_share(made), {}));
    }
    config.virtual_pfs.push_back(std::move(made));
  });
}

}  // namespace vpfs::stage
