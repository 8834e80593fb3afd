#include "control/coordinator/term_store.h"

#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "base/clock.h"
#include "base/result.h"

namespace vpfs::coordinator {
namespace {

using nlohmann::json;

constexpr std::uint64_t kFormat = 1;
constexpr std::uint64_t kLargest = ~std::uint64_t{0} / 2;  // so that others come after it

Result<std::uint64_t> read_number(const json& object, const char* key) {
  const auto place = object.find(key);
  if (place == object.end() || !place->is_number_unsigned()) {
    return fail(fmt::format("it has no number `{}`", key));
  }
  return place->get<std::uint64_t>();
}

}  // namespace

std::string to_record(const Term& term) {
  return json{{"v", kFormat},
              {"term", term.number},
              {"lease_us", microseconds_of(term.lease)},
              {"transit_us", microseconds_of(term.transit)}}
      .dump();
}

Result<Term> parse_term(const std::string& record) {
  constexpr std::uint64_t kLongest = std::uint64_t{366} * 24 * 3600 * 1'000'000;
  const json object = json::parse(record, nullptr, false);
  if (!object.is_object()) return fail("it is not a JSON object");
  const auto format = read_number(object, "v");
  VPFS_TRY(format);
  if (*format != kFormat) {
    return fail(fmt::format("it has the format {}, which this version does not know", *format));
  }
  const auto number = read_number(object, "term");
  VPFS_TRY(number);
  const auto lease = read_number(object, "lease_us");
  VPFS_TRY(lease);
  const auto transit = read_number(object, "transit_us");
  VPFS_TRY(transit);
  if (*number == 0) return fail("its term is 0");
  if (*number > kLargest) return fail(fmt::format("its term {} is too large", *number));
  if (*lease > kLongest || *transit > kLongest) return fail("its lease is longer than a year");
  return Term{.number = *number,
              .lease = std::chrono::microseconds(*lease),
              .transit = std::chrono::microseconds(*transit)};
}

Result<std::optional<Term>> TermStore::load() {
  auto loaded = store_->load();
  if (!loaded) {
    loaded.error().message +=
        "; --term has to be above the last term then: vpfsctl status of a stage shows it";
    return std::unexpected(std::move(loaded.error()));
  }
  for (const std::string& note : loaded->notes) spdlog::warn("{}", note);
  std::optional<Term> last;
  for (const control::StateStore::Record& record : loaded->records) {
    auto term = parse_term(record.text);
    if (!term) return fail(fmt::format("{}: {}", record.place, term.error().message));
    if (last && term->number <= last->number) {
      return fail(fmt::format("{}: the term {} follows {}: the file was put together wrongly",
                              record.place, term->number, last->number));
    }
    last = *term;
  }
  // Whether the term of a line that was not written to its end was used is not known.
  next_ = (last ? last->number : 0) + (loaded->notes.empty() ? 1 : 2);
  return last;
}

Result<void> TermStore::begin(const Term& term) {
  return store_->wants_replacing() ? store_->replace(to_record(term))
                                   : store_->append(to_record(term));
}

}  // namespace vpfs::coordinator
