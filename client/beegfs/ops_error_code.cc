#include "client/beegfs/ops_error_code.h"

#include <string>

#include <fmt/format.h>

namespace vpfs::client {
namespace {

class OpsErrorCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "beegfs"; }

  [[nodiscard]] std::string message(int value) const override {
    const std::string_view text = beegfs::describe(beegfs::OpsError{value});
    return text.empty() ? fmt::format("error {}", value) : std::string(text);
  }

  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    return std::make_error_condition(meaning(beegfs::OpsError{value}));
  }

 private:
  [[nodiscard]] static std::errc meaning(beegfs::OpsError error) {
    using enum beegfs::OpsError;
    switch (error) {
      case success:
        return std::errc{};
      case interrupted:
        return std::errc::interrupted;
      case communication:
        return std::errc::connection_reset;
      case timed_out:
        return std::errc::timed_out;
      case unknown_node:
      case unknown_target:
        return std::errc::no_such_device;
      case in_use:
        return std::errc::device_or_resource_busy;
      case no_space:
        return std::errc::no_space_on_device;
      case invalid:
        return std::errc::invalid_argument;
      case again:
        return std::errc::resource_unavailable_try_again;
      case permission:
        return std::errc::operation_not_permitted;
      case range:
        return std::errc::result_out_of_range;
      default:
        return std::errc::io_error;
    }
  }
};

}  // namespace

std::error_code error_code_of(beegfs::OpsError error) {
  static const OpsErrorCategory category;
  return {static_cast<int>(error), category};
}

}  // namespace vpfs::client
