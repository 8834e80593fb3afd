#include "tools/vpfsctl/top/top_model.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <tuple>

#include "base/check.h"

namespace vpfs::ctl {
namespace {

constexpr std::uint64_t kSecond = 1'000'000;
// Samples come a little early or late.
constexpr std::uint64_t kNow = 900'000;
constexpr std::uint64_t kTen = 9'900'000;
constexpr std::uint64_t kKept = 11 * kSecond;
// Rates over a longer silence would not be those of now. It is more than two of the longest
// periods.
constexpr std::uint64_t kLongSilence = 150 * kSecond;

bool is_busy(const control::VirtualPfs& each) {
  return each.queued().requests() > 0 || each.outstanding().requests() > 0;
}

// The bytes of a cost, if `bytes` took `cost`; nothing if no bytes did.
std::optional<double> bytes_by(std::uint64_t entitled, std::uint64_t bytes, std::uint64_t cost) {
  if (bytes == 0 || cost == 0) return std::nullopt;
  return static_cast<double>(entitled) * static_cast<double>(bytes) / static_cast<double>(cost);
}

// The lower of the configured limit and the coordinator's.
std::uint64_t limit(std::uint64_t configured, bool is_allocated, std::uint64_t allocated) {
  if (!is_allocated || allocated == 0) return configured;
  return configured == 0 ? allocated : std::min(configured, allocated);
}

void add(const std::optional<double>& more, std::optional<double>* sum) {
  if (more) *sum = sum->value_or(0) + *more;
}

// Numbers of one proxy go into the row of all.
void merge(const TopRow& row, TopRow* all) {
  if (row.is_silent) return;
  all->is_silent = false;
  add(row.now.bytes, &all->now.bytes);
  add(row.now.operations, &all->now.operations);
  add(row.ten.bytes, &all->ten.bytes);
  add(row.ten.operations, &all->ten.operations);
  // It is entitled to what it got where its weight did nothing.
  add(row.not_busy ? row.now.bytes : row.entitled, &all->entitled);
  all->not_busy |= row.not_busy;
  all->has_own_part |= row.entitled.has_value();
  all->queued += row.queued;
  // Reasons for a missed share go before reasons for a wait.
  const bool explains_more = row.keeps_no_queue != all->keeps_no_queue
                                 ? row.keeps_no_queue
                                 : all->held_by.empty() || row.wait_us > all->wait_us;
  if (!row.held_by.empty() && explains_more) all->held_by = row.held_by;
  all->keeps_no_queue |= row.keeps_no_queue;
  all->wait_us = std::max(all->wait_us, row.wait_us);
  all->limit_bytes += row.limit_bytes;
  all->limit_operations += row.limit_operations;
  all->limit_metadata += row.limit_metadata;
  if (!row.rule.empty()) all->rule = row.rule;
  if (!row.class_name.empty()) all->class_name = row.class_name;
}

}  // namespace

TopModel::TopModel(const std::vector<std::string>& proxies) {
  for (const std::string& name : proxies) add_proxy(name);
}

void TopModel::add_proxy(const std::string& name) {
  proxies_.push_back({.name = name});
}

bool TopModel::Counters::not_before(const Counters& earlier) const {
  return bytes >= earlier.bytes && operations >= earlier.operations && cost >= earlier.cost &&
         held_limit >= earlier.held_limit && held_share >= earlier.held_share &&
         held_kept >= earlier.held_kept && held_depth >= earlier.held_depth &&
         held_class >= earlier.held_class && held_client >= earlier.held_client;
}

TopModel::Counters TopModel::counters_of(const control::VirtualPfs& each) {
  return {
      .bytes = each.read().bytes() + each.write().bytes(),
      .operations = each.read().requests() + each.write().requests() + each.metadata().requests(),
      .cost = each.cost_done(),
      .held_limit = each.held_limit_us(),
      .held_share = each.held_share_us(),
      .held_kept = each.held_kept_us(),
      .held_depth = each.held_depth_us(),
      .held_class = each.held_class_us(),
      .held_client = each.held_client_us()};
}

void TopModel::add(std::size_t index, const control::StatsReply& reply) {
  VPFS_ASSERT(index < proxies_.size());
  Proxy& proxy = proxies_[index];
  if (!proxy.history.empty()) {
    const std::uint64_t before = proxy.history.back().at_us;
    const bool is_another = reply.started_at() != proxy.last.started_at();
    if (is_another || reply.at_us() <= before || reply.at_us() - before > kLongSilence) {
      proxy.history.clear();
    }
  }
  Snapshot snapshot{.at_us = reply.at_us(), .counters = {}};
  for (const control::VirtualPfs& each : reply.virtual_pfs()) {
    snapshot.counters.insert_or_assign(Key(each.id(), each.generation()), counters_of(each));
  }
  proxy.history.push_back(std::move(snapshot));
  // Keep the last snapshot that is old enough; drop those before it.
  while (proxy.history.size() > 2 && proxy.history[1].at_us + kKept < reply.at_us()) {
    proxy.history.pop_front();
  }
  proxy.last = reply;
  proxy.answers = true;
  proxy.problem.clear();
}

void TopModel::lost(std::size_t index, const std::string& problem) {
  VPFS_ASSERT(index < proxies_.size());
  proxies_[index].answers = false;
  proxies_[index].problem = problem;
}

void TopModel::set_name(std::size_t index, const std::string& name) {
  VPFS_ASSERT(index < proxies_.size());
  proxies_[index].name = name;
}

std::optional<TopModel::Change> TopModel::change(const Proxy& proxy, Key key,
                                                 std::uint64_t back_us) {
  const Snapshot& newest = proxy.history.back();
  const auto now = newest.counters.find(key);
  if (now == newest.counters.end()) return std::nullopt;
  // The oldest sample that counts: the youngest that is old enough, if the virtual PFS was there.
  std::optional<Change> result;
  for (auto earlier = std::next(proxy.history.rbegin()); earlier != proxy.history.rend();
       ++earlier) {
    const auto before = earlier->counters.find(key);
    if (before == earlier->counters.end() || !now->second.not_before(before->second)) break;
    const Counters& a = before->second;
    const Counters& b = now->second;
    const std::uint64_t passed = newest.at_us - earlier->at_us;
    result = Change{.seconds = static_cast<double>(passed) / static_cast<double>(kSecond),
                    .by = {.bytes = b.bytes - a.bytes,
                           .operations = b.operations - a.operations,
                           .cost = b.cost - a.cost,
                           .held_limit = b.held_limit - a.held_limit,
                           .held_share = b.held_share - a.held_share,
                           .held_kept = b.held_kept - a.held_kept,
                           .held_depth = b.held_depth - a.held_depth,
                           .held_class = b.held_class - a.held_class,
                           .held_client = b.held_client - a.held_client}};
    if (passed >= back_us) break;
  }
  return result;
}

std::string TopModel::held_most(const Counters& by) {
  const std::array<std::pair<std::uint64_t, std::string_view>, 6> parts = {
      {{by.held_limit, "limit"},
       {by.held_share, "share"},
       {by.held_kept, "kept"},
       {by.held_depth, "depth"},
       {by.held_class, "class"},
       {by.held_client, "client"}}};
  const auto most =
      std::ranges::max_element(parts, {}, [](const auto& part) { return part.first; });
  return most->first == 0 ? std::string() : std::string(most->second);
}

// By what its cost was lately, else ever.
std::optional<double> TopModel::entitled_bytes(const control::VirtualPfs& each,
                                               const std::optional<Change>& now) {
  if (!each.has_entitled_cost()) return std::nullopt;
  if (now) {
    const auto bytes = bytes_by(each.entitled_cost(), now->by.bytes, now->by.cost);
    if (bytes) return bytes;
  }
  return bytes_by(each.entitled_cost(), each.read().bytes() + each.write().bytes(),
                  each.cost_done());
}

std::vector<TopRow> TopModel::rows_of(const Proxy& proxy) {
  std::vector<TopRow> rows;
  for (const control::VirtualPfs& each : proxy.last.virtual_pfs()) {
    const Key key(each.id(), each.generation());
    TopRow row{.name = each.name(),
               .proxy = proxy.name,
               .rule = each.rule(),
               .class_name = each.class_(),
               .is_silent = !proxy.answers};
    if (proxy.answers) {
      fill_rates(proxy, key, each, row);
      fill_now(each, row);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void TopModel::fill_rates(const Proxy& proxy, Key key, const control::VirtualPfs& each,
                          TopRow& row) {
  const auto rate_of = [](const Change& change) {
    return TopRate{.bytes = static_cast<double>(change.by.bytes) / change.seconds,
                   .operations = static_cast<double>(change.by.operations) / change.seconds};
  };
  const auto now = change(proxy, key, kNow);
  if (now) {
    row.now = rate_of(*now);
    row.held_by = held_most(now->by);
  }
  if (const auto ten = change(proxy, key, kTen)) row.ten = rate_of(*ten);
  row.entitled = entitled_bytes(each, now);
  const bool is_active = is_busy(each) || (now && now->by.cost > 0);
  row.not_busy = proxy.last.not_busy() && is_active && !row.entitled;
}

void TopModel::fill_now(const control::VirtualPfs& each, TopRow& row) {
  row.queued = each.queued().requests();
  row.wait_us = each.wait().since_us();
  if (!each.wait().reason().empty()) row.held_by = each.wait().reason();
  row.keeps_no_queue = each.keeps_no_queue();
  if (row.keeps_no_queue) row.held_by = "keeps no queue";
  row.limit_bytes = limit(each.rate(), each.has_allocated_rate(), each.allocated_rate());
  row.limit_operations =
      limit(each.operations(), each.has_allocated_operations(), each.allocated_operations());
  row.limit_metadata = each.allocated_metadata_operations();
}

std::vector<TopRow> TopModel::rows(bool each_proxy) const {
  std::vector<TopRow> result;
  std::map<std::string, TopRow> by_name;
  for (const Proxy& proxy : proxies_) {
    if (proxy.history.empty()) continue;
    for (TopRow& row : rows_of(proxy)) {
      if (each_proxy) {
        result.push_back(std::move(row));
        continue;
      }
      TopRow& all = by_name
                        .try_emplace(row.name, TopRow{.name = row.name,
                                                      .rule = row.rule,
                                                      .class_name = row.class_name,
                                                      .is_silent = true})
                        .first->second;
      merge(row, &all);
    }
  }
  for (auto& [name, row] : by_name) {
    // Where a server is busy, what it got elsewhere is part of the sum.
    if (row.has_own_part) row.not_busy = false;
    if (row.not_busy) row.entitled.reset();
    result.push_back(std::move(row));
  }
  std::ranges::sort(result, [](const TopRow& a, const TopRow& b) {
    return std::tie(a.name, a.proxy) < std::tie(b.name, b.proxy);
  });
  return result;
}

std::vector<TopProxy> TopModel::proxies() const {
  std::vector<TopProxy> result;
  for (const Proxy& proxy : proxies_) {
    TopProxy shown{.name = proxy.name,
                   .answers = proxy.answers,
                   .problem = proxy.problem,
                   .policy = proxy.last.policy(),
                   .bypass = proxy.last.bypass(),
                   .draining = proxy.last.draining(),
                   .outstanding = proxy.answers ? proxy.last.outstanding() : 0,
                   .queued = proxy.answers ? proxy.last.queued() : 0};
    if (!proxy.history.empty()) {
      for (const TopRow& row : rows_of(proxy)) {
        shown.bytes += row.now.bytes.value_or(0);
        shown.operations += row.now.operations.value_or(0);
      }
    }
    result.push_back(std::move(shown));
  }
  return result;
}

}  // namespace vpfs::ctl
