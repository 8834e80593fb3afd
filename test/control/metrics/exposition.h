#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace vpfs::test {

// Metrics as a scraper reads them. Written from the description of Prometheus's text format, not
// from the code that writes it.
struct Exposition {
  using Labels = std::map<std::string, std::string>;
  struct Family {
    std::string help;
    std::string type;
  };

  std::map<std::string, Family> families;
  // By the name in the line: a summary's are NAME_sum and NAME_count.
  std::map<std::string, std::map<Labels, double>> series;
  // What is against the format or the conventions.
  std::vector<std::string> problems;

  // The value of the series with these labels; NaN if there is none.
  [[nodiscard]] double value(const std::string& name, const Labels& labels = {}) const;
  [[nodiscard]] std::size_t count(const std::string& name) const;
};

[[nodiscard]] Exposition read_exposition(std::string_view text);

}  // namespace vpfs::test
