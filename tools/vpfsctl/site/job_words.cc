#include "tools/vpfsctl/site/job_words.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/joined.h"
#include "base/one_line.h"
#include "base/result.h"
#include "control/words/printable.h"
#include "tools/wishes/wishes.h"

namespace vpfs::ctl {
namespace {

std::string_view key_of_word(std::string_view word) {
  return word.substr(0, word.find('='));
}

// The word that grants "weight=4".
Result<std::string> granted(const wishes::Bounds& bounds, std::string_view text) {
  const std::string_view key = key_of_word(text);
  const std::optional<wishes::Wish> wish = wishes::find_wish(key);
  if (!wish || key.size() == text.size()) {
    return fail("expected weight=, rate= or deadline= with a value");
  }
  return bounds.grant(*wish, text.substr(key.size() + 1));
}

void put(std::vector<std::string>& words, std::string word) {
  const auto place = std::ranges::find(words, key_of_word(word),
                                       [](const std::string& each) { return key_of_word(each); });
  if (place == words.end()) {
    words.push_back(std::move(word));
  } else {
    *place = std::move(word);
  }
}

// What stages take.
constexpr std::size_t kLongestAccount = 128;

bool may_be_account(std::string_view text) {
  return text.size() <= kLongestAccount &&
         std::ranges::all_of(text, [](char each) { return each >= ' ' && each <= '~'; });
}

const ProxyAnswer* first_refusal(const std::vector<ProxyAnswer>& answers) {
  const auto found = std::ranges::find_if(answers, [](const ProxyAnswer& answer) {
    return answer.outcome == Outcome::refused && !answer.forgiven;
  });
  return found == answers.end() ? nullptr : &*found;
}

}  // namespace

JobWords job_words(const Command& command) {
  JobWords made = {.words = command.words, .account = command.account, .warnings = {}};
  if (!may_be_account(command.account)) {
    made.account.clear();
    made.warnings.push_back(
        fmt::format("--account {}: expected at most {} characters of printable ASCII; it is left "
                    "out",
                    one_short_line(command.account, 60), kLongestAccount));
  }
  if (command.wishes.empty()) return made;
  const Result<wishes::Bounds> bounds = wishes::Bounds::parse(command.bounds);
  if (!bounds) {
    made.warnings.push_back(
        fmt::format("--bounds: {}; wishes are left out", bounds.error().message));
    return made;
  }
  for (const std::string& wish : command.wishes) {
    Result<std::string> word = granted(*bounds, wish);
    if (word) {
      put(made.words, std::move(*word));
    } else {
      made.warnings.push_back(fmt::format("--wish {}: {}; it is left out", one_short_line(wish, 60),
                                          word.error().message));
    }
  }
  return made;
}

std::vector<ProxyAnswer> ask_with_wishes(
    const Command& command, const control::Envelope& request,
    const std::function<std::vector<ProxyAnswer>(const control::Envelope&)>& ask,
    const std::function<void(const std::string&)>& warn) {
  std::vector<ProxyAnswer> answers = ask(request);
  const std::vector<std::string>& words = command.words;
  if (!request.has_job() || std::ranges::equal(request.job().words(), words)) return answers;
  const ProxyAnswer* const refusal = first_refusal(answers);
  if (refusal == nullptr) return answers;
  warn(fmt::format("{} refuses {}: {}; without the wishes",
                   refusal->name.empty() ? "the answer" : words::printable(refusal->name),
                   joined(request.job().words(), " "), one_short_line(refusal->text)));
  control::Envelope plain = request;
  plain.mutable_job()->clear_words();
  for (const std::string& word : words) plain.mutable_job()->add_words(word);
  return ask(plain);
}

}  // namespace vpfs::ctl
