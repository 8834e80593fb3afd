#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "schedulers/policies/adaptbf_allocator.h"
#include "test/support/fraction.h"

namespace vpfs {

// The formulas of AdapTbfAllocator as they are written, in exact arithmetic.
class AdapTbfReference {
 public:
  using Demand = AdapTbfAllocator::Demand;
  using Allocation = AdapTbfAllocator::Allocation;
  using Job = AdapTbfAllocator::Job;

  std::vector<Allocation> allocate(const std::vector<Demand>& active, std::int64_t budget) {
    std::map<Job, Demand> jobs;
    for (const Demand& demand : active) jobs[demand.job] = demand;
    std::map<Job, std::int64_t> a;
    if (!jobs.empty()) a = settle(jobs, budget);
    previous_ = a;
    std::vector<Allocation> answer;
    answer.reserve(active.size());
    for (const Demand& demand : active) {
      answer.push_back({.job = demand.job,
                        .tokens = static_cast<std::uint64_t>(a[demand.job]),
                        .record = record_[demand.job]});
    }
    return answer;
  }

  // How often each of these happened.
  std::uint64_t tokens_added = 0;
  std::uint64_t tokens_taken = 0;
  std::uint64_t several_taken = 0;
  std::uint64_t ties = 0;
  std::uint64_t kept_at_zero = 0;
  std::uint64_t paid_back = 0;

 private:
  using Values = std::map<Job, Fraction>;
  using Tokens = std::map<Job, std::int64_t>;

  Tokens settle(const std::map<Job, Demand>& jobs, std::int64_t budget) {
    Values p, values, u, df;
    std::int64_t all_nodes = 0;
    std::map<Job, std::int64_t> d;
    for (const auto& [job, demand] : jobs) all_nodes += static_cast<std::int64_t>(demand.nodes);
    for (const auto& [job, demand] : jobs) {
      p[job] = Fraction(static_cast<std::int64_t>(demand.nodes)) / all_nodes;
      values[job] = p[job] * budget;
      d[job] = static_cast<std::int64_t>(demand.tokens);
    }
    const Tokens a = integers(values, budget);

    std::int64_t surplus = 0;
    Fraction sum_df;
    for (const auto& [job, unused] : jobs) {
      const auto found = previous_.find(job);
      std::int64_t a_prev = found == previous_.end() ? 0 : found->second;
      if (a_prev == 0) a_prev = a.at(job);
      u[job] = a_prev == 0 ? Fraction(d[job]) : Fraction(d[job]) / a_prev;
      df[job] = u[job] > 1 ? u[job] + u[job] * p[job] : u[job] * p[job];
      sum_df = sum_df + df[job];
      surplus += std::max<std::int64_t>(0, a.at(job) - d[job]);
    }
    for (const auto& [job, unused] : jobs) {
      const std::int64_t s = std::max<std::int64_t>(0, a.at(job) - d[job]);
      values[job] = Fraction(a.at(job) - s) + Fraction(surplus) * df[job] / sum_df;
    }
    const Tokens a_rd = integers(values, budget);
    Tokens a_rc = a_rd;
    Tokens r_rd;
    for (const auto& [job, unused] : jobs) r_rd[job] = record_[job] + a.at(job) - a_rd.at(job);
    Tokens r_rc = r_rd;

    Fraction c;
    Fraction sum_df_lenders;
    for (const auto& [job, unused] : jobs) {
      if (record_[job] <= 0 || r_rd[job] <= 0) continue;
      const Fraction ubar = a_rd.at(job) == 0 ? Fraction(1) : Fraction(d[job]) / a_rd.at(job);
      c = c +
          p[job] * (std::max(Fraction(1), u[job]) + std::max(Fraction(0), Fraction(1) - ubar)) / 2;
      sum_df_lenders = sum_df_lenders + df[job];
    }
    std::int64_t taken = 0;
    for (const auto& [job, unused] : jobs) {
      if (record_[job] >= 0 || r_rd[job] >= 0) continue;
      const Fraction take_at_most = std::min(c * a_rd.at(job), Fraction(a_rd.at(job)));
      const std::int64_t take = std::min(-record_[job], take_at_most.floor());
      a_rc[job] -= take;
      r_rc[job] += take;
      taken += take;
    }
    Values given_values;
    for (const auto& [job, unused] : jobs) {
      if (record_[job] <= 0 || r_rd[job] <= 0) continue;
      given_values[job] = Fraction(taken) * df[job] / sum_df_lenders;
    }
    for (const auto& [job, given] : integers(given_values, taken)) {
      a_rc[job] += given;
      r_rc[job] -= given;
    }
    paid_back += static_cast<std::uint64_t>(taken);
    for (const auto& [job, record] : r_rc) record_[job] = record;
    return a_rc;
  }

  Tokens integers(const Values& values, std::int64_t total) {
    Tokens tokens;
    std::int64_t sum = 0;
    for (const auto& [job, value] : values) {
      Fraction& remainder = remainder_[job];
      remainder = remainder + value;
      tokens[job] = std::max<std::int64_t>(0, remainder.floor());
      if (remainder < 0) ++kept_at_zero;
      remainder = remainder - tokens[job];
      sum += tokens[job];
    }
    if (values.empty()) return tokens;
    for (; sum < total; ++sum) {
      const Job largest = largest_of(values, [](Job) { return true; });
      ++tokens[largest];
      remainder_[largest] = remainder_[largest] - 1;
      ++tokens_added;
    }
    std::map<Job, int> turns;  // everyone's first turn comes before anyone's second
    if (sum > total + 1) ++several_taken;
    for (int turn = 0; sum > total;) {
      const auto may = [&](Job job) { return tokens[job] > 0 && turns[job] == turn; };
      if (std::ranges::none_of(values, may, [](const auto& one) { return one.first; })) {
        ++turn;
        for (const auto& [job, unused] : values) turns[job] = turn;
        continue;
      }
      const Job largest = largest_of(values, may);
      ++turns[largest];
      --tokens[largest];
      remainder_[largest] = remainder_[largest] + 1;
      --sum;
      ++tokens_taken;
    }
    return tokens;
  }

  template <typename May>
  Job largest_of(const Values& values, May may) {
    const Fraction* largest = nullptr;
    Job found = 0;
    for (const auto& [job, unused] : values) {
      if (!may(job)) continue;
      const Fraction& remainder = remainder_[job];
      if (largest != nullptr && remainder == *largest) ++ties;
      if (largest != nullptr && remainder <= *largest) continue;
      largest = &remainder;
      found = job;
    }
    return found;
  }

  Tokens previous_;
  Tokens record_;
  Values remainder_;
};

}  // namespace vpfs
