// Tests of the policy without a proxy: it is linked, and the time is a parameter.
#include "../drr.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <vpfs/schedulers/conformance/rules.h>
#include <vpfs/schedulers/policies/registry.h>

namespace {

using namespace vpfs;

int failures = 0;

void expect(bool is_so, const std::string& what) {
  std::printf("%s %s\n", is_so ? "ok    " : "FAILED", what.c_str());
  if (!is_so) ++failures;
}

void test_weights() {
  constexpr std::array<std::uint32_t, 3> kWeights = {1, 2, 4};
  const auto sent = conformance::divided_by_weight({.kind = &example::Drr::kKind}, kWeights);
  bool divided = true;
  for (std::size_t i = 0; i < sent.size(); ++i) {
    // 64 MiB for each of three flows; a turn or so may be cut off at the end.
    const auto due = 3 * 64 * static_cast<std::int64_t>(kMiB) * kWeights[i] / 7;
    const auto off = static_cast<std::int64_t>(sent[i]) - due;
    divided = divided && off <= 1'000'000 && off >= -1'000'000;
  }
  expect(divided, "weights divide the cost");
}

// A flow that sends little by little has no more of the server than one with large requests.
void test_sizes() {
  const auto scheduler = make_scheduler(example::Drr::kKind, {.depth = {.requests = 1}});
  std::vector<IoRequest> requests(2100);
  for (std::uint32_t app = 0; app < 2; ++app) (void)scheduler->set_share(AppId{app}, {}, {});
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const bool is_large = i < 100;
    requests[i].app = AppId{is_large ? 0U : 1U};
    requests[i].cost = is_large ? 100 * kKiB : 5 * kKiB;
    scheduler->enqueue(requests[i], {});
  }
  std::array<Cost, 2> sent = {};
  for (int i = 0; i < 1000; ++i) {
    IoRequest* const request = scheduler->next({}).request;
    sent[std::to_underlying(request->app)] += request->cost;
    scheduler->complete(*request, request->cost, {});
  }
  const Cost more = std::max(sent[0], sent[1]) - std::min(sent[0], sent[1]);
  expect(more <= 2 * (64 + 100) * kKiB, "sizes of requests do not matter");
}

void test_rules() {
  for (const conformance::Rule& rule : conformance::rules()) {
    const std::string problem = rule.check({.kind = &example::Drr::kKind});
    expect(problem.empty(), std::string(rule.about) + " " + problem);
  }
}

}  // namespace

int main() {
  test_weights();
  test_sizes();
  test_rules();
  return failures == 0 ? 0 : 1;
}
