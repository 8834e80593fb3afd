#include "control/metrics/http_source.h"

#include <utility>

namespace vpfs::control {

std::function<void(Envelope, std::function<void(Envelope)>)> ask_of(Owner& owner) {
  return [&owner](Envelope question, std::function<void(Envelope)> answer) {
    const Caller caller = {.name = "page", .from = "http", .rights = Rights::read};
    owner.ask(std::move(question), caller, Answer(std::move(answer)));
  };
}

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
  return {.stats = std::move(stats), .not_ready = std::move(not_ready), .ask = ask_of(owner)};
}

}  // namespace vpfs::control
