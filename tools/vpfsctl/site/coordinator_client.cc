#include "tools/vpfsctl/site/coordinator_client.h"

#include <utility>

#include <fmt/format.h>

namespace vpfs::ctl {
namespace {

// The place of errors that the coordinator has made, since it did not reach the stage.
constexpr std::string_view kNotReached = "stage";

ProxyAnswer answer_of(control::ForwardReply::Answer reply) {
  std::string name = std::move(*reply.mutable_stage());
  const control::Error& error = reply.answer().error();
  if (error.code() == control::Error::UNAVAILABLE && error.place() == kNotReached) {
    return unreachable(std::move(name), "unreachable", error.text());
  }
  return make_answer(std::move(name), std::move(*reply.mutable_answer()));
}

}  // namespace

bool is_of_coordinator(const Command& command) {
  switch (command.verb) {
    case Verb::rule_start:
    case Verb::rule_change:
    case Verb::rule_stop:
    case Verb::rule_list:
    case Verb::rule_apply:
    case Verb::rule_confirm:
    case Verb::rule_history:
    case Verb::rule_rollback:
    case Verb::job_start:
    case Verb::job_stop:
    case Verb::job_list:
      return true;
    default:
      return false;
  }
}

control::Envelope forwarded(control::Envelope request, const std::vector<std::string>& stages) {
  control::Envelope made;
  control::Forward& forward = *made.mutable_forward();
  forward.mutable_stages()->Add(stages.begin(), stages.end());
  *forward.mutable_request() = std::move(request);
  return made;
}

std::vector<ProxyAnswer> answers_of_stages(ProxyAnswer coordinator) {
  if (coordinator.outcome != Outcome::done) return {std::move(coordinator)};
  if (!coordinator.reply.has_forward_reply()) {
    return {unreachable(std::move(coordinator.name), "internal", "it gave another answer")};
  }
  control::ForwardReply& reply = *coordinator.reply.mutable_forward_reply();
  if (reply.answers().empty()) {
    return {unreachable(std::move(coordinator.name), "unreachable", "it has no stages")};
  }
  std::vector<ProxyAnswer> answers;
  for (control::ForwardReply::Answer& each : *reply.mutable_answers()) {
    answers.push_back(answer_of(std::move(each)));
  }
  return answers;
}

SiteOptions for_coordinator(SiteOptions options) {
  options.client.peer = "coordinator";
  options.client.if_coordinator.clear();
  options.client.if_stage = "is a proxy or a mount, and not a coordinator: --proxy names it";
  return options;
}

CoordinatorClient::CoordinatorClient(const std::vector<control::PortAddress>& addresses,
                                     SiteOptions options)
    : name_(control::to_string(addresses)),
      options_(for_coordinator(std::move(options))),
      client_(addresses, options_.client) {}

ProxyAnswer CoordinatorClient::ask(const control::Envelope& request) {
  control::Reply<control::Envelope> reply = client_.ask(request, options_.timeout);
  const control::Hello* const hello = client_.hello();
  const bool is_named = hello != nullptr && !hello->name().empty();
  return to_answer(is_named ? hello->name() : name_, std::move(reply));
}

std::vector<ProxyAnswer> CoordinatorClient::ask_stages(const control::Envelope& request,
                                                       const std::vector<std::string>& stages) {
  return answers_of_stages(ask(forwarded(request, stages)));
}

}  // namespace vpfs::ctl
