// The caps that PSFA gives to each job on each stage in each cycle of a trace (docs/tools.md).
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/command_line.h"
#include "control/allocation/psfa.h"
#include "tools/trace/csv.h"

namespace vpfs {
namespace {

using allocation::kMostAmount;
using allocation::Psfa;

constexpr std::string_view kHeader = "cycle,job,stage,weight,max,arrived,limited_us";
constexpr std::uint64_t kMostNumber = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostWeight = std::uint64_t{1} << 40;
constexpr std::uint64_t kMostMicroseconds = std::uint64_t{1} << 50;

struct CapTraceSettings {
  std::string policy;
  std::uint64_t capacity = 0;  // each second
  std::uint64_t cycle_us = 0;
  std::uint64_t floor = 0;
  std::string file;
};

struct Row {
  std::string job;
  std::string stage;
  Psfa::Row values;

  [[nodiscard]] auto key() const { return std::tie(job, stage); }
};

struct Cycle {
  std::uint64_t number = 0;
  std::vector<Row> rows;  // by job and stage, as texts
};

// What the rows of one cycle must agree on.
class CycleChecks {
 public:
  void check(std::uint64_t cycle, const Row& row, const trace::CsvReader& reader) {
    if (!pairs_.emplace(row.job, row.stage).second) {
      reader.fail(
          fmt::format("job {} is there twice on stage {} in cycle {}", row.job, row.stage, cycle));
    }
    const auto [first, is_new] = jobs_.try_emplace(row.job, row.values);
    if (first->second.weight != row.values.weight || first->second.most != row.values.most) {
      reader.fail(fmt::format("job {} has two weights or two maxima in cycle {}", row.job, cycle));
    }
  }

 private:
  std::set<std::pair<std::string, std::string>> pairs_;
  std::map<std::string, Psfa::Row> jobs_;  // the first row of each
};

std::vector<Cycle> read(const std::string& file) {
  trace::CsvReader reader(file, trace::read_file(file), kHeader);
  std::vector<Cycle> cycles;
  CycleChecks checks;
  while (reader.next()) {
    const std::uint64_t number = reader.number(0, 0, kMostNumber);
    if (cycles.empty() || number != cycles.back().number) {
      if (!cycles.empty() && number < cycles.back().number) {
        reader.fail(fmt::format("cycle {} comes after {}", number, cycles.back().number));
      }
      cycles.push_back({.number = number, .rows = {}});
      checks = {};
    }
    const auto limited = static_cast<std::int64_t>(reader.number(6, 0, kMostMicroseconds));
    Row row = {.job = std::string(reader.fields()[1]),
               .stage = std::string(reader.fields()[2]),
               .values = {.weight = reader.number(3, 1, kMostWeight),
                          .most = reader.number(4, 0, kMostNumber),
                          .arrived = reader.number(5, 0, kMostNumber),
                          .limited = std::chrono::microseconds(limited)}};
    checks.check(number, row, reader);
    cycles.back().rows.push_back(std::move(row));
  }
  for (Cycle& each : cycles) std::ranges::sort(each.rows, {}, &Row::key);
  return cycles;
}

// Gives pairs their numbers for the whole trace, and jobs theirs for the cycle.
class Numbers {
 public:
  void set(Cycle& cycle) {
    std::uint32_t job = 0;
    for (std::size_t i = 0; i < cycle.rows.size(); ++i) {
      Row& row = cycle.rows[i];
      if (i > 0 && row.job != cycle.rows[i - 1].job) ++job;
      row.values.job = job;
      row.values.id =
          pairs_.try_emplace({row.job, row.stage}, static_cast<std::uint32_t>(pairs_.size()))
              .first->second;
    }
  }

 private:
  std::map<std::pair<std::string, std::string>, std::uint32_t> pairs_;
};

void print_caps(std::vector<Cycle> cycles, const CapTraceSettings& settings) {
  const Duration period = std::chrono::microseconds(settings.cycle_us);
  Psfa psfa;
  Numbers numbers;
  std::vector<Psfa::Row> rows;
  std::vector<std::uint64_t> caps;
  trace::print("cycle,job,stage,cap\n");
  for (std::size_t i = 0; i < cycles.size(); ++i) {
    Cycle& cycle = cycles[i];
    // Any number of cycles without rows has the effect of one.
    if (i > 0 && cycle.number > cycles[i - 1].number + 1) {
      (void)psfa.divide({}, period, settings.capacity, settings.floor, {});
    }
    numbers.set(cycle);
    rows.clear();
    for (const Row& row : cycle.rows) rows.push_back(row.values);
    caps.resize(rows.size());
    const auto divided = psfa.divide(rows, period, settings.capacity, settings.floor, caps);
    if (!divided) {
      const auto job = std::ranges::find(rows, divided.error().job, &Psfa::Row::job);
      throw std::runtime_error(
          fmt::format("cycle {}: no floor is left for job {} with {} pairs", cycle.number,
                      cycle.rows[static_cast<std::size_t>(job - rows.begin())].job, rows.size()));
    }
    for (std::size_t row = 0; row < rows.size(); ++row) {
      trace::print(fmt::format("{},{},{},{}\n", cycle.number, cycle.rows[row].job,
                               cycle.rows[row].stage, caps[row]));
    }
  }
  trace::finish_printing();
}

int run(int argc, char** argv) {
  OptionParser app{
      "Prints the caps, in units each second, that a coordinator's policy gives to each job on "
      "each "
      "stage. FILE has the header cycle,job,stage,weight,max,arrived,limited_us and a row for "
      "every "
      "job that was live on a stage in a cycle; a max of 0 is none. What is printed for it holds "
      "in "
      "the cycle after that."};
  CapTraceSettings settings;
  app.add_option("--policy", settings.policy, "psfa: the others have no caps to trace")
      .required()
      .one_of({"psfa"});
  app.add_option("--capacity", settings.capacity, "what is divided, in units each second")
      .required()
      .between(std::uint64_t{0}, kMostAmount);
  app.add_option("--cycle-us", settings.cycle_us, "length of a cycle in microseconds")
      .required()
      .between(std::uint64_t{1}, kMostMicroseconds);
  app.add_option("--floor", settings.floor, "the least cap, in units each second")
      .required()
      .between(std::uint64_t{0}, kMostAmount);
  app.add_option("FILE", settings.file, "the trace; - is standard input").required();
  app.describe_mistakes([](const UsageMistake& mistake) { return mistake.text + "\n"; });
  if (const auto code = app.parse(argc, argv)) return *code == 0 ? 0 : kBadUsage;
  print_caps(read(settings.file), settings);
  return 0;
}

}  // namespace
}  // namespace vpfs

int main(int argc, char** argv) {
  return vpfs::trace::guarded("allocation_trace", vpfs::run, argc, argv);
}
