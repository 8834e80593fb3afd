#include "tools/plan/planned_rules.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/config_reader.h"
#include "base/joined.h"
#include "fuse/posix/config.h"
#include "proxy/config/config.h"
#include "stage/book/composer.h"
#include "stage/book/rule_book.h"
#include "stage/book/rule_set_file.h"
#include "stage/config/rule_text.h"

namespace vpfs::plan {
namespace {

using control::InForceReply;

Result<stage::Config> file_of(const InForceReply& in_force, const stage::Names& names) {
  ConfigErrors errors(fmt::format(
      "{} of {}", in_force.file_name().empty() ? "the configuration" : in_force.file_name(),
      in_force.name()));
  stage::Config config;
  if (in_force.program() == proxy::kProgramName.program) {
    const proxy::Config whole = proxy::parse_config(in_force.file(), errors, nullptr, &names);
    config = static_cast<const stage::Config&>(whole);
  } else if (in_force.program() == fuse::kProgramName.program) {
    const fuse::Config whole = fuse::parse_config(in_force.file(), errors, nullptr, &names);
    config = static_cast<const stage::Config&>(whole);
  } else {
    return fail(fmt::format("{}: is a {}, which this program does not know", in_force.name(),
                            in_force.program()));
  }
  if (!errors.empty()) return fail(joined(errors.lines(), "\n"));
  for (const std::string& each : in_force.node_addresses()) {
    stage::Address::Bytes bytes = {};
    if (each.size() != bytes.size()) {
      return fail(fmt::format("{}: tells an address of {} bytes", in_force.name(), each.size()));
    }
    std::ranges::copy(each, bytes.begin());
    config.node_addresses.emplace_back(bytes);
  }
  return config;
}

}  // namespace

Result<PlannedRules> planned_rules(const InForceReply& in_force, const RuleSetText& set,
                                   WallTime at, const stage::Names& names) {
  const Result<stage::Config> file = file_of(in_force, names);
  VPFS_TRY(file);
  stage::RuleBook book(stage::parse_rule);
  if (const auto read = book.replay(in_force.book()); !read) {
    return fail(
        fmt::format("{}: its live rules cannot be read here: {}", in_force.name(), read.error()));
  }
  stage::Composer composer(stage::parse_rule);
  PlannedRules planned;
  planned.now = composer.compose(*file, book.state()).config;
  ConfigErrors errors(set.file_name);
  stage::ApplySet apply =
      stage::read_rule_set(set.text, *file, book.state(), stage::parse_rule, errors);
  if (!errors.empty()) return fail(joined(errors.lines(), "\n"));
  const auto change = book.prepare({.at = at, .who = "plan", .what = std::move(apply)}, *file);
  if (!change) {
    const stage::BookProblem& problem = change.error();
    return fail(fmt::format("{}: {}{}{}", set.file_name, problem.place,
                            problem.place.empty() ? "" : ": ", problem.text));
  }
  book.commit(change->operation);
  planned.then = composer.compose(*file, book.state()).config;
  return planned;
}

}  // namespace vpfs::plan
