#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stage/config/config.h"

// The words of rules, as text: "weight=4", "realtime". What they mean is parse_rule()'s.
namespace vpfs::stage {

// "rate" of "rate=1MiB/s"; of two names for the same thing always the same one.
[[nodiscard]] std::string_view word_key(std::string_view word);
// "" without one.
[[nodiscard]] std::string_view word_value(std::string_view word);
// "rate=none" and "rate=" take the word away.
[[nodiscard]] bool takes_away(std::string_view word);

// The value of the last word with this key; nothing: there is none.
[[nodiscard]] std::optional<std::string_view> value_of(const std::vector<std::string>& words,
                                                       std::string_view key);
// Takes all words with this key out.
void erase_words(std::vector<std::string>& words, std::string_view key);

// `words`, in which each of `changes` has replaced the one of its key, or taken it away.
[[nodiscard]] std::vector<std::string> with_changes(std::vector<std::string> words,
                                                    const std::vector<std::string>& changes);
// The changes that do what `changes` and then `more` do.
[[nodiscard]] std::vector<std::string> joined_changes(std::vector<std::string> changes,
                                                      const std::vector<std::string>& more);

// "backup 'client=10.0.0.0/8&op={read write}' rate=100MiB/s": what a shell takes again.
[[nodiscard]] std::string rule_line(const RuleText& rule);
[[nodiscard]] std::string words_line(const std::vector<std::string>& words);

// The words that give this share; none for what is as by default. parse_rule() makes the same share
// of them.
[[nodiscard]] std::vector<std::string> words_of_share(const VirtualPfsConfig& virtual_pfs);

}  // namespace vpfs::stage
