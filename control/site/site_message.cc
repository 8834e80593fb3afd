#include "control/site/site_message.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "control/admin/job_replies.h"
#include "stage/book/changes.h"
#include "stage/config/live_words.h"

namespace vpfs::coordinator {
namespace {

using Ends = std::map<std::string_view, WallTime>;

// When live rules end, by their names.
Ends ends_of(const stage::BookState& book) {
  Ends ends;
  const auto add = [&](const stage::LiveRule& rule) {
    if (rule.until) ends.emplace(rule.text.name, *rule.until);
  };
  for (const auto& rule : stage::administrators_of(book).rules) add(*rule);
  for (const auto& [id, job] : book.jobs) {
    if (job.rule != nullptr) add(*job.rule);
  }
  return ends;
}

std::int64_t seconds(WallTime time) {
  return time.time_since_epoch().count();
}

}  // namespace

stage::Config site_grammar(const stage::Names* names) {
  stage::Config config;
  config.source = "a stage";
  config.shown = {Attribute::hint,      Attribute::file_system, Attribute::uid,
                  Attribute::node,      Attribute::target,      Attribute::owner,
                  Attribute::directory, Attribute::metadata,    Attribute::jobid,
                  Attribute::gid,       Attribute::account};
  config.names = names;
  config.is_site = true;
  return config;
}

control::Site to_site(const control::LiveState& live, const std::string& origin) {
  control::Site site;
  site.set_origin(origin);
  const Ends ends = ends_of(live.book().state());
  for (const stage::RuleConfig& rule : live.composed().config.rules) {
    control::Site::Rule& to = *site.add_rules();
    to.set_name(rule.name);
    to.set_condition(rule.text.condition);
    std::vector<std::string> words = rule.text.words;
    stage::erase_words(words, "total_rate");
    stage::erase_words(words, "total_operations");
    for (std::string& word : words) to.add_words(std::move(word));
    if (const auto end = ends.find(rule.name); end != ends.end()) {
      to.set_until_at(seconds(end->second));
    }
  }
  control::JobReply jobs;
  control::add_jobs(jobs, live);
  *site.mutable_jobs() = std::move(*jobs.mutable_jobs());
  return site;
}

}  // namespace vpfs::coordinator
