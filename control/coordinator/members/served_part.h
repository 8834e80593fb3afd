#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/members/view.h"
#include "control/wire/control.pb.h"

namespace vpfs::coordinator {

// Which stages a member serves: those that are its own in the last view that it was told. Belongs
// to the member's thread.
class ServedPart {
 public:
  // `name`: of this member.
  ServedPart(std::string name, std::vector<std::string> stage_addresses)
      : own_{.name = std::move(name), .stage_addresses = std::move(stage_addresses)} {}

  // Another view. The error says why it is not taken; one that is there already is taken.
  [[nodiscard]] std::optional<control::Error> take(const control::MemberView& told);

  // Why it does not serve the stage, and which member does; nothing: it does. `dials_in`: the
  // stage has dialled this member.
  [[nodiscard]] std::optional<control::Error> why_not(const std::string& stage,
                                                      bool dials_in) const;
  // It does not reach the one that leads. Others take the stages that are dialled; those that dial
  // have to be sent away.
  void set_cut_off(bool is_cut_off) { is_cut_off_ = is_cut_off; }
  [[nodiscard]] bool is_cut_off() const { return is_cut_off_; }

  [[nodiscard]] const members::Member& own() const { return own_; }
  [[nodiscard]] const members::View& view() const { return view_; }
  // Whether the view has this member.
  [[nodiscard]] bool takes_part() const;
  // What all stages of the site call their costs; "": not told yet.
  [[nodiscard]] const std::string& cost_model() const { return cost_model_; }

 private:
  const members::Member own_;
  members::View view_;
  std::string cost_model_;
  bool is_cut_off_ = false;
};

}  // namespace vpfs::coordinator
