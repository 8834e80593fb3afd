#include "control/metrics/families.h"

#include <algorithm>

#include <prometheus/text_serializer.h>

#include "base/check.h"
#include "base/utf8.h"

namespace vpfs::control {
namespace {

using prometheus::MetricType;

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
    made.label.push_back({.name = std::string(name), .value = valid_utf8(value)});
  }
  return made;
}

std::string Families::text() {
  std::erase_if(families_, [](const auto& each) { return each.metric.empty(); });
  return prometheus::TextSerializer().Serialize(families_);
}

void add_certificate_end(Families& families, const std::optional<WallTime>& end) {
  if (!end) return;
  families.gauge("vpfs_certificate_end_timestamp_seconds",
                 "When the first of its certificates ends, in seconds since 1970.");
  families.set({}, static_cast<double>(seconds_since_epoch(*end)));
}

}  // namespace vpfs::control
