#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.h"
#include "control/coordinator/links/stage_requests.h"
#include "control/members/view_keeper.h"

namespace vpfs::coordinator {

// A leader's side of its members: keeps the view of them, and tells it each of them until it has
// heard. Belongs to the leader's thread; it outlives the run of its io_context.
class ViewPublisher {
 public:
  // `used_up` is called when the leader needs another term. All outlive it.
  ViewPublisher(asio::io_context& context, const Clock& clock, std::uint64_t term,
                std::function<void()> used_up);
  // Comes before all else.
  void use(StageRequests& links) { links_ = &links; }
  // The member of that name has ended, and is not waited for.
  void is_gone(const std::string& name) { keeper_.is_gone(name); }
  // What all stages call their costs, if the configuration has it. Otherwise it is what the stages
  // of most members do.
  void set_cost_model(std::string model) {
    has_given_model_ = !model.empty();
    cost_model_ = std::move(model);
  }

  void joined(allocation::StageId member, const StageHello& hello);
  void left(allocation::StageId member, const StageHello& hello);
  // The member's stages call their costs so; "": it has none.
  void learn_cost_model(allocation::StageId member, const std::string& model);
  // Nothing is told any more.
  void stop();

  [[nodiscard]] const members::View& view() const { return keeper_.view(); }
  [[nodiscard]] const std::string& cost_model() const { return cost_model_; }

 private:
  struct Connected {
    std::uint64_t connection = 0;
    std::uint64_t told = 0;  // the last version that it has heard
    bool is_asked = false;
    std::string cost_model = {};
    std::string problem = {};  // why it does not take its view, as the log has it
  };

  void look();
  void choose_cost_model();
  void tell_all();
  void tell(std::uint32_t member);
  void answered(std::uint32_t member, std::uint64_t connection, std::uint64_t version,
                const control::Envelope& answer);

  const Clock& clock_;
  const std::function<void()> used_up_;
  StageRequests* links_ = nullptr;
  members::ViewKeeper keeper_;
  std::string cost_model_;
  bool has_given_model_ = false;
  std::uint64_t version_ = 0;                     // of what is told
  std::map<std::uint32_t, Connected> connected_;  // by the number of the stage
  std::uint64_t connections_ = 0;
  asio::steady_timer view_timer_;
  asio::steady_timer retry_timer_;
  bool is_stopped_ = false;
};

}  // namespace vpfs::coordinator
