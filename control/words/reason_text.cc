#include "control/words/reason_text.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/units.h"
#include "control/words/past_words.h"

namespace vpfs::words {
namespace {

using control::PastOf;

// So much of what it has done at most a data server may do and not be called full.
constexpr double kFull = 0.9;
// Where none waits longer for a data server, it has room for more.
constexpr double kIdle = 0.2;
// What has so much of a data server is alone there.
constexpr double kAlone = 0.95;
// A virtual PFS that got less of what it was entitled to got too little.
constexpr double kEnough = 0.9;
// What is held by a rate gets so much of it.
constexpr double kMostOfRate = 0.8;
// A part of the time that is worth a word.
constexpr double kLittle = 0.05;

// How much of the most that they have done the servers did; 0: not known.
double fullness(const SitePast& past) {
  double did = 0;
  double most = 0;
  for (const SitePast::Server& server : past.servers) {
    const control::PastReply& reply = server.reply;
    if (reply.most_cost_per_second() == 0) continue;
    did += static_cast<double>(reply.cost()) / static_cast<double>(reply.length_us()) * 1e6;
    most += static_cast<double>(reply.most_cost_per_second());
  }
  return most > 0 ? std::min(did / most, 1.0) : 0;
}

// For how much of the time the virtual PFS that waited most for others, or a full server, did so.
double longest_wait_for_server(const SitePast& past) {
  double longest = 0;
  for (const auto& [name, who] : past.virtual_pfs) {
    longest = std::max(longest, held_for_others(time_parts(past, name)));
  }
  return longest;
}

// Whether its own rate may have held it: while that held it, it got what the rate gives.
bool is_held_by_own_rate(const PastOf& who) {
  const auto held = static_cast<double>(std::min(who.held_limit_us(), who.active_us()));
  return who.rate() > 0 && static_cast<double>(bytes_of(who)) >=
                               kMostOfRate * static_cast<double>(who.rate()) * held / 1e6;
}

std::string limit_reason(const SitePast& past, const PastOf& who, const std::string& time) {
  const std::string whose =
      is_held_by_own_rate(who)
          ? fmt::format("Its own limit, {} at each server,", to_string(BytesPerSecond{who.rate()}))
          : "A limit (of its operations, or a coordinator's)";
  std::string text = fmt::format("{} held it for {} of the time", whose, time);
  if (longest_wait_for_server(past) < kIdle) {
    return text + "; nothing waited for the data server: a higher limit would help.";
  }
  const double full = fullness(past);
  if (full > 0 && full < kFull) {
    return text + fmt::format(
                      "; the server had {} to spare of the most that it has done: a higher limit "
                      "would help.",
                      percent_text(1 - full));
  }
  return text + "; the server was full: a higher limit would take from others.";
}

// Requests of others were before its own: in the queue, or at the data server.
std::string others_reason(const SitePast& past, const PastOf& who, const TimeParts& parts) {
  std::string text = fmt::format(
      "Others had their turn before it for {} of the time, and for {} the data server had all the "
      "requests that its depth allows. ",
      percent_text(parts.share), percent_text(parts.depth));
  if (past.cost > 0 && static_cast<double>(who.cost()) > kAlone * static_cast<double>(past.cost)) {
    return text + "It was nearly alone there: only a faster server would help.";
  }
  if (delivered_part(who) < kEnough) {
    return text + fmt::format(
                      "It got {} of what its weight, {}, entitled it to: that is too little, which "
                      "happens to a program that keeps no queue (see `vpfsctl stat`).",
                      percent_text(delivered_part(who)), who.weight());
  }
  return text + fmt::format("It got what its weight, {}, entitled it to: a larger one would help.",
                            who.weight());
}

// How long the servers took for a request of others, in microseconds; 0: there were none.
double service_of_others(const SitePast& past, const std::string& name) {
  std::uint64_t served = past.others.served_us();
  std::uint64_t operations = past.others.operations();
  for (const auto& [other, sums] : past.virtual_pfs) {
    if (other == name) continue;
    served += sums.served_us();
    operations += sums.operations();
  }
  return operations == 0 ? 0 : static_cast<double>(served) / static_cast<double>(operations);
}

std::string server_reason(const SitePast& past, const PastOf& who, const std::string& time) {
  const double mean = who.operations() == 0 ? 0
                                            : static_cast<double>(who.served_us()) /
                                                  static_cast<double>(who.operations());
  const double others = service_of_others(past, who.name());
  std::string text = fmt::format(
      "Nothing held it: for {} of the time the data server worked for it, {} for each request",
      time, mean_text(who.served_us(), who.operations()));
  if (others > 0 && mean > 1.5 * others) {
    text += fmt::format(" ({:.1f} times that of others: larger requests, or another disk)",
                        mean / others);
  }
  return text + ". More requests at once would help, or a faster server.";
}

std::string rest_reason(const std::string& time) {
  return fmt::format(
      "For {} of the time it asked for nothing: its program computed, or its client "
      "or the network was slow. No rule would help.",
      time);
}

}  // namespace

std::string reason_text(const SitePast& past, const PastOf& who) {
  const TimeParts parts = time_parts(past, who.name());
  const double others = parts.share + parts.depth;
  const double most = std::max({parts.limit, others, parts.kept_slot, parts.traffic_class,
                                parts.slow_client, parts.server, parts.rest});
  const std::string time = percent_text(most);
  if (most == parts.limit) return limit_reason(past, who, time);
  if (most == others) return others_reason(past, who, parts);
  if (most == parts.kept_slot) {
    return fmt::format(
        "A slot was kept for others, which send one request after the other, for {} of the time: "
        "scheduler.sfq.anticipation.max_loss bounds what that may cost.",
        time);
  }
  if (most == parts.traffic_class) {
    return fmt::format("Requests of other traffic classes went first for {} of the time.", time);
  }
  if (most == parts.slow_client) {
    return fmt::format("Its client was slow to take or give data for {} of the time.", time);
  }
  if (most == parts.server) return server_reason(past, who, time);
  std::string text = rest_reason(time);
  const double held = parts.limit + held_for_others(parts);
  if (held < kLittle) return text;
  return text +
         fmt::format(" When it asked, it was held: for {} of all the time.", percent_text(held));
}

}  // namespace vpfs::words
