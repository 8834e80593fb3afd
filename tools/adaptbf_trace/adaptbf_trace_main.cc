// What AdapTBF gives to each job in each period of a trace (docs/schedulers.md).
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "schedulers/adaptbf_allocator.h"

namespace vpfs {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::string_view kHeader = "period,job,nodes,demand";

// The input is wrong; exit code 2.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// Exit code 1.
class CannotWrite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char letter) { return letter >= '0' && letter <= '9'; });
}

std::string_view without_leading_zeros(std::string_view digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

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

class TraceReader {
 public:
  TraceReader(std::string name, std::string text)
      : name_(std::move(name)), text_(std::move(text)) {}

  std::vector<Row> read() {
    if (next_line() != kHeader) fail(fmt::format("the header must be \"{}\"", kHeader));
    std::vector<Row> rows;
    while (at_ < text_.size()) {
      rows.push_back(parse(next_line()));
      check_period(rows);
    }
    return rows;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw BadInput(fmt::format("{}:{}: {}", name_, std::max<std::size_t>(line_, 1), what));
  }

  std::string_view next_line() {
    ++line_;
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = std::string_view(text_).substr(at_, end - at_);
    at_ = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  [[nodiscard]] Row parse(std::string_view line) const {
    std::vector<std::string_view> fields;
    for (;;) {
      const std::size_t comma = line.find(',');
      fields.push_back(line.substr(0, comma));
      if (comma == std::string_view::npos) break;
      line.remove_prefix(comma + 1);
    }
    if (fields.size() != 4) fail(fmt::format("{} fields instead of 4", fields.size()));
    const std::uint64_t period = number("period", fields[0], ~std::uint64_t{0});
    return {.period = period,
            .job = std::string(fields[1]),
            .nodes = positive("nodes", fields[2]),
            .demand = positive("demand", fields[3])};
  }

  [[nodiscard]] std::uint64_t number(std::string_view field, std::string_view text,
                                     std::uint64_t most) const {
    if (!all_digits(text)) fail(fmt::format("{}: \"{}\" is not a number", field, text));
    std::uint64_t value = 0;
    for (const char digit : text) {
      if (__builtin_mul_overflow(value, 10U, &value) ||
          __builtin_add_overflow(value, static_cast<unsigned>(digit - '0'), &value) ||
          value > most) {
        fail(fmt::format("{}: {} is more than {}", field, text, most));
      }
    }
    return value;
  }

  [[nodiscard]] std::uint64_t positive(std::string_view field, std::string_view text) const {
    const std::uint64_t value = number(field, text, AdapTbfAllocator::kMost);
    if (value == 0) fail(fmt::format("{}: must be more than zero", field));
    return value;
  }

  void check_period(const std::vector<Row>& rows) {
    const Row& row = rows.back();
    const std::uint64_t last = rows.size() > 1 ? rows[rows.size() - 2].period : row.period;
    if (row.period < last) fail(fmt::format("period {} comes after {}", row.period, last));
    if (row.period != last) jobs_.clear();
    if (!jobs_.insert(row.job).second) {
      fail(fmt::format("job {} is there twice in period {}", row.job, row.period));
    }
    if (jobs_.size() > AdapTbfAllocator::kMostActive) {
      fail(fmt::format("more than {} jobs in one period", AdapTbfAllocator::kMostActive));
    }
  }

  std::string name_;
  std::string text_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
  std::set<std::string> jobs_;  // of the period so far
};

std::string read_file(const std::string& name) {
  const auto fail = [&](std::string_view what) {
    throw BadInput(
        fmt::format("{}: cannot {}: {}", name, what, std::generic_category().message(errno)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      name == "-" ? stdin : std::fopen(name.c_str(), "rbe"),
      [](std::FILE* opened) { return opened == stdin ? 0 : std::fclose(opened); });
  if (!file) fail("open");
  std::string text;
  std::vector<char> part(std::size_t{1} << 16);
  bool more = true;
  while (more) {
    const std::size_t got = std::fread(part.data(), 1, part.size(), file.get());
    text.append(part.data(), got);
    more = std::feof(file.get()) == 0 && std::ferror(file.get()) == 0;
  }
  if (std::ferror(file.get()) != 0) fail("read");
  return text;
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    throw CannotWrite(std::generic_category().message(errno));
  }
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

void trace(const std::vector<Row>& rows, std::uint64_t budget) {
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
  if (std::fflush(stdout) != 0) throw CannotWrite(std::generic_category().message(errno));
}

int run(int argc, char** argv) {
  CLI::App app{
      "Prints what AdapTBF gives to each job of a trace on one data server. FILE has the header "
      "period,job,nodes,demand and a row for every job that was active in a period; what is "
      "printed for it holds for the period after that."};
  std::string rate;
  std::string period;
  std::string file;
  app.add_option("--rate", rate, "capacity of the server in tokens per second")->required();
  app.add_option("--period", period, "length of a period in seconds")->required();
  app.add_option("FILE", file, "the trace; - is standard input")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    throw BadInput(error.what());
  }
  const std::uint64_t budget =
      budget_of(parse_decimal("--rate", rate), parse_decimal("--period", period));
  trace(TraceReader(file, read_file(file)).read(), budget);
  return 0;
}

}  // namespace
}  // namespace vpfs

int main(int argc, char** argv) {
  try {
    return vpfs::run(argc, argv);
  } catch (const vpfs::BadInput& problem) {
    fmt::print(stderr, "{}\n", problem.what());
    return 2;
  } catch (const vpfs::CannotWrite& problem) {
    fmt::print(stderr, "cannot write to standard output: {}\n", problem.what());
    return 1;
  } catch (const std::exception& problem) {
    fmt::print(stderr, "adaptbf_trace: {}\n", problem.what());
    return 1;
  }
}
