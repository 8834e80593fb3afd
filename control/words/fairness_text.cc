#include "control/words/fairness_text.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "base/joined.h"
#include "control/words/past_words.h"
#include "control/words/printable.h"
#include "control/words/table.h"

namespace vpfs::words {
std::string fairness_text(const SitePast& past) {
  std::vector<const control::PastOf*> rows;
  rows.reserve(past.virtual_pfs.size());
  std::uint64_t length = 0;
  for (const auto& [name, who] : past.virtual_pfs) rows.push_back(&who);
  for (const SitePast::Server& server : past.servers) {
    length = std::max(length, server.reply.length_us());
  }
  if (rows.empty()) return "no virtual PFS did anything in that time\n";
  std::ranges::sort(rows, std::greater(), [](const control::PastOf* each) { return each->cost(); });
  Table table({{"NAME"},
               {"WEIGHT", true},
               {"ENTITLED", true},
               {"WANTED", true},
               {"DELIVERED", true},
               {"GOT", true},
               {"LAG", true},
               {"BOUND", true},
               {"RULE"}});
  double sum = 0;
  double squares = 0;
  std::size_t counted = 0;
  for (const control::PastOf* who : rows) {
    const bool wanted_all = who->wanted_all_us() > who->active_us() / 2;
    table.add(
        {who->name(), std::to_string(who->weight()),
         rate_text(as_bytes(who->entitled_cost(), *who), length),
         wanted_all ? "all" : rate_text(as_bytes(who->wanted_cost(), *who), length),
         rate_text(bytes_of(*who), length),
         who->entitled_cost() == 0 ? "-" : percent_text(delivered_part(*who)),
         who->has_lag_cost() ? size_text(as_bytes(whole_cost(who->lag_cost()), *who)) : "-",
         who->has_lag_cost() ? size_text(as_bytes(whole_cost(who->lag_bound_cost()), *who)) : "-",
         joined(who->rules(), ",")});
    if (who->entitled_cost() == 0) continue;
    sum += delivered_part(*who);
    squares += delivered_part(*who) * delivered_part(*who);
    ++counted;
  }
  std::string text = fmt::format("{} to {}, {}\n", time_text(past.from_at), time_text(past.to_at),
                                 servers_text(past));
  text += table.text();
  if (past.others.cost() > 0) {
    text += fmt::format("others: {}\n", rate_text(bytes_of(past.others), length));
  }
  if (squares > 0) {
    text += fmt::format("Jain's index of delivered/entitled: {:.3f} of {} virtual PFSes\n",
                        sum * sum / (static_cast<double>(counted) * squares), counted);
  }
  return text;
}

}  // namespace vpfs::words
