#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <asio/io_context.hpp>

#include "control/coordinator/links/stage_requests.h"
#include "control/wire/protocol.h"

namespace vpfs::coordinator {

// Stages that answer when the test says so.
class StagesOfTest final : public StageRequests {
 public:
  struct Asked {
    std::string stage;
    control::Envelope request;
    Duration patience = {};
    Done done;  // null: it was answered
  };

  void ask(allocation::StageId stage, control::Envelope& request, Duration patience,
           Done done) override {
    asked.push_back({.stage = hellos.at(stage.index).name,
                     .request = request,
                     .patience = patience,
                     .done = std::move(done)});
  }
  [[nodiscard]] const StageHello& hello(allocation::StageId stage) const override {
    return hellos.at(stage.index);
  }
  [[nodiscard]] std::vector<AbsentStage> absent() const override { return missing; }
  [[nodiscard]] std::vector<std::string> just_left() const override { return gone; }
  void wait_for(const std::string& name, Back back) override { waiting[name] = std::move(back); }

  allocation::StageId add(const std::string& name) {
    StageHello hello;
    hello.name = name;
    hello.address = "at " + name;
    hello.takes_site = hello.takes_users = true;
    return add(std::move(hello));
  }
  allocation::StageId add(StageHello hello) {
    const auto index = static_cast<std::uint32_t>(hellos.size());
    hellos[index] = std::move(hello);
    return {.index = index};
  }

  // The last question of a stage that it has not answered; null: there is none.
  Asked* open(const std::string& stage) {
    for (std::size_t i = asked.size(); i > 0; --i) {
      if (asked[i - 1].stage == stage && asked[i - 1].done != nullptr) return &asked[i - 1];
    }
    return nullptr;
  }
  void answer(const std::string& stage, const control::Envelope& answer) {
    std::exchange(open(stage)->done, nullptr)(answer);
  }
  void acknowledge(const std::string& stage, const std::vector<std::string>& warnings = {}) {
    control::Envelope reply;
    for (const std::string& each : warnings) reply.mutable_ack()->add_warnings(each);
    reply.mutable_ack();
    answer(stage, reply);
  }
  void refuse(const std::string& stage, control::Error::Code code, const std::string& place,
              const std::string& text) {
    control::Envelope reply;
    *reply.mutable_error() = control::make_error(code, place, text);
    answer(stage, reply);
  }
  [[nodiscard]] std::size_t times_asked(const std::string& stage) const {
    std::size_t times = 0;
    for (const Asked& each : asked) times += each.stage == stage ? 1 : 0;
    return times;
  }

  std::map<std::uint32_t, StageHello> hellos;
  std::vector<AbsentStage> missing;
  std::vector<std::string> gone;
  std::map<std::string, Back> waiting;
  std::vector<Asked> asked;
};

}  // namespace vpfs::coordinator
