#include "base/config_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/exceptions.h>

#include "base/config/parts.h"
#include "base/nearest_word.h"
#include "base/one_line.h"
#include "base/yaml_tree.h"

namespace vpfs {
namespace {

using Kind = YamlNode::Kind;

constexpr std::string_view kEmpty = "is empty: give it a value, or leave it out";

std::string in_quotes(std::string_view text) {
  return fmt::format("\"{}\"", text);
}

std::string unknown_key_problem(std::string_view key, const std::vector<std::string>& known) {
  if (const auto nearest = nearest_word(key, known)) {
    return fmt::format("unknown key; did you mean {}?", in_quotes(*nearest));
  }
  if (known.empty()) return "unknown key";
  return fmt::format("unknown key (known here: {})", fmt::join(known, ", "));
}

// The part of a message that gives the allowed range.
template <typename T, typename Print>
std::string range_problem(std::string_view text, T least, T most, T no_limit, Print print) {
  if (most == no_limit) return fmt::format("{} is out of range: at least {}", text, print(least));
  return fmt::format("{} is out of range: {} to {}", text, print(least), print(most));
}

}  // namespace

struct ConfigReader::State {
  struct Entry {
    std::string key;
    int line;
    const YamlNode* value;
  };

  // What has the values: a tree for each file, and lists and mappings that are in several.
  struct Values {
    std::vector<std::shared_ptr<const YamlTree>> trees;
    std::deque<YamlNode> joined;
  };

  std::shared_ptr<Values> values = std::make_shared<Values>();  // of all readers of the text
  ConfigErrors* errors = nullptr;
  std::string path;  // of this mapping, "" for the root
  int line = 1;
  bool present = false;  // false: the mapping is missing, or the value is not a mapping
  std::vector<Entry> entries;
  std::vector<std::string> asked;  // in the order of asking, as the errors list them
  std::vector<std::pair<std::string, std::string>> suggestions;  // for unknown keys
  std::size_t errors_before = 0;                                 // when this reader was made
  bool finished = false;

  [[nodiscard]] std::string path_of(std::string_view key) const {
    if (path.empty() || key.empty()) return path + std::string(key);
    return fmt::format("{}.{}", path, key);
  }

  // The line of a key or an item of its list, else that of the mapping.
  [[nodiscard]] int line_of(std::string_view key) const {
    const std::string_view whole = key.substr(0, key.find('['));
    const auto entry = std::ranges::find(entries, whole, &Entry::key);
    return entry == entries.end() ? line : entry->line;
  }

  // The entry of `key`; marks the key as known.
  const Entry* find(std::string_view key) {
    if (std::ranges::find(asked, key) == asked.end()) asked.emplace_back(key);
    const auto entry = std::ranges::find(entries, key, &Entry::key);
    return entry == entries.end() ? nullptr : &*entry;
  }

  void problem(const Entry& entry, std::string_view what) const {
    errors->add(entry.line, path_of(entry.key), what);
  }

  // The scalar of `key`, or null if it is absent or not a scalar (reported).
  const Entry* find_scalar(std::string_view key) {
    const Entry* entry = find(key);
    if (entry == nullptr || entry->value->is(Kind::scalar)) return entry;
    problem(*entry, entry->value->is(Kind::null) ? "has no value" : "must be a single value");
    return nullptr;
  }

  // Makes this the mapping `node`, reporting keys that are given twice.
  void load(const YamlNode& node) {
    present = true;
    for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
      const YamlNode& key = *node.children[i];
      if (!key.is(Kind::scalar)) {
        errors->add(key.line, path, "a key must be a plain word");
        continue;
      }
      Entry entry{key.scalar, key.line, node.children[i + 1]};
      const auto first = std::ranges::find(entries, entry.key, &Entry::key);
      if (first != entries.end()) {
        problem(entry,
                fmt::format("given twice; first {}", errors->place(first->line, entry.line)));
        continue;
      }
      errors->set_line(path_of(entry.key), entry.line);
      entries.push_back(std::move(entry));
    }
  }

  // Reads one file of a text, the main one first.
  void read(const ConfigPart& part, std::span<const std::string_view> keys_of_parts) {
    const bool is_main = part.first_line == 1;
    if (!is_main) errors->begin_file(part.first_line, part.file);
    try {
      auto tree = YamlTree::parse(std::string(part.text), part.first_line);
      values->trees.push_back(tree);
      if (const std::optional<int> second = tree->second_document()) {
        errors->add(*second, "", "a second YAML document; only one is allowed");
      }
      const YamlNode& document = tree->root();
      if (document.is(Kind::null)) {
        present = true;
      } else if (!document.is(Kind::map)) {
        errors->add(document.line, "", "must be a mapping (key: value)");
      } else if (is_main) {
        load(document);
      } else {
        join(document, keys_of_parts);
      }
    } catch (const YAML::Exception& exception) {
      errors->add_final(std::max(exception.mark.line, 0) + part.first_line,
                        "not YAML: " + exception.msg);
    }
  }

  // Adds what another file than the main one has.
  void join(const YamlNode& document, std::span<const std::string_view> keys_of_parts) {
    State part;
    part.errors = errors;
    part.load(document);
    for (const Entry& entry : part.entries) {
      if (std::ranges::find(keys_of_parts, entry.key) == keys_of_parts.end()) {
        problem(entry, fmt::format("belongs into {}: this file may have {}", errors->file(),
                                   fmt::join(keys_of_parts, " and ")));
      } else {
        join(entry);
      }
    }
    part.finished = true;
  }

  void join(const Entry& more) {
    const auto entry = std::ranges::find(entries, more.key, &Entry::key);
    if (entry == entries.end()) {
      entries.push_back(more);
      return;
    }
    errors->set_line(path_of(more.key), entry->line);
    if (more.value->is(Kind::null)) return problem(more, "has no value");
    if (entry->value->kind != more.value->kind) {
      return problem(more, fmt::format("must have the same form as {}",
                                       errors->place(entry->line, more.line)));
    }
    YamlNode& both = values->joined.emplace_back(*entry->value);
    both.children.insert(both.children.end(), more.value->children.begin(),
                         more.value->children.end());
    entry->value = &both;
  }

  [[nodiscard]] std::string unknown_key_problem_of(const std::string& key) const {
    for (const auto& [word, instead] : suggestions) {
      if (word == key) return fmt::format("unknown key; did you mean {}?", in_quotes(instead));
    }
    return unknown_key_problem(key, asked);
  }

  void report_unknown_keys() {
    if (std::exchange(finished, true)) return;
    for (const Entry& entry : entries) {
      if (std::ranges::find(asked, entry.key) == asked.end()) {
        problem(entry, unknown_key_problem_of(entry.key));
      }
    }
  }

  // A reader of `node` at `place`; reports a node that is not a mapping.
  [[nodiscard]] std::unique_ptr<State> below(std::string place, int at,
                                             const YamlNode* node) const {
    auto state = std::make_unique<State>();
    state->values = values;
    state->errors = errors;
    state->path = std::move(place);
    state->line = at;
    state->errors_before = errors->lines().size();
    errors->set_line(state->path, at);
    if (node == nullptr) return state;
    if (node->is(Kind::map)) {
      state->load(*node);
    } else {
      errors->add(at, state->path,
                  node->is(Kind::null) ? "has no value; must be a mapping (key: value)"
                                       : "must be a mapping (key: value)");
    }
    return state;
  }

  // Parses, checks and stores a scalar with a unit.
  template <typename T, typename Parse>
  bool get_quantity(std::string_view key, T* value, T least, T most, T no_limit, Parse parse) {
    const Entry* entry = find_scalar(key);
    if (entry == nullptr) return false;
    const Result<T> parsed = parse(entry->value->scalar);
    if (!parsed) {
      problem(*entry, parsed.error().message);
      return false;
    }
    if (*parsed < least || *parsed > most) {
      problem(*entry, range_problem(in_quotes(entry->value->scalar), least, most, no_limit,
                                    [](T limit) { return to_string(limit); }));
      return false;
    }
    *value = *parsed;
    return true;
  }

  template <typename T>
  bool get_number(std::string_view key, T* value, T least, T most, std::string_view kind) {
    const Entry* entry = find_scalar(key);
    if (entry == nullptr) return false;
    const std::string& text = entry->value->scalar;
    const auto print = [](T limit) { return fmt::format("{}", limit); };
    T parsed = {};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    const bool whole = end == text.data() + text.size();
    if (whole && error == std::errc::result_out_of_range) {
      problem(*entry,
              range_problem(in_quotes(text), least, most, std::numeric_limits<T>::max(), print));
      return false;
    }
    if (!whole || error != std::errc{}) {
      problem(*entry, fmt::format("{} is not {}", in_quotes(text), kind));
      return false;
    }
    // Written so that NaN is out of every range.
    if (!(parsed >= least && parsed <= most)) {
      problem(*entry,
              range_problem(in_quotes(text), least, most, std::numeric_limits<T>::max(), print));
      return false;
    }
    *value = parsed;
    return true;
  }
};

ConfigReader::ConfigReader(std::string_view text, ConfigErrors& errors,
                           std::span<const std::string_view> keys_of_parts)
    : state_(std::make_unique<State>()) {
  state_->errors = &errors;
  state_->errors_before = errors.lines().size();
  std::vector<ConfigPart> parts;
  if (keys_of_parts.empty()) {
    parts.push_back({.file = "", .first_line = 1, .text = text});
  } else {
    parts = parts_of(text);
  }
  for (const ConfigPart& part : parts) state_->read(part, keys_of_parts);
}

ConfigReader::ConfigReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
ConfigReader::ConfigReader(ConfigReader&&) noexcept = default;

ConfigReader::~ConfigReader() {
  if (state_ != nullptr) state_->report_unknown_keys();
}

void ConfigReader::finish() {
  state_->report_unknown_keys();
}

void ConfigReader::finish_unread() {
  state_->finished = true;
}

bool ConfigReader::flawless() const {
  return state_->errors->lines().size() == state_->errors_before;
}

void ConfigReader::suggest(std::string_view other_word, std::string_view instead) {
  state_->suggestions.emplace_back(other_word, instead);
}

void ConfigReader::suggest(std::span<const ConfigWord> words) {
  for (const ConfigWord& each : words) suggest(each.other, each.instead);
}

bool ConfigReader::has(std::string_view key) {
  return state_->find(key) != nullptr;
}

bool ConfigReader::is(std::string_view key, std::string_view value) {
  const State::Entry* entry = state_->find(key);
  return entry != nullptr && entry->value->is(Kind::scalar) && entry->value->scalar == value;
}

bool ConfigReader::is_scalar(std::string_view key) {
  const State::Entry* entry = state_->find(key);
  return entry != nullptr && entry->value->is(Kind::scalar);
}

bool ConfigReader::get(std::string_view key, std::string* value) {
  const State::Entry* entry = state_->find_scalar(key);
  if (entry == nullptr) return false;
  *value = entry->value->scalar;
  return true;
}

bool ConfigReader::get(std::string_view key, bool* value) {
  const State::Entry* entry = state_->find_scalar(key);
  if (entry == nullptr) return false;
  const std::string& text = entry->value->scalar;
  if (text != "true" && text != "false") {
    state_->problem(
        *entry, fmt::format("{} is not a truth value: expected true or false", in_quotes(text)));
    return false;
  }
  *value = text == "true";
  return true;
}

bool ConfigReader::get(std::string_view key, double* value, double least, double most) {
  return state_->get_number(key, value, least, most, "a number");
}

bool ConfigReader::get(std::string_view key, std::uint64_t* value, std::uint64_t least,
                       std::uint64_t most) {
  return state_->get_number(key, value, least, most, "a whole number");
}

bool ConfigReader::get(std::string_view key, Bytes* value, Bytes least, Bytes most) {
  return state_->get_quantity(key, value, least, most, Bytes{UINT64_MAX}, parse_bytes);
}

bool ConfigReader::get(std::string_view key, BytesPerSecond* value, BytesPerSecond least,
                       BytesPerSecond most) {
  return state_->get_quantity(key, value, least, most, BytesPerSecond{UINT64_MAX}, parse_rate);
}

bool ConfigReader::get(std::string_view key, Duration* value, Duration least, Duration most) {
  return state_->get_quantity(key, value, least, most, Duration::max(), parse_duration);
}

bool ConfigReader::get(std::string_view key, std::vector<std::string>* value) {
  const State::Entry* entry = state_->find(key);
  if (entry == nullptr) return false;
  if (entry->value->is(Kind::scalar)) {
    *value = {entry->value->scalar};
    return true;
  }
  bool good = entry->value->is(Kind::sequence);
  std::vector<std::string> items;
  for (std::size_t i = 0; good && i < entry->value->children.size(); ++i) {
    const YamlNode& item = *entry->value->children[i];
    good = item.is(Kind::scalar);
    if (good) items.push_back(item.scalar);
  }
  if (!good) {
    state_->problem(*entry, "must be a value or a list of values");
    return false;
  }
  if (items.empty()) {
    state_->problem(*entry, kEmpty);
    return false;
  }
  *value = std::move(items);
  return true;
}

bool ConfigReader::get(std::string_view key,
                       std::vector<std::pair<std::string, std::string>>* value) {
  if (!has(key)) return false;
  const std::size_t errors_before = state_->errors->lines().size();
  ConfigReader mapping = child(key);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const State::Entry& entry : mapping.state_->entries) {
    if (const State::Entry* good = mapping.state_->find_scalar(entry.key)) {
      pairs.emplace_back(good->key, good->value->scalar);
    }
  }
  if (state_->errors->lines().size() != errors_before) return false;
  if (pairs.empty()) {
    report(key, kEmpty);
    return false;
  }
  *value = std::move(pairs);
  return true;
}

bool ConfigReader::choose(std::string_view key, std::string* value,
                          const std::vector<std::string>& choices) {
  const State::Entry* entry = state_->find_scalar(key);
  if (entry == nullptr) return false;
  if (std::ranges::find(choices, entry->value->scalar) == choices.end()) {
    state_->problem(*entry, fmt::format("{} is not one of: {}", in_quotes(entry->value->scalar),
                                        fmt::join(choices, ", ")));
    return false;
  }
  *value = entry->value->scalar;
  return true;
}

void ConfigReader::require(std::string_view key) {
  if (!has(key) && state_->present) {
    state_->errors->add(state_->line, state_->path_of(key), "is missing");
  }
}

ConfigReader ConfigReader::child(std::string_view key) {
  const State::Entry* entry = state_->find(key);
  const int at = entry == nullptr ? state_->line : entry->line;
  return ConfigReader(
      state_->below(state_->path_of(key), at, entry == nullptr ? nullptr : entry->value));
}

bool ConfigReader::for_each(std::string_view key, const std::function<void(ConfigReader&)>& each) {
  const State::Entry* entry = state_->find(key);
  if (entry == nullptr) return false;
  if (!entry->value->is(Kind::sequence)) {
    state_->problem(*entry, "must be a list");
    return false;
  }
  for (std::size_t i = 0; i < entry->value->children.size(); ++i) {
    const YamlNode& item = *entry->value->children[i];
    ConfigReader reader(
        state_->below(fmt::format("{}[{}]", state_->path_of(key), i), item.line, &item));
    if (reader.state_->present) each(reader);
  }
  return true;
}

bool ConfigReader::for_each_named(
    std::string_view key, const std::function<void(const std::string&, ConfigReader&)>& each) {
  if (!has(key)) return false;
  ConfigReader mapping = child(key);
  if (!mapping.state_->present) return false;
  for (const std::string& name : mapping.keys()) {
    ConfigReader reader = mapping.child(name);
    if (reader.state_->present) each(name, reader);
  }
  return true;
}

std::vector<std::string> ConfigReader::keys() const {
  std::vector<std::string> names;
  for (const State::Entry& entry : state_->entries) names.push_back(entry.key);
  return names;
}

void ConfigReader::report(std::string_view key, std::string_view problem) {
  state_->errors->add(state_->line_of(key), state_->path_of(key), problem);
}

void ConfigReader::report_alone(std::string_view key, std::string_view problem) {
  state_->errors->add_final(state_->line_of(key), problem, state_->path_of(key));
}

void ConfigReader::warn(std::string_view key, std::string_view text) {
  state_->errors->warn(state_->path_of(key), text);
}

int ConfigReader::line() const {
  return state_->line;
}

std::string ConfigReader::place(int line) const {
  return state_->errors->place(line, state_->line);
}

}  // namespace vpfs
