#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>

#include "base/clock.h"

namespace vpfs::control {

// Label names and values of one series.
using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

// Collects metrics and writes them as Prometheus reads them. A metric without a series is left out.
class Families {
 public:
  // Begins a metric; the series that follow are its own. A name is begun once.
  void counter(std::string_view name, std::string_view help);
  void gauge(std::string_view name, std::string_view help);
  void summary(std::string_view name, std::string_view help);

  // A counter of which `per_unit` are one of the metric: 1e6 for microseconds, told in seconds.
  void count(const Labels& labels, std::uint64_t value, double per_unit = 1);
  void set(const Labels& labels, double value);
  void observe(const Labels& labels, std::uint64_t samples, double sum);

  [[nodiscard]] std::string text();

 private:
  void begin(std::string_view name, std::string_view help, prometheus::MetricType type);
  prometheus::ClientMetric& series(const Labels& labels);

  std::vector<prometheus::MetricFamily> families_;
};

// When the first of a program's certificates ends; nothing: it has none.
void add_certificate_end(Families& families, const std::optional<WallTime>& end);

}  // namespace vpfs::control
