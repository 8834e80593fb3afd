// Measures the parts of a stage that every request passes. Prints one line of JSON per sample;
// `case` names the part.
#include <algorithm>
#include <array>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/command_line.h"
#include "bench/data_path/stage/classify_case.h"
#include "bench/data_path/stage/history_case.h"
#include "bench/data_path/stage/record_case.h"
#include "bench/data_path/stage/rows_case.h"

namespace vpfs {
namespace {

struct StageBenchSettings {
  std::uint32_t batches = 20'000;
  std::uint32_t rounds = 1000;
};

void print(const nlohmann::ordered_json& line) {
  std::cout << line.dump() << std::endl;
}

void run_classify(const StageBenchSettings& settings) {
  for (const ClassifySample& each : measure_classify(settings.batches)) {
    print({{"case", "classify"},
           {"attribute", each.attribute},
           {"rules", each.rules},
           {"batches", settings.batches},
           {"ns_p50", each.ns_p50},
           {"ns_p99", each.ns_p99}});
  }
}

void print_rows(const char* name, const std::vector<RowsSample>& samples, std::uint32_t rounds) {
  for (const RowsSample& each : samples) {
    print({{"case", name},
           {"virtual_pfs", each.virtual_pfs},
           {"rounds", rounds},
           {"ns_p50", each.ns_p50},
           {"ns_p99", each.ns_p99},
           {"lock_us_max", each.lock_us_max}});
  }
}

void run_copy(const StageBenchSettings& settings) {
  print_rows("copy", measure_copy(settings.rounds), settings.rounds);
}

void run_retire(const StageBenchSettings& settings) {
  print_rows("retire", measure_retire(settings.rounds), settings.rounds);
}

void run_history(const StageBenchSettings& settings) {
  print_rows("history", measure_history(settings.rounds), settings.rounds);
}

void run_record(const StageBenchSettings& settings) {
  const RecordSample sample = measure_record(settings.batches);
  print({{"case", "record"},
         {"batches", settings.batches},
         {"ns_off", sample.ns_off},
         {"ns_on", sample.ns_on},
         {"ns_of_it", sample.ns_of_it}});
}

void run_past(const StageBenchSettings& settings) {
  for (const PastSample& each : measure_past(settings.rounds)) {
    print({{"case", "past"},
           {"seconds", each.seconds},
           {"ms_p50", each.ms_p50},
           {"ms_p99", each.ms_p99}});
  }
}

struct Case {
  const char* name;
  void (*run)(const StageBenchSettings& settings);
};
constexpr std::array kCases = {
    Case{.name = "classify", .run = run_classify}, Case{.name = "copy", .run = run_copy},
    Case{.name = "retire", .run = run_retire},     Case{.name = "history", .run = run_history},
    Case{.name = "past", .run = run_past},         Case{.name = "record", .run = run_record}};

}  // namespace
}  // namespace vpfs

int main(int argc, char** argv) {
  vpfs::StageBenchSettings settings;
  std::vector<std::string> wanted;
  std::vector<std::string> names;
  for (const vpfs::Case& each : vpfs::kCases) names.emplace_back(each.name);
  vpfs::OptionParser app("Measures the parts of a stage.");
  app.add_option("case", wanted, "parts to measure (default: all)").one_of(names);
  app.add_option("--batches", settings.batches, "batches per sample").positive();
  app.add_option("--rounds", settings.rounds, "how often rows are copied, retired or read")
      .positive();
  bool quick = false;
  app.add_flag("--quick", quick, "a tenth of the batches and rounds");
  if (const auto code = app.parse(argc, argv)) return *code;
  if (quick) {
    settings.batches = std::max(settings.batches / 10, 1U);
    settings.rounds = std::max(settings.rounds / 10, 1U);
  }
  for (const vpfs::Case& each : vpfs::kCases) {
    if (wanted.empty() || std::ranges::find(wanted, each.name) != wanted.end()) each.run(settings);
  }
  return 0;
}
