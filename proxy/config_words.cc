#include "proxy/config_words.h"

#include <span>
#include <string_view>

#include <fmt/format.h>

namespace vpfs::proxy {
namespace {

struct Word {
  std::string_view other;
  std::string_view instead;
};

void suggest(ConfigReader& reader, std::span<const Word> words) {
  for (const Word& each : words) reader.suggest(each.other, each.instead);
}

constexpr Word kTop[] = {{"listen", "proxy.listen"},
                         {"upstream", "proxy.upstream"},
                         {"server", "proxy.upstream"},
                         {"protocol", "proxy.protocol"},
                         {"workers", "proxy.workers"},
                         {"threads", "proxy.workers"},
                         {"status_file", "proxy.status_file"},
                         {"log_level", "proxy.log_level"},
                         {"policy", "scheduler.policy"},
                         {"depth", "scheduler.depth"},
                         {"classes", "scheduler.classes"},
                         {"applications", "virtual_pfs"},
                         {"jobs", "virtual_pfs"},
                         {"shares", "virtual_pfs"},
                         {"groups", "virtual_pfs"},
                         {"match", "rules"},
                         {"weight", "virtual_pfs.NAME.weight"},
                         {"priority", "virtual_pfs.NAME.weight"},
                         {"rate", "virtual_pfs.NAME.rate"},
                         {"bandwidth", "virtual_pfs.NAME.rate"},
                         {"iops", "virtual_pfs.NAME.operations"}};

constexpr Word kProxy[] = {{"server", "upstream"},
                           {"backend", "upstream"},
                           {"target", "upstream"},
                           {"bind", "listen"},
                           {"port", "listen"},
                           {"address", "listen"},
                           {"threads", "workers"},
                           {"status", "status_file"},
                           {"congestion", "upstream_congestion"},
                           {"policy", "scheduler.policy"}};

constexpr Word kScheduler[] = {{"algorithm", "policy"},
                               {"type", "policy"},
                               {"queue_depth", "depth"},
                               {"iodepth", "depth"},
                               {"max_requests", "depth.requests"},
                               {"requests", "depth.requests"},
                               {"bytes", "depth.bytes"},
                               {"per_request", "cost.per_request"},
                               {"capacity", "adaptbf.capacity"},
                               {"period", "adaptbf.period"},
                               {"metadata", "schedule: [io, metadata]"}};

constexpr Word kShare[] = {{"iops", "operations"},    {"ops", "operations"},
                           {"rps", "operations"},     {"requests", "operations"},
                           {"bandwidth", "rate"},     {"bw", "rate"},
                           {"bps", "rate"},           {"throughput", "rate"},
                           {"limit", "rate"},         {"max", "rate"},
                           {"maximum", "rate"},       {"cap", "rate"},
                           {"minimum", "min"},        {"reservation", "min"},
                           {"guarantee", "min"},      {"share", "weight"},
                           {"shares", "weight"},      {"deadline", "latency"},
                           {"class", "rules[].class"}};

// Conditions, and the words for them, that stand beside `match` instead of in it.
constexpr Word kRule[] = {{"jobid", "match: {hint: {jobid: ...}}"},
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

constexpr Word kMatch[] = {{"jobid", "hint: {jobid: ...}"},
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

}  // namespace

void suggest_top_words(ConfigReader& reader) {
  suggest(reader, kTop);
}

void suggest_proxy_words(ConfigReader& reader) {
  suggest(reader, kProxy);
}

void suggest_scheduler_words(ConfigReader& reader) {
  suggest(reader, kScheduler);
}

void suggest_share_words(ConfigReader& entry, const Config& config) {
  suggest(entry, kShare);
  const auto knows = [&](ShareField field) { return policy_knows(config.policy, field); };
  const std::string_view priority = knows(ShareField::nodes)  ? "nodes"
                                    : knows(ShareField::rank) ? "rank"
                                                              : "weight";
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
  suggest(entry, kRule);
}

void suggest_match_words(ConfigReader& match) {
  suggest(match, kMatch);
}

}  // namespace vpfs::proxy
