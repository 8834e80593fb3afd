#include "stage/rules/match_words.h"

#include <algorithm>
#include <iterator>

namespace vpfs::stage {
namespace {

constexpr ConfigWord kMatch[] = {
    {"job", "jobid"},        {"job_id", "jobid"},     {"hints", "hint"},     {"nid", "client"},
    {"ip", "client"},        {"host", "client"},      {"address", "client"}, {"clients", "client"},
    {"user", "uid"},         {"users", "uid"},        {"group", "gid"},      {"groups", "gid"},
    {"project", "account"},  {"opcode", "operation"}, {"ops", "operation"},  {"type", "operation"},
    {"fsid", "file_system"}, {"directory", "dir"},    {"path", "dir"},       {"mount", "node"},
    {"ost", "target"}};

}  // namespace

void suggest_match_words(ConfigReader& match) {
  match.suggest(kMatch);
}

std::optional<std::string_view> suggested_match_word(std::string_view word) {
  const auto* const found = std::ranges::find(kMatch, word, &ConfigWord::other);
  if (found == std::end(kMatch)) return std::nullopt;
  return found->instead;
}

}  // namespace vpfs::stage
