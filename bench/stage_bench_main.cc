// What the parts of a stage cost that lie on the way of each request. One line of JSON for each
// sample; `case` says which part it is of.
#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/stage/classify_case.h"

namespace vpfs {
namespace {

struct Settings {
  std::uint32_t batches = 20'000;
};

void print(const nlohmann::ordered_json& line) {
  std::cout << line.dump() << std::endl;
}

void run_classify(const Settings& settings) {
  for (const ClassifySample& each : measure_classify(settings.batches)) {
    print({{"case", "classify"},
           {"attribute", each.attribute},
           {"rules", each.rules},
           {"batches", settings.batches},
           {"ns_p50", each.ns_p50},
           {"ns_p99", each.ns_p99}});
  }
}

struct Case {
  const char* name;
  void (*run)(const Settings& settings);
};
constexpr std::array kCases = {Case{.name = "classify", .run = run_classify}};

}  // namespace
}  // namespace vpfs

int main(int argc, char** argv) {
  vpfs::Settings settings;
  std::vector<std::string> wanted;
  std::vector<std::string> names;
  for (const vpfs::Case& each : vpfs::kCases) names.emplace_back(each.name);
  CLI::App app("Measures the parts of a stage.");
  app.add_option("case", wanted, "which ones; all if none is named")->check(CLI::IsMember(names));
  app.add_option("--batches", settings.batches, "how many times are measured for each sample")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  for (const vpfs::Case& each : vpfs::kCases) {
    if (wanted.empty() || std::ranges::find(wanted, each.name) != wanted.end()) each.run(settings);
  }
  return 0;
}
