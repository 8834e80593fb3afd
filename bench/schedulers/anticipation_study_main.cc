// Prints a row for each case of the study of anticipation in virtual time. Every run is the same.
#include <exception>
#include <iostream>

#include <nlohmann/json.hpp>

#include "base/command_line.h"
#include "test/support/simulation/anticipation_study.h"

namespace vpfs {
namespace {

nlohmann::json json_of(const AnticipationRow& row) {
  return {{"in_flight_a", row.of.in_flight_a},
          {"in_flight_b", row.of.in_flight_b},
          {"weight", row.of.weight},
          {"size", row.of.size},
          {"parallelism", row.of.parallelism},
          {"think_us", std::chrono::duration_cast<std::chrono::microseconds>(row.of.think).count()},
          {"ratio_off", row.ratio_off},
          {"ratio_on", row.ratio_on},
          {"feasible_ratio", row.feasible_ratio},
          {"total_vs_fifo", row.total_vs_fifo},
          {"idle_percent", row.idle_percent}};
}

int bench(int argc, char** argv) {
  OptionParser app{
      "Studies anticipation in virtual time: a JSON object for each case, one a line."};
  AnticipationStudy study;
  app.add_option("--depth", study.depth, "requests at the server").between(1, 1024);
  app.add_option("--max-loss", study.max_loss, "in thousandths").between(0, 500);
  app.add_option("--spread", study.spread, "of think times, as a part of their mean")
      .between(0.0, 1.0);
  app.add_option("--late-one-in", study.late_one_in,
                 "thinks, one takes five times as long; 0: none");
  app.add_option("--requests", study.requests, "before each measurement; twice as many in it")
      .between(1000, 10'000'000);
  if (const auto code = app.parse(argc, argv)) return *code;
  for (const AnticipationCase& each : all_anticipation_cases()) {
    std::cout << json_of(study.run(each)).dump() << "\n";
  }
  return std::cout.flush() ? 0 : 1;
}

}  // namespace
}  // namespace vpfs

int main(int argc, char** argv) {
  try {
    return vpfs::bench(argc, argv);
  } catch (const std::exception& exception) {
    std::cerr << exception.what() << "\n";
    return 1;
  }
}
