#include "stage/config/parsed_rules.h"

#include <utility>

#include "stage/config/live_words.h"
#include "stage/rules/text_hash.h"

namespace vpfs::stage {

bool has_promise(const ParsedRule& parsed) {
  return parsed.declares && (parsed.declares->share.latency > Duration::zero() ||
                             parsed.declares->share.finish_bytes.count > 0);
}

bool may_promise(const RuleText& rule) {
  return value_of(rule.words, "latency") || value_of(rule.words, "finish");
}

Config context_without_names(const Config& config) {
  Config context = config;
  context.virtual_pfs.clear();
  context.rules.clear();
  context.jobs.clear();
  return context;
}

std::size_t ParsedRules::Hash::operator()(const RuleText& text) const {
  const TextHash hash;
  std::size_t all = hash(text.name) * 31 + hash(text.condition);
  for (const std::string& word : text.words) all = all * 31 + hash(word);
  return all;
}

const ParsedRule* ParsedRules::find(const RuleText& text) const {
  const auto found = parsed_.find(text);
  return found == parsed_.end() ? nullptr : &found->second;
}

void ParsedRules::add(const RuleText& text, const ParsedRule& parsed) {
  if (has_promise(parsed)) return;
  parsed_.try_emplace(text, parsed);
  ParsedRule shortest = parsed;
  erase_words(shortest.rule.text.words, "for");
  shortest.lasts.reset();
  RuleText key = shortest.rule.text;
  parsed_.try_emplace(std::move(key), std::move(shortest));
}

}  // namespace vpfs::stage
