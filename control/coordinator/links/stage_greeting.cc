// Greeting: the part of StageLinks that finds out what a peer is, and whether it may take part.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/one_line.h"
#include "base/version.h"
#include "control/coordinator/links/stage_links.h"
#include "control/coordinator/links/stage_peer.h"

namespace vpfs::coordinator {
namespace {

using control::Envelope;
using control::Hello;
using control::make_error;

constexpr std::size_t kLongestName = 255;
constexpr control::Versions kVersions;

// They are told to all members and to stages.
std::string problem_of_addresses(const Hello& hello) {
  constexpr int kMost = 8;
  constexpr std::size_t kLongest = 300;
  if (hello.stage_addresses_size() > kMost) {
    return fmt::format("a member has at most {} addresses for stages", kMost);
  }
  for (const std::string& each : hello.stage_addresses()) {
    if (each.size() > kLongest || each != one_line(each)) {
      return fmt::format("an address is one line of at most {} bytes", kLongest);
    }
  }
  return "";
}

Envelope my_hello(const Config& config) {
  Envelope envelope;
  Hello& hello = *envelope.mutable_hello();
  hello.set_version(kVersions.newest);
  hello.set_least(kVersions.least);
  hello.set_role(Hello::COORDINATOR);
  hello.set_name(config.name);
  hello.set_policy(config.policy);
  hello.set_program("vpfs-coordinator " + std::string(version()));
  return envelope;
}

}  // namespace

void StageLinks::opened(Peer& peer) {
  peer.state = Peer::State::greeting;
  if (peer.dialled != nullptr) {
    Envelope hello = my_hello(config_);
    hello.set_id(++peer.last_number);
    return send(peer, hello);
  }
  if (!peer.identity.uid && !limits_.plain_tcp) {
    peer.identity.certificate = peer.link.peer_names();
    if (!peer.identity.certificate.empty()) {
      peer.from = fmt::format("CN={} at {}", peer.identity.certificate.front(), peer.from);
    }
  }
  if (limits_.plain_tcp || access_.writers.have(peer.identity)) return;
  refuse(peer, 0,
         make_error(control::Error::NOT_PERMITTED, "",
                    fmt::format("{} may not be a stage here: name it in {}.writers", peer.from,
                                config_.listen_key)));
}

void StageLinks::greet(Peer& peer, const Envelope& envelope) {
  if (peer.dialled != nullptr && envelope.has_error()) {
    return drop(peer, "it refuses: " + control::describe(envelope.error()));
  }
  if (!envelope.has_hello() || envelope.answer() != (peer.dialled != nullptr)) {
    return refuse(peer, envelope.id(),
                  make_error(control::Error::INVALID, "", "the first message has to be Hello"));
  }
  admit(peer, envelope.hello(), envelope.id());
}

void StageLinks::admit(Peer& peer, const Hello& hello, std::uint64_t number) {
  const auto refuse_it = [&](control::Error::Code code, const char* place, std::string text) {
    refuse(peer, number, make_error(code, place, std::move(text)));
  };
  const control::Versions theirs = control::versions_of(hello);
  if (!control::common_version(kVersions, theirs)) {
    return refuse_it(control::Error::UNSUPPORTED, "version",
                     control::no_common_version(kVersions, theirs));
  }
  if (hello.role() != Hello::STAGE) {
    return refuse_it(control::Error::INVALID, "role",
                     peer.dialled != nullptr
                         ? "it is not a stage"
                         : "only stages may dial here; administrators have a port of their own");
  }
  StageHello& stage = peer.hello;
  const bool is_named = peer.dialled != nullptr && !peer.dialled->config.name.empty();
  stage.name = is_named ? peer.dialled->config.name : hello.name();
  if (stage.name.empty() || stage.name.size() > kLongestName ||
      stage.name != one_line(stage.name)) {
    return refuse_it(
        control::Error::INVALID, "name",
        fmt::format("a stage needs a name of one line and at most {} bytes", kLongestName));
  }
  if (why_not_ != nullptr) {
    const auto why = peer.dialled != nullptr ? why_not_(peer.dialled->key, Comes::dialled)
                                             : why_not_(stage.name, Comes::by_itself);
    if (why) return send_away(peer, number, *why);
  }
  if (peer.dialled == nullptr) {
    // Its name is what it says of itself: it must not keep a stage of the configuration out.
    const auto dialled = std::ranges::find(config_.dial, stage.name, &DialledStage::name);
    if (dialled != config_.dial.end()) {
      return refuse_it(control::Error::EXISTS, "name",
                       fmt::format("{} is a stage of the configuration (stages.dial), which is "
                                   "dialled at {}: no other one may have its name",
                                   stage.name, control::to_string(dialled->address)));
    }
  }
  stage.address = peer.from;
  stage.was_dialled = peer.dialled != nullptr;
  stage.incarnation = hello.incarnation();
  stage.term = hello.term();
  stage.cost_model = one_short_line(hello.cost_model());
  stage.program = one_short_line(hello.program());
  for (const std::string& each : hello.capabilities()) {
    stage.takes_caps |= each == "caps";
    stage.takes_metadata_caps |= each == "metadata_caps";
    stage.takes_elsewhere |= each == "elsewhere";
    stage.takes_site |= each == "site";
    stage.takes_users |= each == "forward_as";
    stage.is_aggregator |= each == "aggregator";
  }
  if (std::ranges::find(hello.capabilities(), control::kMember) != hello.capabilities().end()) {
    if (const std::string problem = problem_of_addresses(hello); !problem.empty()) {
      return refuse_it(control::Error::INVALID, "stage_addresses", problem);
    }
    stage.member = std::make_shared<const MemberHello>(MemberHello{
        .stage_addresses = {hello.stage_addresses().begin(), hello.stage_addresses().end()},
        .view = hello.view()});
  }
  const auto admitted = handler_.admit(stage);
  if (!admitted) return refuse(peer, number, admitted.error());
  peer.stage = *admitted;
  peer.state = Peer::State::joined;
  unjoined_.erase(peer.place);
  peer.joined_as = joins_++;
  peer.link.allow(limits_.frame_of_stages);
  if (by_stage_.size() <= peer.stage.index) by_stage_.resize(std::size_t{peer.stage.index} + 1);
  by_stage_[peer.stage.index] = &peer;
  if (peer.dialled != nullptr) {
    peer.dialled->pause = limits_.least_pause;
    peer.dialled->problem.clear();
    peer.dialled->last_name = stage.name;
  } else {
    Envelope answer = my_hello(config_);
    answer.set_id(number);
    answer.set_answer(true);
    send(peer, answer);
  }
  handler_.joined(peer.stage);
  end_waits(coming_back_.joined(peer.hello.name));
}

void StageLinks::refuse(Peer& peer, std::uint64_t number, const control::Error& why) {
  ++counters_.refused;
  if (peer.dialled == nullptr) {
    complain(fmt::format("{} is refused: {}", peer.from, control::describe(why)));
    tell(peer, number, why);
  }
  drop(peer, control::describe(why));
}

void StageLinks::send_away(Peer& peer, std::uint64_t number, const control::Error& why) {
  if (peer.dialled == nullptr) tell(peer, number, why);
  drop(peer, "");
}

void StageLinks::tell(Peer& peer, std::uint64_t number, const control::Error& why) {
  Envelope answer;
  *answer.mutable_error() = why;
  answer.set_id(number);
  answer.set_answer(true);
  send(peer, answer);
}

}  // namespace vpfs::coordinator
