#include "stage/classifier.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "stage/template_name.h"

namespace vpfs::stage {

namespace {

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> numbers) {
  std::ranges::sort(numbers);
  return numbers;
}

// The request's value; "" if it is not known.
std::string value_of(const Sight& sight, Attribute attribute) {
  if (attribute == Attribute::directory) return std::string(sight.identity.directory);
  const std::optional<std::uint32_t> number = sight.number(attribute);
  return number ? std::to_string(*number) : std::string();
}

// The part of a key with a fixed size.
class FixedPart {
 public:
  template <typename Number>
  void add(Number number) {
    std::memcpy(bytes_.data() + size_, &number, sizeof number);
    size_ += sizeof number;
  }
  void add(const std::optional<std::uint32_t>& number) {
    add(std::uint64_t{number.value_or(0)} << 1U | (number ? 1U : 0U));
  }
  [[nodiscard]] std::string_view bytes() const { return {bytes_.data(), size_}; }

 private:
  // kind, file system, four numbers, and the address
  std::array<char, 1 + 8 + 4 * 8 + sizeof(Address::Bytes)> bytes_ = {};
  std::size_t size_ = 0;
};

}  // namespace

Classifier::Classifier(const std::vector<RuleConfig>& rules, std::uint8_t default_class,
                       const JobRegistry* jobs)
    : rules_(read(rules), hint_names_.size()), default_class_(default_class), jobs_(jobs) {
  const auto job_hint = std::ranges::find(hint_names_, kJobHint);
  if (job_hint == hint_names_.end() || jobs == nullptr) return;
  job_hint_ = static_cast<std::size_t>(job_hint - hint_names_.begin());
  looks_at_client_ = true;
  looked_at_.add(Attribute::uid);
}

std::vector<Rule> Classifier::read(const std::vector<RuleConfig>& rules) {
  std::vector<Rule> made;
  made.reserve(rules.size());
  for (const RuleConfig& each : rules) made.push_back(read(each));
  return made;
}

Rule Classifier::read(const RuleConfig& from) {
  Rule rule;
  for (const std::string& client : from.clients) {
    if (const auto block = AddressBlock::parse(client)) rule.clients.push_back(*block);
  }
  for (const auto& [name, pattern] : from.hints) {
    rule.hints.push_back({.index = index_of_hint(name), .pattern = Pattern(pattern)});
  }
  rule.kind = from.kind;
  rule.file_systems = sorted(from.file_systems);
  rule.uids = sorted(from.uids);
  rule.nodes = sorted(from.nodes);
  rule.targets = sorted(from.targets);
  rule.owners = sorted(from.owners);
  for (const std::string& each : from.directories) rule.directories.emplace_back(each);
  rule.virtual_pfs = from.virtual_pfs;
  rule.traffic_class = from.traffic_class;
  for (const std::string& field : template_fields(rule.virtual_pfs)) {
    rule.is_template = true;
    const std::optional<Attribute> attribute = template_attribute(field);
    if (attribute && !demands_hint(rule, field)) rule.needed.push_back(*attribute);
  }
  note_attributes(rule);
  return rule;
}

void Classifier::note_attributes(const Rule& rule) {
  const auto note = [&](Attribute attribute, bool is_demanded) {
    const bool is_needed = std::ranges::find(rule.needed, attribute) != rule.needed.end();
    if (is_demanded || is_needed) looked_at_.add(attribute);
  };
  note(Attribute::file_system, !rule.file_systems.empty());
  note(Attribute::uid, !rule.uids.empty());
  note(Attribute::node, !rule.nodes.empty());
  note(Attribute::target, !rule.targets.empty());
  note(Attribute::owner, !rule.owners.empty());
  note(Attribute::directory, !rule.directories.empty());
  looks_at_uid_ = looked_at_.has(Attribute::uid);
  looks_at_kind_ = looks_at_kind_ || rule.kind;
  looks_at_client_ = looks_at_client_ || !rule.clients.empty();
}

std::size_t Classifier::index_of_hint(const std::string& name) {
  const auto found = std::ranges::find(hint_names_, name);
  if (found != hint_names_.end()) return static_cast<std::size_t>(found - hint_names_.begin());
  hint_names_.push_back(name);
  return hint_names_.size() - 1;
}

bool Classifier::demands_hint(const Rule& rule, std::string_view name) const {
  return std::ranges::any_of(rule.hints, [&](const Rule::HintCondition& condition) {
    return hint_names_[condition.index] == name;
  });
}

bool Classifier::append_key(const Address& client, const Identity& identity,
                            std::string& key) const {
  FixedPart fixed;
  if (looks_at_kind_) fixed.add(std::to_underlying(identity.kind));
  if (looked_at_.has(Attribute::file_system)) fixed.add(identity.file_system);
  if (looked_at_.has(Attribute::uid)) fixed.add(identity.uid);
  if (looked_at_.has(Attribute::node)) fixed.add(identity.node);
  if (looked_at_.has(Attribute::target)) fixed.add(identity.target);
  if (looked_at_.has(Attribute::owner)) fixed.add(identity.owner);
  if (looks_at_client_) fixed.add(client.bytes());
  key.append(fixed.bytes());
  // Each text follows its size plus one; zero stands for a missing text.
  static_assert(kLongestName < 255);
  const auto append_text = [&](const std::optional<std::string_view>& text) {
    if (text && text->size() > kLongestName) return false;
    key.push_back(static_cast<char>(text ? text->size() + 1 : 0));
    if (text) key.append(*text);
    return true;
  };
  if (looked_at_.has(Attribute::directory) && !append_text(identity.directory)) return false;
  return std::ranges::all_of(identity.hints, append_text);
}

std::string Classifier::fill_in(const Rule& rule, const Sight& sight) const {
  std::string_view name = rule.virtual_pfs;
  std::string filled;
  while (!name.empty()) {
    const std::size_t open = name.find('{');
    const std::size_t close = name.find('}', open);
    if (close == std::string_view::npos) break;
    filled += name.substr(0, open);
    const std::string_view field = name.substr(open + 1, close - open - 1);
    const std::optional<Attribute> attribute = template_attribute(field);
    if (demands_hint(rule, field)) {
      const auto found = std::ranges::find(hint_names_, field);
      const auto value = sight.hint(static_cast<std::size_t>(found - hint_names_.begin()));
      if (value) filled += *value;
    } else if (attribute) {
      filled += value_of(sight, *attribute);
    }
    name.remove_prefix(close + 1);
  }
  return filled.append(name);
}

std::optional<std::size_t> Classifier::false_job(const Address& client,
                                                 const Identity& identity) const {
  if (!job_hint_) return std::nullopt;
  const std::optional<std::string_view> job = identity.hints[*job_hint_];
  if (!job || jobs_->admits(*job, client, identity.uid)) return std::nullopt;
  return job_hint_;
}

Classifier::Match Classifier::classify(const Address& client, const Identity& identity) const {
  const std::optional<std::size_t> hint = false_job(client, identity);
  Match match = match_of({.client = client, .identity = identity, .hidden_hint = hint});
  match.job_not_registered = hint.has_value();
  return match;
}

Classifier::Match Classifier::match_of(const Sight& sight) const {
  const Rule* const rule = rules_.find(sight);
  if (rule == nullptr) {
    return {.virtual_pfs = "default", .declared_name = "default", .traffic_class = default_class_};
  }
  if (!rule->is_template) {
    return {.virtual_pfs = rule->virtual_pfs,
            .declared_name = rule->virtual_pfs,
            .traffic_class = rule->traffic_class};
  }
  std::string name = fill_in(*rule, sight);
  if (!is_good_name(name)) {
    return {.virtual_pfs = "default",
            .declared_name = "default",
            .traffic_class = default_class_,
            .name_refused = true};
  }
  return {.virtual_pfs = std::move(name),
          .declared_name = rule->virtual_pfs,
          .traffic_class = rule->traffic_class};
}

}  // namespace vpfs::stage
