#include "control/site/site_size.h"

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "control/site/site_message.h"
#include "stage/book/changes.h"

namespace vpfs::coordinator {
namespace {

// A field has a tag of one byte, and a number of at most ten, or a length and so many bytes.
constexpr std::size_t kNumber = 11;

std::size_t field(std::size_t length) {
  std::size_t size = 2 + length;
  for (std::size_t rest = length >> 7U; rest > 0; rest >>= 7U) ++size;
  return size;
}

std::size_t text(std::string_view value) {
  return field(value.size());
}

std::size_t texts(const std::vector<std::string>& values) {
  std::size_t sum = 0;
  for (const std::string& each : values) sum += text(each);
  return sum;
}

std::size_t rule(const stage::RuleText& rule) {
  return field(text(rule.name) + text(rule.condition) + texts(rule.words) + kNumber);
}

std::size_t job(const stage::RegisteredJob& job) {
  return field(text(job.jobid) + texts(job.clients) + text(job.account) + text("coordinator") +
               (job.uids.size() + job.gids.size() + 5) * kNumber);
}

struct Growth {
  const stage::BookOperation& operation;
  const stage::BookState& book;

  SiteGrowth operator()(const stage::StartRule& start) const { return {.most = rule(start.rule)}; }
  SiteGrowth operator()(const stage::ChangeRule& change) const {
    return {.most = texts(change.becomes) + kNumber};
  }
  SiteGrowth operator()(const stage::ApplySet& apply) const {
    SiteGrowth growth = {.replaces_rules = true};
    for (const stage::ApplySet::Rule& each : apply.rules) growth.most += rule(each.text);
    return growth;
  }
  SiteGrowth operator()(const stage::Rollback& rollback) const {
    SiteGrowth growth = {.replaces_rules = true};
    const stage::LiveSet* const set = stage::set_of(book, rollback.version);
    if (set == nullptr) return growth;
    for (const auto& each : set->rules) growth.most += rule(each->text);
    return growth;
  }
  SiteGrowth operator()(const stage::StartJob& start) const {
    SiteGrowth growth = {.most = job(start.job)};
    if (!start.words.empty()) {
      growth.most +=
          rule(stage::rule_of_job(start.job.jobid, start.words, operation.at, operation.who).text);
    }
    return growth;
  }
  // Others take away, or change what stages are not told.
  SiteGrowth operator()(const auto& /*other*/) const { return {}; }
};

}  // namespace

SiteSize size_of(const control::LiveState& live) {
  const control::Site site = to_site(live, "");
  SiteSize size = {.all = site.ByteSizeLong()};
  // The message has them in this order.
  const std::vector<stage::RuleConfig>& rules = live.composed().config.rules;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (rules[i].origin != stage::RuleOrigin::administrator) continue;
    size.administrators_rules += field(site.rules(static_cast<int>(i)).ByteSizeLong());
  }
  return size;
}

SiteGrowth growth_of(const stage::BookOperation& operation, const stage::BookState& book) {
  return std::visit(Growth{.operation = operation, .book = book}, operation.what);
}

}  // namespace vpfs::coordinator
