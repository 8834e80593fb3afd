#include "control/site/site_forward.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "control/wire/protocol.h"
#include "control/wire/requests.h"

namespace vpfs::coordinator {
namespace {

using control::Envelope;
using control::Forward;
using control::ForwardReply;
using control::make_error;

Envelope error_of(control::Error::Code code, const char* place, std::string text) {
  Envelope answer;
  *answer.mutable_error() = make_error(code, place, std::move(text));
  return answer;
}

Envelope not_reached(std::string text) {
  return error_of(control::Error::UNAVAILABLE, StageRequests::kNotReached, std::move(text));
}

std::string not_forwarded(const Envelope& request, std::string_view name) {
  if (const std::optional<int> number = control::unknown_body(request)) {
    return fmt::format(
        "this version does not know the message with the number {}: a newer vpfsctl "
        "has to ask the stage itself",
        *number);
  }
  const bool is_empty = request.body_case() == Envelope::BODY_NOT_SET;
  return fmt::format("{} cannot be forwarded", is_empty ? "a message without a body" : name);
}

// The request for an aggregator, for these of its stages; none: all. What this version does not
// know of it stays.
Envelope further(const Forward& request, const std::vector<std::string>& stages) {
  Envelope envelope;
  Forward& inside = *envelope.mutable_forward();
  inside = request;
  inside.clear_stages();
  inside.mutable_stages()->Add(stages.begin(), stages.end());
  return envelope;
}

const std::string& name_of(const AbsentStage& stage) {
  return stage.name.empty() ? stage.address : stage.name;
}

const std::string& name_of_member(const SiteStages::Member& stage) {
  return stage.hello->name;
}

// The stage has not done it: another process is about to take its place.
bool is_of_another_process(const Envelope& answer) {
  return answer.has_error() && answer.error().place() == control::kTakenOver;
}

bool is_unknown_stage(const ForwardReply::Answer& answer) {
  const control::Error& error = answer.answer().error();
  return error.code() == control::Error::NOT_FOUND && error.place() == "stages";
}

}  // namespace

// One request, until all its stages have answered.
struct SiteForward::Run {
  Forward request;
  std::vector<ForwardReply::Answer> answers;
  std::set<std::string, std::less<>> unknown;  // names that no stage had so far
  std::set<std::string, std::less<>> asked_again;
  std::size_t missing = 1;  // answers, and the end of start()
  std::size_t bytes = 0;
  bool is_of_others = false;
  Done done;

  void add(std::string stage, std::string address, Envelope answer) {
    ForwardReply::Answer& to = answers.emplace_back();
    to.set_stage(std::move(stage));
    to.set_address(std::move(address));
    *to.mutable_answer() = std::move(answer);
  }
  void add_absent(const AbsentStage& stage) {
    add(name_of(stage), stage.address,
        not_reached(stage.problem.empty() ? "is not connected"
                                          : "is not connected: " + stage.problem));
  }
};

std::optional<control::Error> SiteForward::problem_of(const Envelope& request) {
  const control::RequestKind* const kind = control::find_request(request);
  const std::string_view name = control::body_name(request);
  if (kind == nullptr || kind->forwarding == control::Forwarding::never) {
    return make_error(control::Error::UNSUPPORTED, "request", not_forwarded(request, name));
  }
  if (kind->forwarding == control::Forwarding::always || control::is_list(request)) return {};
  return make_error(control::Error::INVALID, "request",
                    fmt::format("{}s are the site's: ask the coordinator itself for them", name));
}

void SiteForward::forward(const Forward& request, const control::Caller& caller, Done done) {
  Forward checked = request;
  Envelope& inside = *checked.mutable_request();
  const bool is_of_others = caller.rights == control::Rights::own;
  if (is_of_others && !caller.uid) {
    return done(error_of(control::Error::NOT_PERMITTED, "",
                         "a caller without a uid has no jobs of its own"));
  }
  if (is_of_others) inside.set_as_uid(*caller.uid);
  if (inside.has_as_uid() && caller.rights == control::Rights::read) {
    return done(error_of(control::Error::NOT_PERMITTED, "as_uid",
                         "only a caller that may change everything may ask "
                         "as another user"));
  }
  start(checked, is_of_others, std::move(done));
}

void SiteForward::forward(const Forward& request, Done done) {
  start(request, request.request().has_as_uid(), std::move(done));
}

void SiteForward::start(const Forward& request, bool is_of_others, Done done) {
  if (auto problem = problem_of(request.request())) {
    Envelope answer;
    *answer.mutable_error() = std::move(*problem);
    return done(std::move(answer));
  }
  if (running_ >= limits_.at_once || (is_of_others && of_others_ >= limits_.at_once_of_others)) {
    return done(error_of(control::Error::UNAVAILABLE, "",
                         fmt::format("{} such requests are under way already", running_)));
  }
  ++running_;
  of_others_ += is_of_others ? 1 : 0;
  const auto run = std::make_shared<Run>();  // shared by the answers to come
  run->is_of_others = is_of_others;
  run->request = request;
  run->done = std::move(done);
  run->unknown.insert(request.stages().begin(), request.stages().end());
  const bool wants_all = request.stages().empty();
  const std::vector<SiteStages::Member> members = stages_.members();
  std::vector<const SiteStages::Member*> aggregators;
  for (const SiteStages::Member& stage : members) {
    const bool is_named = run->unknown.erase(stage.hello->name) > 0;
    if (stage.hello->is_aggregator && !is_named) aggregators.push_back(&stage);
    if (!is_named && (!wants_all || stage.hello->is_aggregator)) continue;
    ask(run, stage, request, {});
  }
  const std::vector<std::string> just_left = requests_.just_left();
  for (const std::string& name : just_left) {
    if (std::ranges::find(members, name, name_of_member) != members.end()) continue;
    const bool is_named = run->unknown.erase(name) > 0;
    if (is_named || wants_all) ask_again(run, name, is_named);
  }
  for (const AbsentStage& stage : stages_.absent()) {
    const std::string& name = name_of(stage);
    const bool is_named = run->unknown.erase(name) > 0;
    const bool may_come_back = std::ranges::find(just_left, name) != just_left.end();
    if ((is_named || wants_all) && !may_come_back) run->add_absent(stage);
  }
  // Stages of other names may be behind aggregators.
  const std::vector<std::string> others(run->unknown.begin(), run->unknown.end());
  for (const SiteStages::Member* stage : aggregators) {
    if (!wants_all && others.empty()) break;
    ask(run, *stage, request, others);
  }
  if (--run->missing == 0) finish(*run);
}

// The stage has said so, or its connection ended and it does no harm to ask twice.
bool SiteForward::may_ask_again(const Run& run, const std::string& name,
                                const Envelope& answer) const {
  if (run.asked_again.size() >= limits_.asked_again) return false;
  if (is_of_another_process(answer)) return true;
  if (!answer.has_error() || answer.error().place() != StageRequests::kNotReached) return false;
  if (control::needed_right(run.request.request()) == control::Rights::change) return false;
  const std::vector<std::string> just_left = requests_.just_left();
  return std::ranges::find(just_left, name) != just_left.end();
}

void SiteForward::ask_again(const std::shared_ptr<Run>& run, const std::string& name, bool named) {
  ++run->missing;
  requests_.wait_for(name, [this, run, name, named] {
    const std::vector<SiteStages::Member> members = stages_.members();
    const auto back = std::ranges::find(members, name, name_of_member);
    const std::vector<AbsentStage> all_absent = stages_.absent();
    const auto absent = std::ranges::find(all_absent, name, name_of);
    if (back != members.end()) {
      ask(run, *back, run->request, {});
    } else if (absent != all_absent.end()) {
      run->add_absent(*absent);
    } else if (named) {
      run->add(name, "", not_reached("has left"));
    }
    if (--run->missing == 0) finish(*run);
  });
}

void SiteForward::ask(const std::shared_ptr<Run>& run, const SiteStages::Member& stage,
                      const Forward& request, const std::vector<std::string>& of_aggregator) {
  const StageHello& hello = *stage.hello;
  if (request.request().has_as_uid() && !hello.takes_users) {
    return run->add(hello.name, hello.address,
                    error_of(control::Error::UNSUPPORTED, "",
                             "does not answer users: its program is an older version"));
  }
  Envelope question = hello.is_aggregator ? further(request, of_aggregator) : request.request();
  ++run->missing;
  const Duration patience =
      hello.is_aggregator ? limits_.patience_with_aggregators : limits_.patience;
  // The stage may have left when the answer comes.
  requests_.ask(stage.id, question, patience,
                [this, run, name = hello.name, address = hello.address](const Envelope& answer) {
                  StageHello whose;
                  whose.name = name;
                  whose.address = address;
                  if (may_ask_again(*run, name, answer) && run->asked_again.insert(name).second) {
                    ask_again(run, name, true);
                  } else {
                    came(*run, {.hello = &whose}, answer);
                  }
                  if (--run->missing == 0) finish(*run);
                });
}

void SiteForward::came(Run& run, const SiteStages::Member& stage, const Envelope& answer) const {
  run.bytes += answer.ByteSizeLong();
  if (run.bytes > limits_.most_bytes) {
    return run.add(stage.hello->name, stage.hello->address,
                   not_reached(fmt::format("the answers of all stages have more than {} MiB: ask "
                                           "fewer at once",
                                           limits_.most_bytes >> 20U)));
  }
  if (!answer.has_forward_reply()) {
    return run.add(stage.hello->name, stage.hello->address, answer);
  }
  for (const ForwardReply::Answer& each : answer.forward_reply().answers()) {
    if (is_unknown_stage(each)) continue;
    run.unknown.erase(each.stage());
    run.answers.push_back(each);
  }
}

void SiteForward::finish(Run& run) {
  --running_;
  of_others_ -= run.is_of_others ? 1 : 0;
  for (const std::string& name : run.unknown) {
    run.add(name, "",
            error_of(control::Error::NOT_FOUND, "stages",
                     fmt::format("there is no stage \"{}\"", name)));
  }
  std::ranges::sort(run.answers, {},
                    [](const auto& each) { return std::tie(each.stage(), each.address()); });
  Envelope reply;
  ForwardReply& all = *reply.mutable_forward_reply();
  for (ForwardReply::Answer& each : run.answers) *all.add_answers() = std::move(each);
  run.done(std::move(reply));
}

}  // namespace vpfs::coordinator
