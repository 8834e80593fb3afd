#include "stage/config/config_words.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace vpfs::stage {
namespace {

constexpr ConfigWord kScheduler[] = {{"algorithm", "policy"},
                                     {"type", "policy"},
                                     {"plugin", "plugins"},
                                     {"queue_depth", "depth"},
                                     {"iodepth", "depth"},
                                     {"max_requests", "depth.requests"},
                                     {"requests", "depth.requests"},
                                     {"bytes", "depth.bytes"},
                                     {"per_request", "cost.per_request"},
                                     {"metadata", "schedule: [io, metadata]"}};

constexpr ConfigWord kShare[] = {
    {"ops", "operations"},  {"rps", "operations"},  {"requests", "operations"},
    {"bandwidth", "rate"},  {"bw", "rate"},         {"bps", "rate"},
    {"throughput", "rate"}, {"limit", "rate"},      {"max", "rate"},
    {"maximum", "rate"},    {"cap", "rate"},        {"minimum", "min"},
    {"reservation", "min"}, {"guarantee", "min"},   {"share", "weight"},
    {"shares", "weight"},   {"deadline", "latency"}};

// Conditions, and words for them, written beside `match` instead of in it.
constexpr ConfigWord kRule[] = {{"jobid", "match: {jobid: ...}"},
                                {"job", "match: {jobid: ...}"},
                                {"hint", "match: {hint: ...}"},
                                {"nid", "match: {client: ...}"},
                                {"client", "match: {client: ...}"},
                                {"host", "match: {client: ...}"},
                                {"address", "match: {client: ...}"},
                                {"uid", "match: {uid: ...}"},
                                {"user", "match: {uid: ...}"},
                                {"gid", "match: {gid: ...}"},
                                {"group", "match: {gid: ...}"},
                                {"account", "match: {account: ...}"},
                                {"owner", "match: {owner: ...}"},
                                {"dir", "match: {dir: ...}"},
                                {"node", "match: {node: ...}"},
                                {"target", "match: {target: ...}"},
                                {"file_system", "match: {file_system: ...}"},
                                {"fs", "match: {fs: ...}"},
                                {"operation", "match: {operation: ...}"},
                                {"op", "match: {op: ...}"},
                                {"opcode", "match: {operation: ...}"},
                                {"application", "virtual_pfs"},
                                {"condition", "match"},
                                {"shadow", "mode: shadow"}};

// Words for a share whose place is another one in an entry of virtual_pfs.
constexpr ConfigWord kShareOnly[] = {{"class", "rules[].class"},
                                     {"jobid", "rules[].match.jobid"},
                                     {"user", "rules[].match.uid"},
                                     {"nid", "rules[].match.client"}};

// The word by which a policy prefers one share to another.
std::string_view priority_word(const PolicyKind& policy) {
  const auto own = std::ranges::find(policy.share_words, true, &ShareWord::replaces_weight);
  if (own != policy.share_words.end()) return own->name;
  return policy.knows(ShareField::rank) ? "rank" : "weight";
}

void suggest_shared_words(ConfigReader& entry, const Config& config) {
  entry.suggest(kShare);
  entry.suggest("prio", priority_word(policy_of(config)));
}

}  // namespace

void suggest_scheduler_words(ConfigReader& reader) {
  reader.suggest(kScheduler);
}

void suggest_share_words(ConfigReader& entry, const Config& config) {
  suggest_shared_words(entry, config);
  entry.suggest("priority", priority_word(policy_of(config)));
  entry.suggest(kShareOnly);
  for (const std::string_view condition : {"uid", "client", "operation", "owner", "dir", "node"}) {
    entry.suggest(condition, fmt::format("rules[].match.{}", condition));
  }
}

void suggest_rule_words(ConfigReader& entry, const Config& config) {
  entry.suggest(kRule);
  const bool has_classes = !config.scheduler.classes.classes.empty();
  entry.suggest("priority", has_classes ? "class" : priority_word(policy_of(config)));
  suggest_shared_words(entry, config);
}

void suggest_text_words(ConfigReader& entry, const Config& config) {
  entry.suggest("priority", priority_word(policy_of(config)));
  entry.suggest("time", "for");
  entry.suggest("shadow", "mode=shadow");
  suggest_shared_words(entry, config);
}

}  // namespace vpfs::stage
