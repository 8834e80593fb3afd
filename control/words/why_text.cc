#include "control/words/why_text.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/joined.h"
#include "base/units.h"
#include "control/words/past_words.h"
#include "control/words/printable.h"
#include "control/words/reason_text.h"
#include "control/words/table.h"

namespace vpfs::words {
namespace {

using control::PastOf;

constexpr std::size_t kMostAsked = 5;    // that are explained
constexpr std::size_t kMostOthers = 10;  // that are listed

std::string rules_text(const SitePast& past) {
  const auto same = [&](auto value) {
    return std::ranges::all_of(past.servers, [&](const SitePast::Server& server) {
      return value(server.reply) == value(past.servers.front().reply);
    });
  };
  const control::PastReply& first = past.servers.front().reply;
  if (!same([](const auto& reply) { return reply.first_rules(); }) ||
      !same([](const auto& reply) { return reply.last_rules(); })) {
    return "the live rules had several versions";
  }
  if (first.last_rules() == 0) return "there were no live rules";
  if (first.first_rules() == first.last_rules()) {
    return fmt::format("the live rules were those of version {}", first.last_rules());
  }
  return fmt::format("the live rules went from version {} to {}", first.first_rules(),
                     first.last_rules());
}

std::string share_text(const PastOf& who) {
  std::string text = fmt::format("weight {}", who.weight());
  if (who.rate() > 0) text += fmt::format(", rate {}", to_string(BytesPerSecond{who.rate()}));
  if (who.min() > 0) text += fmt::format(", min {}", to_string(BytesPerSecond{who.min()}));
  return text;
}

std::string parts_table(const TimeParts& parts) {
  const std::pair<std::string_view, double> rows[] = {
      {"held by a limit", parts.limit},
      {"held by the shares of others", parts.share},
      {"held by a slot kept for others", parts.kept_slot},
      {"held because the server was full", parts.depth},
      {"held by other traffic classes", parts.traffic_class},
      {"held because its client was slow", parts.slow_client},
      {"at the data server", parts.server},
      {"client, program or network", parts.rest}};
  Table table({{"TIME"}, {"PART", true}});
  for (const auto& [what, part] : rows) {
    table.add({std::string(what), percent_text(part)});
  }
  return table.text();
}

std::string servers_table(const SitePast& past, const std::string& name) {
  Table table({{"SERVER"},
               {"RATE", true},
               {"HELD", true},
               {"BY A LIMIT", true},
               {"WAIT", true},
               {"SERVICE", true}});
  std::string slowest;
  double most = 0;
  for (const SitePast::Server& server : past.servers) {
    for (const PastOf& each : server.reply.virtual_pfs()) {
      if (each.name() != name) continue;
      const TimeParts parts = time_parts(each);
      table.add({server.name, rate_text(bytes_of(each), each.active_us()),
                 percent_text(parts.limit + held_for_others(parts)), percent_text(parts.limit),
                 mean_text(each.waited_us(), each.operations()),
                 mean_text(each.served_us(), each.operations())});
      const double took = static_cast<double>(each.waited_us() + each.served_us()) /
                          static_cast<double>(std::max<std::uint64_t>(each.operations(), 1));
      if (took <= most) continue;
      most = took;
      slowest = server.name;
    }
  }
  return table.text() + (slowest.empty() ? "" : fmt::format("slowest: {}\n", printable(slowest)));
}

std::string others_table(const SitePast& past, const std::string& name) {
  std::vector<const PastOf*> found;
  for (const auto& [other, sums] : past.virtual_pfs) {
    if (other != name) found.push_back(&sums);
  }
  if (past.is_partial) return "what others did is not shown to you\n";
  if (found.empty() && past.others.cost() == 0) return "no other virtual PFS was served\n";
  std::ranges::sort(found, std::greater(), [](const PastOf* each) { return each->cost(); });
  const auto part_of_all = [&](std::uint64_t cost) {
    return past.cost == 0
               ? "-"
               : percent_text(static_cast<double>(cost) / static_cast<double>(past.cost));
  };
  Table table({{"ALSO SERVED"}, {"WEIGHT", true}, {"BYTES", true}, {"PART", true}, {"RULE"}});
  PastOf rest = past.others;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i >= kMostOthers) {
      add_use(rest, *found[i]);
      continue;
    }
    table.add({found[i]->name(), std::to_string(found[i]->weight()), size_text(bytes_of(*found[i])),
               part_of_all(found[i]->cost()), joined(found[i]->rules(), ",")});
  }
  if (rest.cost() > 0) {
    table.add({"(others)", "", size_text(bytes_of(rest)), part_of_all(rest.cost()), ""});
  }
  return table.text();
}

// How long it was active where it was active longest: it may use few of the servers.
std::uint64_t longest_activity(const SitePast& past, const std::string& name) {
  std::uint64_t longest = 0;
  for (const SitePast::Server& server : past.servers) {
    for (const PastOf& each : server.reply.virtual_pfs()) {
      if (each.name() == name) longest = std::max(longest, each.active_us());
    }
  }
  return longest;
}

std::string answer_text(const SitePast& past, const PastOf& who) {
  std::string text = printable(who.name());
  if (!who.jobid().empty() && who.jobid() != who.name()) {
    text += fmt::format(", job {}", printable(who.jobid()));
  }
  const std::string rules = joined(who.rules(), ", ");
  text += fmt::format(": {}; rule {}\n", share_text(who), rules.empty() ? "-" : printable(rules));
  text += fmt::format("{} to {}, {}; {}\n", time_text(past.from_at), time_text(past.to_at),
                      servers_text(past), rules_text(past));
  const std::uint64_t active = longest_activity(past, who.name());
  text += fmt::format("It got {} in {} requests, {} while it was active, for {}.\n",
                      size_text(bytes_of(who)), who.operations(), rate_text(bytes_of(who), active),
                      length_text(active));
  text += reason_text(past, who) + "\n\n" + parts_table(time_parts(past, who.name()));
  text += fmt::format("A request waited {} on average, {:.1f} ms at most, and took {} then.\n",
                      mean_text(who.waited_us(), who.operations()),
                      static_cast<double>(who.longest_wait_us()) / 1000,
                      mean_text(who.served_us(), who.operations()));
  if (past.servers.size() > 1) text += "\n" + servers_table(past, who.name());
  return text + "\n" + others_table(past, who.name());
}

}  // namespace

Result<std::string> why_text(const SitePast& past, const std::string& name) {
  const std::vector<std::string> names = asked_names(past);
  if (names.empty()) {
    if (past.known_from_at == 0) return fail("nothing is known yet: the history begins now");
    const std::string begin = time_text(past.known_from_at);
    if (past.servers.empty()) {
      return fail(fmt::format("nothing is known of that time: the history begins at {}", begin));
    }
    return fail(fmt::format("\"{}\" did nothing from {} to {}; the history begins at {}",
                            printable(name), time_text(past.from_at), time_text(past.to_at),
                            begin));
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostAsked); ++i) {
    if (i > 0) text += "\n";
    text += answer_text(past, past.virtual_pfs.at(names[i]));
  }
  if (names.size() > kMostAsked) {
    text += fmt::format("\nand {} more\n", names.size() - kMostAsked);
  }
  return text;
}

}  // namespace vpfs::words
