#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "control/store/state_store.h"

namespace vpfs::control {

// Live rules that no journal has, as the process before had them. They end with the program.
class HandedBook final : public StateStore {
 public:
  explicit HandedBook(std::string record) : record_(std::move(record)) {}

  [[nodiscard]] Result<Loaded> load() override {
    return Loaded{.records = {{.text = record_, .place = "the rules of the process before"}},
                  .notes = {}};
  }
  [[nodiscard]] Result<void> append(std::string_view) override { return {}; }
  [[nodiscard]] Result<void> replace(std::string_view) override { return {}; }
  [[nodiscard]] bool wants_replacing() const override { return false; }

 private:
  std::string record_;
};

}  // namespace vpfs::control
