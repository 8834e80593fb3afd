#pragma once

#include <cstdint>

// What the two sides of book_record.h share: how records are written.
namespace vpfs::stage {

inline constexpr std::uint64_t kRecordVersion = 2;
// Names of RuleOrigin, in its order.
inline constexpr const char* kOriginNames[] = {"file", "administrator", "job", "coordinator"};

}  // namespace vpfs::stage
