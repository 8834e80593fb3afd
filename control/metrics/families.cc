#include "control/metrics/families.h"

#include <algorithm>

#include <prometheus/text_serializer.h>

#include "base/check.h"

namespace vpfs::control {
namespace {

using prometheus::MetricType;

// The length of the character that the text begins with; 0 if it is no UTF-8.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Longer than needed, a surrogate, or beyond the last character.
  const unsigned char second = byte(1);
  if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
      (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

}  // namespace

void Families::counter(std::string_view name, std::string_view help) {
  begin(name, help, MetricType::Counter);
}
void Families::gauge(std::string_view name, std::string_view help) {
  begin(name, help, MetricType::Gauge);
}
void Families::summary(std::string_view name, std::string_view help) {
  begin(name, help, MetricType::Summary);
}

void Families::begin(std::string_view name, std::string_view help, MetricType type) {
  VPFS_ASSERT(std::ranges::find(families_, name, &prometheus::MetricFamily::name) ==
              families_.end());
  families_.push_back(
      {.name = std::string(name), .help = std::string(help), .type = type, .metric = {}});
}

void Families::count(const Labels& labels, std::uint64_t value, double per_unit) {
  series(labels).counter.value = static_cast<double>(value) / per_unit;
}

void Families::set(const Labels& labels, double value) {
  series(labels).gauge.value = value;
}

void Families::observe(const Labels& labels, std::uint64_t samples, double sum) {
  prometheus::ClientMetric::Summary& summary = series(labels).summary;
  summary.sample_count = samples;
  summary.sample_sum = sum;
}

prometheus::ClientMetric& Families::series(const Labels& labels) {
  VPFS_ASSERT(!families_.empty());
  prometheus::ClientMetric& made = families_.back().metric.emplace_back();
  made.label.reserve(labels.size());
  for (const auto& [name, value] : labels) {
    made.label.push_back({.name = std::string(name), .value = to_utf8(value)});
  }
  return made;
}

std::string Families::text() {
  std::erase_if(families_, [](const auto& each) { return each.metric.empty(); });
  return prometheus::TextSerializer().Serialize(families_);
}

std::string to_utf8(std::string_view text) {
  std::string good;
  good.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    good += length > 0 ? text.substr(0, length) : std::string_view("\xef\xbf\xbd");
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return good;
}

}  // namespace vpfs::control
