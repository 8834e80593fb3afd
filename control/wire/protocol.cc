#include "control/wire/protocol.h"

#include <algorithm>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "base/one_line.h"

namespace vpfs::control {
namespace {

std::string range(Versions versions) {
  return versions.least == versions.newest
             ? fmt::format("version {}", versions.newest)
             : fmt::format("versions {} to {}", versions.least, versions.newest);
}

}  // namespace

std::optional<std::uint32_t> common_version(Versions mine, Versions theirs) {
  const std::uint32_t newest = std::min(mine.newest, theirs.newest);
  if (newest < std::max(mine.least, theirs.least)) return std::nullopt;
  return newest;
}

std::string no_common_version(Versions mine, Versions theirs) {
  return fmt::format(
      "this side speaks {} of the control protocol, the other {}: they need a program of the same "
      "release or the one before",
      range(mine), range(theirs));
}

Versions versions_of(const Hello& hello) {
  return {.newest = hello.version(), .least = hello.least()};
}

Error make_error(Error::Code code, std::string place, std::string text) {
  Error error;
  error.set_code(code);
  error.set_place(std::move(place));
  error.set_text(std::move(text));
  return error;
}

std::optional<Error> why_outdated(const Site& site, std::uint64_t known) {
  if (site.term() == 0 || site.term() >= known) return std::nullopt;
  return make_error(Error::OUTDATED, "term",
                    fmt::format("this site is of term {}, and one that leads in term {} was "
                                "heard of",
                                site.term(), known));
}

Error taken_over() {
  return make_error(Error::UNAVAILABLE, kTakenOver,
                    "another process has just taken over: ask again");
}

std::string describe(const Error& error) {
  return one_short_line(error.place().empty() ? error.text() : error.place() + ": " + error.text());
}

bool is_standby(const Hello& hello) {
  return std::ranges::find(hello.capabilities(), kStandby) != hello.capabilities().end();
}

bool is_for_leader(const Error& error) {
  return error.code() == Error::UNAVAILABLE && error.place() == "leader";
}

std::uint64_t new_incarnation() {
  std::random_device device;
  return std::uint64_t{device()} << 32U | device();
}

std::string_view body_name(const Envelope& envelope) {
  const auto* field = Envelope::descriptor()->FindFieldByNumber(envelope.body_case());
  return field == nullptr ? std::string_view() : std::string_view(field->name());
}

std::optional<int> unknown_body(const Envelope& envelope) {
  const auto& unknown = envelope.GetReflection()->GetUnknownFields(envelope);
  if (envelope.body_case() != Envelope::BODY_NOT_SET || unknown.empty()) return std::nullopt;
  return unknown.field(0).number();
}

}  // namespace vpfs::control
