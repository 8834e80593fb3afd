#include "control/etcd/etcd_site_store.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/one_line.h"

namespace vpfs::control {
namespace {

using Failure = SiteStore::Failure;
using Why = SiteStore::Why;

// A watch that ends at once must not make its owner look again and again.
constexpr Duration kLeastWait = std::chrono::milliseconds(250);
// A leader resigns once, and its lease ends once.
constexpr int kTries = 4;

std::unexpected<Failure> not_done(const EtcdFailure& failure) {
  return std::unexpected(to_failure(failure));
}

struct Versions {
  std::int64_t term = 0;
  std::int64_t leader = 0;
};

Versions versions_of(const EtcdKeyValue* term, const EtcdKeyValue* leader) {
  return {.term = term != nullptr ? term->mod_revision : 0,
          .leader = leader != nullptr ? leader->mod_revision : 0};
}

// Whether what is stored comes from the claim of `leader`. Each claim has a term of its own.
bool is_claim_of(const EtcdKeyValue* term, const std::optional<Leadership>& leader) {
  if (term == nullptr || !leader) return term == nullptr && !leader;
  const Result<Leadership> stored = parse_leadership(term->value);
  return stored && stored->term == leader->term && stored->incarnation == leader->incarnation;
}

std::string to_text(const Versions& versions) {
  return fmt::format("{}/{}", versions.term, versions.leader);
}

bool is_number(std::string_view text, std::int64_t& number) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc{} && end.ptr == text.data() + text.size();
}

std::optional<Versions> parse_versions(std::string_view text) {
  Versions versions;
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || !is_number(text.substr(0, slash), versions.term) ||
      !is_number(text.substr(slash + 1), versions.leader)) {
    return std::nullopt;
  }
  return versions;
}

const EtcdKeyValue* first(const std::vector<EtcdKeyValue>& found) {
  return found.empty() ? nullptr : &found.front();
}

std::unexpected<Failure> claimed_by_another(const std::string& key) {
  return std::unexpected(
      Failure{.why = Why::lost, .text = "etcd " + key + ": another coordinator has claimed it"});
}

}  // namespace

std::string default_etcd_prefix(std::string_view site) {
  return fmt::format("/vpfs/{}/", site);
}

Result<std::unique_ptr<EtcdSiteStore>> EtcdSiteStore::make(EtcdStoreSettings settings,
                                                           const Clock& clock) {
  if (settings.prefix.empty()) return fail("the prefix of keys in etcd is empty");
  if (settings.lease < std::chrono::seconds(2) ||
      settings.lease % std::chrono::seconds(1) != Duration::zero()) {
    return fail("a lease in etcd has whole seconds, at least two");
  }
  Result<std::unique_ptr<EtcdClient>> client = EtcdClient::make(settings.etcd, clock);
  VPFS_TRY(client);
  return std::unique_ptr<EtcdSiteStore>(
      new EtcdSiteStore(std::move(settings), clock, *std::move(client)));
}

EtcdSiteStore::EtcdSiteStore(EtcdStoreSettings settings, const Clock& clock,
                             std::unique_ptr<EtcdClient> client)
    : keys_(std::move(settings.prefix)),
      lease_(std::chrono::duration_cast<std::chrono::seconds>(settings.lease)),
      clock_(clock),
      client_(std::move(client)),
      records_(*client_, keys_) {}

SiteStore::Traits EtcdSiteStore::traits() const {
  return {.has_standbys = true, .lease = lease_, .shows_beats = false, .vacancy_is_certain = true};
}

EtcdCompare EtcdSiteStore::has_revision(const std::string& key, std::int64_t revision) const {
  return {.key = key, .target = EtcdCompare::Target::mod_revision, .revision = revision};
}

SiteStore::Outcome<SiteStore::Seen> EtcdSiteStore::look() {
  // A transaction reads both at one revision.
  const auto answer =
      client_->transact({.compares = {},
                         .success = {etcd_range({.key = keys_.term()}),
                                     etcd_range({.key = keys_.leader(), .keys_only = true})},
                         .failure = {}},
                        EtcdClient::Repeat::yes);
  if (!answer) return not_done(answer.error());
  if (answer->found.size() != 2) {
    return std::unexpected(
        Failure{.why = Why::unreachable, .text = "etcd has answered another question"});
  }
  seen_revision_ = answer->revision;
  const EtcdKeyValue* const term = first(answer->found[0]);
  const EtcdKeyValue* const leader = first(answer->found[1]);
  Seen seen;
  seen.version = to_text(versions_of(term, leader));
  if (term != nullptr) {
    Result<Leadership> parsed = parse_leadership(term->value);
    if (!parsed) {
      return std::unexpected(
          Failure{.why = Why::damaged,
                  .text = fmt::format("etcd {}: {}", keys_.term(), parsed.error().message)});
    }
    seen.leader = *std::move(parsed);
    seen.least_term = seen.leader->term + 1;
  }
  seen.is_vacant = leader == nullptr || (seen.leader && seen.leader->has_resigned);
  return seen;
}

SiteStore::Outcome<void> EtcdSiteStore::claim(const Seen& seen, const Leadership& own) {
  VPFS_ASSERT(own.term >= seen.least_term);
  std::optional<Versions> versions = parse_versions(seen.version);
  VPFS_ASSERT(versions.has_value());
  const EtcdOutcome<EtcdClient::Lease> lease = client_->grant_lease(lease_);
  if (!lease) return not_done(lease.error());
  const std::string record = to_record(own);
  for (int time = 0; time < kTries; ++time) {
    const auto answer = client_->transact(
        {.compares = {has_revision(keys_.term(), versions->term),
                      has_revision(keys_.leader(), versions->leader)},
         .success = {etcd_put(keys_.term(), record), etcd_put(keys_.leader(), record, lease->id)},
         .failure = {etcd_range({.key = keys_.term()}), etcd_range({.key = keys_.leader()})}},
        EtcdClient::Repeat::yes);
    if (!answer) return not_done(answer.error());
    if (answer->succeeded) {
      take_office(own, lease->id, answer->revision);
      return {};
    }
    const EtcdKeyValue* const term = first(answer->found[0]);
    const EtcdKeyValue* const leader = first(answer->found[1]);
    const bool is_own = term != nullptr && term->value == record && leader != nullptr &&
                        leader->value == record && leader->lease != 0;
    if (is_own) return take_earlier_claim(own, *leader, lease->id);
    // Since then the leader may have resigned, or its lease may have ended.
    if (!is_claim_of(term, seen.leader)) break;
    versions = versions_of(term, leader);
  }
  (void)client_->revoke_lease(lease->id);  // it ends by itself, too
  return claimed_by_another(keys_.leader());
}

SiteStore::Outcome<void> EtcdSiteStore::take_earlier_claim(const Leadership& own,
                                                           const EtcdKeyValue& leader,
                                                           std::int64_t lease) {
  take_office(own, leader.lease, leader.mod_revision);
  if (leader.lease == lease) return {};
  (void)client_->revoke_lease(lease);
  return confirm();  // the lease is of the time of that call
}

void EtcdSiteStore::take_office(const Leadership& own, std::int64_t lease, std::int64_t revision) {
  office_ = Office{.own = own, .lease = lease, .revision = revision};
  records_.lead(revision);
}

SiteStore::Outcome<void> EtcdSiteStore::confirm() {
  VPFS_ASSERT(office_.has_value());
  const EtcdOutcome<EtcdClient::Lease> kept = client_->keep_alive(office_->lease);
  if (!kept && kept.error().why == EtcdFailure::Why::not_found) {
    return lost_office(keys_.leader());
  }
  if (!kept) return not_done(kept.error());
  const auto leader = client_->range({.key = keys_.leader(), .keys_only = true});
  if (!leader) return not_done(leader.error());
  const EtcdKeyValue* const found = first(leader->found);
  if (found == nullptr || found->mod_revision != office_->revision) {
    return lost_office(keys_.leader());
  }
  // A member of etcd that led without knowing of its successor may have kept the lease alive, which
  // counts for nothing.
  if (leader->raft_term != kept->raft_term) {
    return std::unexpected(Failure{
        .why = Why::unreachable,
        .text = "the members of etcd have chosen another leader while the lease was confirmed"});
  }
  return {};
}

SiteStore::Outcome<void> EtcdSiteStore::resign() {
  VPFS_ASSERT(office_.has_value());
  Leadership resigned = office_->own;
  resigned.has_resigned = true;
  const std::string record = to_record(resigned);
  const auto answer =
      client_->transact({.compares = {has_revision(keys_.leader(), office_->revision)},
                         .success = {etcd_put(keys_.term(), record), etcd_erase(keys_.leader())},
                         .failure = {etcd_range({.key = keys_.term()})}},
                        EtcdClient::Repeat::yes);
  if (!answer) return not_done(answer.error());
  if (!answer->succeeded) {
    const EtcdKeyValue* const term = first(answer->found[0]);
    if (term == nullptr || term->value != record) return lost_office(keys_.leader());
  }
  (void)client_->revoke_lease(office_->lease);
  return {};
}

SiteStore::Outcome<StateStore::Loaded> EtcdSiteStore::load() {
  VPFS_ASSERT(office_.has_value());
  // Whether the office is still held is for confirm() to say.
  return records_.load([this] { (void)client_->keep_alive(office_->lease); });
}

SiteStore::Outcome<void> EtcdSiteStore::append(std::string_view record) {
  VPFS_ASSERT(office_.has_value());
  return records_.append(record);
}

SiteStore::Outcome<void> EtcdSiteStore::replace(std::string_view record) {
  VPFS_ASSERT(office_.has_value());
  return records_.replace(record);
}

void EtcdSiteStore::wait(Duration patience) {
  const TimePoint begun = clock_.now();
  const auto watched = client_->watch({keys_.term(), keys_.leader()}, seen_revision_, patience);
  if (watched == EtcdClient::Watched::broken) {
    client_->sleep_until(begun + std::min(patience, kLeastWait));
  }
}

}  // namespace vpfs::control
