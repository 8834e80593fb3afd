#pragma once

#include <array>

#include "base/config_reader.h"

namespace vpfs::control {

// What other programs call the keys of `control`.
inline constexpr std::array<ConfigWord, 6> kPortConfigWords = {{{"path", "socket"},
                                                                {"listen", "tcp"},
                                                                {"cert", "certificate"},
                                                                {"ca_file", "ca"},
                                                                {"admins", "writers"},
                                                                {"log", "audit"}}};

}  // namespace vpfs::control
