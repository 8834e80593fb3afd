#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/wire/control.pb.h"

namespace vpfs::control {

// Protocol versions that one side speaks: the newest and, for peers that are older, the one before.
struct Versions {
  std::uint32_t newest = 1;
  std::uint32_t least = 1;
};

// The newest version that both speak.
[[nodiscard]] std::optional<std::uint32_t> common_version(Versions mine, Versions theirs);
// What a side says that shares no version with its peer; names both.
[[nodiscard]] std::string no_common_version(Versions mine, Versions theirs);
[[nodiscard]] Versions versions_of(const Hello& hello);

[[nodiscard]] Error make_error(Error::Code code, std::string place, std::string text);
// Another process has taken over, and answers at the same address: nothing was done. The place is
// that of this error alone.
inline constexpr const char* kTakenOver = "upgrade";
[[nodiscard]] Error taken_over();
// The refusal of a site whose sender led before another one: `known` is the newest term that was
// heard of. Nothing: it is not outdated.
[[nodiscard]] std::optional<Error> why_outdated(const Site& site, std::uint64_t known);
// "place: text", as one short line.
[[nodiscard]] std::string describe(const Error& error);

// The capability of a coordinator that does not lead, but may do so later.
inline constexpr std::string_view kStandby = "standby";
[[nodiscard]] bool is_standby(const Hello& hello);
// Whether it is the refusal of a coordinator that does not lead. Nothing was done.
[[nodiscard]] bool is_for_leader(const Error& error);

// The capability of a coordinator that serves a part of the stages under the one that leads.
inline constexpr std::string_view kMember = "member";

// For Hello: a random number, which no other process has.
[[nodiscard]] std::uint64_t new_incarnation();

// The name of the message inside, as control.proto has it; "" if this version does not know it.
[[nodiscard]] std::string_view body_name(const Envelope& envelope);
// Number of the first field of the Envelope that this version does not know.
[[nodiscard]] std::optional<int> unknown_body(const Envelope& envelope);

}  // namespace vpfs::control
