#include "stage/rules/classifier.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "stage/rules/template_name.h"

namespace vpfs::stage {

namespace {

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
                       const JobRegistry* jobs, JobIds ids, std::vector<Address> node)
    : Classifier(std::make_shared<const RuleSet>(rules), default_class, jobs, ids,
                 std::move(node)) {}

Classifier::Classifier(std::shared_ptr<const RuleSet> rules, std::uint8_t default_class,
                       const JobRegistry* jobs, JobIds ids, std::vector<Address> node)
    : rules_(std::move(rules)),
      hint_names_(rules_->hint_names()),
      looked_at_(rules_->looked_at()),
      looks_at_client_(rules_->looks_at_client()),
      looks_at_uid_(looked_at_.has(Attribute::uid)),
      has_jobs_(jobs != nullptr && jobs->size() > 0),
      default_class_(default_class),
      jobs_(jobs),
      ids_(ids),
      node_(std::move(node)) {
  if ((has_jobs_ || rules_->looks_at_job()) &&
      std::ranges::find(hint_names_, kJobHint) == hint_names_.end()) {
    hint_names_.emplace_back(kJobHint);
  }
  const auto job_hint = std::ranges::find(hint_names_, kJobHint);
  if (job_hint == hint_names_.end()) return;
  job_hint_ = static_cast<std::size_t>(job_hint - hint_names_.begin());
  if (!has_jobs_) return;
  looks_at_client_ = true;
  looks_at_uid_ = looks_at_uid_ || jobs->has_users();
  if (jobs->has_users()) looked_at_.add(Attribute::uid);
}

bool Classifier::append_key(const Address& client, const Identity& identity,
                            std::string& key) const {
  FixedPart fixed;
  if (rules_->looks_at_kind()) fixed.add(std::to_underlying(identity.kind));
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

// An id on the wire goes before what registrations say of the address.
Classifier::JobOf Classifier::job_of(const Address& client, const Identity& identity) const {
  JobOf job;
  if (!job_hint_) return job;
  const std::span<const Address> addresses = node_.empty() ? std::span(&client, 1) : node_;
  if (const std::optional<std::string_view> shown = identity.hints[*job_hint_]) {
    const JobRegistry::Job* const registered =
        has_jobs_ ? jobs_->admitted(*shown, addresses, identity.uid) : nullptr;
    job.is_false = ids_ == JobIds::registered && registered == nullptr;
    if (!job.is_false) {
      job.id = shown;
      job.registered = registered;
      return job;
    }
  }
  job.registered = has_jobs_ ? jobs_->only_job_of(addresses, identity.uid) : nullptr;
  if (job.registered == nullptr) return job;
  job.id = job.registered->jobid;
  job.from_registration = true;
  return job;
}

Classifier::Match Classifier::classify(const Address& client, const Identity& identity) const {
  const JobOf job = job_of(client, identity);
  Sight sight = {.client = client,
                 .identity = identity,
                 .hidden_hint = job.is_false ? job_hint_ : std::nullopt,
                 .jobid = job.id};
  Match match;
  match.job_not_registered = job.is_false;
  match.job_from_registration = job.from_registration;
  if (job.id && is_good_name(*job.id)) match.jobid = *job.id;
  if (job.registered != nullptr) {
    sight.account = job.registered->account;
    sight.gids = job.registered->gids;
    match.nodes = job.registered->nodes;
    match.account = job.registered->account;
    const std::vector<std::uint64_t>& uids = job.registered->uids;
    if (uids.size() == 1) match.job_uid = static_cast<std::uint32_t>(uids.front());
  }
  const Rule* rule = rules_->index().find(sight);
  if (rule != nullptr && rule->is_shadow) {
    note_shadow(match, *rule, sight);
    rule = rules_->index().find(sight, RuleIndex::Among::enforcing);
  }
  take_rule(match, rule, sight);
  return match;
}

void Classifier::note_shadow(Match& match, const Rule& rule, const Sight& sight) const {
  const RuleSet::Target& target = rules_->targets()[rule.number];
  std::string name = target.is_template ? rules_->fill_in(rule, sight) : target.virtual_pfs;
  if (target.is_template && !is_good_name(name)) return;
  match.shadow_rule = rule.number;
  match.shadow_name = std::move(name);
}

void Classifier::take_rule(Match& match, const Rule* rule, const Sight& sight) const {
  const auto take_default = [&] {
    match.virtual_pfs = "default";
    match.declared_name = "default";
    match.traffic_class = default_class_;
  };
  if (rule == nullptr) return take_default();
  const RuleSet::Target& target = rules_->targets()[rule->number];
  match.virtual_pfs = target.is_template ? rules_->fill_in(*rule, sight) : target.virtual_pfs;
  if (target.is_template && !is_good_name(match.virtual_pfs)) {
    match.name_refused = true;
    return take_default();
  }
  match.declared_name = target.virtual_pfs;
  match.traffic_class = target.traffic_class;
  match.rule = rule->number;
  match.exempt = target.exempt;
}

}  // namespace vpfs::stage
