#include "stage/config_words.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace vpfs::stage {
namespace {

constexpr ConfigWord kScheduler[] = {{"algorithm", "policy"},
                                     {"type", "policy"},
                                     {"queue_depth", "depth"},
                                     {"iodepth", "depth"},
                                     {"max_requests", "depth.requests"},
                                     {"requests", "depth.requests"},
                                     {"bytes", "depth.bytes"},
                                     {"per_request", "cost.per_request"},
                                     {"metadata", "schedule: [io, metadata]"}};

constexpr ConfigWord kShare[] = {{"iops", "operations"},    {"ops", "operations"},
                                 {"rps", "operations"},     {"requests", "operations"},
                                 {"bandwidth", "rate"},     {"bw", "rate"},
                                 {"bps", "rate"},           {"throughput", "rate"},
                                 {"limit", "rate"},         {"max", "rate"},
                                 {"maximum", "rate"},       {"cap", "rate"},
                                 {"minimum", "min"},        {"reservation", "min"},
                                 {"guarantee", "min"},      {"share", "weight"},
                                 {"shares", "weight"},      {"deadline", "latency"},
                                 {"class", "rules[].class"}};

// Conditions, and words for them, written beside `match` instead of in it.
constexpr ConfigWord kRule[] = {{"jobid", "match: {hint: {jobid: ...}}"},
                                {"job", "match: {hint: {jobid: ...}}"},
                                {"hint", "match: {hint: ...}"},
                                {"nid", "match: {client: ...}"},
                                {"client", "match: {client: ...}"},
                                {"host", "match: {client: ...}"},
                                {"address", "match: {client: ...}"},
                                {"uid", "match: {uid: ...}"},
                                {"user", "match: {uid: ...}"},
                                {"owner", "match: {owner: ...}"},
                                {"dir", "match: {dir: ...}"},
                                {"node", "match: {node: ...}"},
                                {"target", "match: {target: ...}"},
                                {"file_system", "match: {file_system: ...}"},
                                {"operation", "match: {operation: ...}"},
                                {"op", "match: {op: ...}"},
                                {"opcode", "match: {operation: ...}"},
                                {"vpfs", "virtual_pfs"},
                                {"name", "virtual_pfs"},
                                {"application", "virtual_pfs"},
                                {"priority", "class"},
                                {"rate", "virtual_pfs.NAME.rate"},
                                {"weight", "virtual_pfs.NAME.weight"},
                                {"rank", "virtual_pfs.NAME.rank"},
                                {"iops", "virtual_pfs.NAME.operations"}};

constexpr ConfigWord kMatch[] = {{"jobid", "hint: {jobid: ...}"},
                                 {"job", "hint: {jobid: ...}"},
                                 {"job_id", "hint: {jobid: ...}"},
                                 {"hints", "hint"},
                                 {"nid", "client"},
                                 {"ip", "client"},
                                 {"host", "client"},
                                 {"address", "client"},
                                 {"clients", "client"},
                                 {"user", "uid"},
                                 {"users", "uid"},
                                 {"opcode", "operation"},
                                 {"ops", "operation"},
                                 {"type", "operation"},
                                 {"fs", "file_system"},
                                 {"fsid", "file_system"},
                                 {"directory", "dir"},
                                 {"path", "dir"},
                                 {"mount", "node"},
                                 {"ost", "target"}};

// The word by which a policy prefers one share to another.
std::string_view priority_word(const PolicyKind& policy) {
  const auto own = std::ranges::find(policy.share_words, true, &ShareWord::replaces_weight);
  if (own != policy.share_words.end()) return own->name;
  return policy.knows(ShareField::rank) ? "rank" : "weight";
}

}  // namespace

void suggest_scheduler_words(ConfigReader& reader) {
  reader.suggest(kScheduler);
}

void suggest_share_words(ConfigReader& entry, const Config& config) {
  entry.suggest(kShare);
  const std::string_view priority = priority_word(policy_of(config));
  entry.suggest("priority", priority);
  entry.suggest("prio", priority);
  for (const std::string_view condition : {"uid", "client", "operation", "owner", "dir", "node"}) {
    entry.suggest(condition, fmt::format("rules[].match.{}", condition));
  }
  entry.suggest("user", "rules[].match.uid");
  entry.suggest("nid", "rules[].match.client");
  entry.suggest("jobid", "rules[].match.hint.jobid");
}

void suggest_rule_words(ConfigReader& entry) {
  entry.suggest(kRule);
}

void suggest_match_words(ConfigReader& match) {
  match.suggest(kMatch);
}

}  // namespace vpfs::stage
