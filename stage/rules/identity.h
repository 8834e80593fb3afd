#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/io_kind.h"

namespace vpfs::stage {

// The attributes that rules use, beside the client's address. A view: it borrows texts and hints.
struct Identity {
  IoKind kind = IoKind::read;
  std::int64_t file_system = 0;
  std::optional<std::uint32_t> uid = std::nullopt;
  std::optional<std::uint32_t> node = std::nullopt;
  std::optional<std::uint32_t> target = std::nullopt;
  std::optional<std::uint32_t> owner = std::nullopt;
  std::string_view directory = {};  // "": not known
  // A value, or nothing, for each of Classifier::hint_names(), in that order.
  std::span<const std::optional<std::string_view>> hints = {};
};

}  // namespace vpfs::stage
