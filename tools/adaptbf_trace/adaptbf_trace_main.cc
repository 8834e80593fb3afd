// What AdapTBF gives to each job in each period of a trace (docs/schedulers.md).
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/command_line.h"
#include "base/wide.h"
#include "schedulers/policies/adaptbf_allocator.h"
#include "tools/trace/csv.h"

namespace vpfs {
namespace {

using trace::all_digits;
using trace::BadInput;
using trace::CsvReader;
using trace::finish_printing;
using trace::print;
using trace::read_file;
using trace::without_leading_zeros;

constexpr std::string_view kHeader = "period,job,nodes,demand";

// A decimal number as written: digits / 10^decimals.
struct Decimal {
  std::uint64_t digits = 0;
  int decimals = 0;
};

Decimal parse_decimal(std::string_view option, std::string_view text) {
  constexpr std::size_t kMostDigits = 18;
  const std::size_t point = text.find('.');
  std::string digits(text.substr(0, point));
  std::string_view fraction;
  bool good = all_digits(digits);
  if (point != std::string_view::npos) {
    fraction = text.substr(point + 1);
    good = (good || digits.empty()) && all_digits(fraction);
    fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
  }
  if (!good) throw BadInput(fmt::format("{}: \"{}\" is not a decimal number", option, text));
  digits += fraction;
  const std::string_view significant = without_leading_zeros(digits);
  if (significant.size() > kMostDigits || fraction.size() > kMostDigits) {
    throw BadInput(fmt::format("{}: {} has more than {} digits", option, text, kMostDigits));
  }
  Decimal decimal = {.decimals = static_cast<int>(fraction.size())};
  for (const char digit : significant) {
    decimal.digits = decimal.digits * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return decimal;
}

// B = floor(rate * period).
std::uint64_t budget_of(const Decimal& rate, const Decimal& period) {
  if (period.digits == 0) throw BadInput("--period: must be more than zero");
  Wide budget = Wide{rate.digits} * period.digits;
  for (int i = 0; i < rate.decimals + period.decimals; ++i) budget /= 10;
  if (budget > AdapTbfAllocator::kMost) {
    throw BadInput(
        fmt::format("--rate times --period: more than {} tokens", AdapTbfAllocator::kMost));
  }
  return static_cast<std::uint64_t>(budget);
}

// Orders numbers by value, before all other names; orders those as text.
struct ByJobId {
  bool operator()(std::string_view one, std::string_view other) const {
    const bool is_number = all_digits(one);
    if (is_number != all_digits(other)) return is_number;
    if (!is_number) return one < other;
    const std::string_view value = without_leading_zeros(one);
    const std::string_view other_value = without_leading_zeros(other);
    if (value.size() != other_value.size()) return value.size() < other_value.size();
    return value != other_value ? value < other_value : one < other;
  }
};

struct Row {
  std::uint64_t period;
  std::string job;
  std::uint64_t nodes;
  std::uint64_t demand;
};

std::vector<Row> read(const std::string& file) {
  CsvReader reader(file, read_file(file), kHeader);
  constexpr std::uint64_t kMost = AdapTbfAllocator::kMost;
  std::vector<Row> rows;
  std::set<std::string> jobs;  // of the period so far
  while (reader.next()) {
    const std::uint64_t last = rows.empty() ? 0 : rows.back().period;
    const Row& row = rows.emplace_back(Row{.period = reader.number(0, 0, ~std::uint64_t{0}),
                                           .job = std::string(reader.fields()[1]),
                                           .nodes = reader.number(2, 1, kMost),
                                           .demand = reader.number(3, 1, kMost)});
    if (row.period < last) reader.fail(fmt::format("period {} comes after {}", row.period, last));
    if (row.period != last) jobs.clear();
    if (!jobs.insert(row.job).second) {
      reader.fail(fmt::format("job {} is there twice in period {}", row.job, row.period));
    }
    if (jobs.size() > AdapTbfAllocator::kMostActive) {
      reader.fail(fmt::format("more than {} jobs in one period", AdapTbfAllocator::kMostActive));
    }
  }
  return rows;
}

// Ties go to the smaller number, so jobs get numbers in the order of their ids.
std::map<std::string_view, AdapTbfAllocator::Job, ByJobId> number_jobs(
    const std::vector<Row>& rows) {
  std::map<std::string_view, AdapTbfAllocator::Job, ByJobId> jobs;
  for (const Row& row : rows) jobs.emplace(row.job, 0);
  AdapTbfAllocator::Job next = 0;
  for (auto& [id, job] : jobs) job = next++;
  return jobs;
}

void print_tokens(const std::vector<Row>& rows, std::uint64_t budget) {
  const auto jobs = number_jobs(rows);
  AdapTbfAllocator allocator;
  std::vector<AdapTbfAllocator::Demand> active;
  print("period,job,tokens,record\n");
  for (std::size_t first = 0; first < rows.size();) {
    const std::uint64_t period = rows[first].period;
    // Any number of periods without activity has the effect of one.
    if (first > 0 && period > rows[first - 1].period + 1) (void)allocator.allocate({}, budget);
    active.clear();
    for (std::size_t i = first; i < rows.size() && rows[i].period == period; ++i) {
      active.push_back({jobs.at(rows[i].job), rows[i].nodes, rows[i].demand});
    }
    for (const auto& given : allocator.allocate(active, budget)) {
      print(fmt::format("{},{},{},{}\n", period, rows[first].job, given.tokens, given.record));
      ++first;
    }
  }
  finish_printing();
}

int run(int argc, char** argv) {
  OptionParser app{
      "Prints what AdapTBF gives to each job of a trace on one data server. FILE has the header "
      "period,job,nodes,demand and a row for every job that was active in a period; what is "
      "printed for it holds for the period after that."};
  std::string rate;
  std::string period;
  std::string file;
  app.add_option("--rate", rate, "capacity of the server in tokens per second").required();
  app.add_option("--period", period, "length of a period in seconds").required();
  app.add_option("FILE", file, "the trace; - is standard input").required();
  app.describe_mistakes([](const UsageMistake& mistake) { return mistake.text + "\n"; });
  if (const auto code = app.parse(argc, argv)) return *code == 0 ? 0 : kBadUsage;
  const std::uint64_t budget =
      budget_of(parse_decimal("--rate", rate), parse_decimal("--period", period));
  print_tokens(read(file), budget);
  return 0;
}

}  // namespace
}  // namespace vpfs

int main(int argc, char** argv) {
  return vpfs::trace::guarded("adaptbf_trace", vpfs::run, argc, argv);
}
