#include "control/metrics/http_source.h"

#include <utility>

namespace vpfs::control {

HttpSource http_source(Owner& owner, std::function<std::string()> not_ready) {
  auto stats = [&owner](std::function<void(StatsReply)> answer) {
    Envelope request;
    request.mutable_stats()->set_rules(true);
    const Caller caller = {.name = "metrics", .from = "http", .rights = Rights::read};
    owner.ask(std::move(request), caller, Answer([answer = std::move(answer)](Envelope reply) {
                // An error has no numbers: the scrape fails after a while.
                if (reply.has_stats_reply()) answer(std::move(*reply.mutable_stats_reply()));
              }));
  };
  return {.stats = std::move(stats), .not_ready = std::move(not_ready)};
}

}  // namespace vpfs::control
