#include "tools/selftest/proxy.h"

namespace vpfs::selftest {
namespace {

// A proxy that has started again counts from 0.
std::uint64_t grown(std::uint64_t before, std::uint64_t after) {
  return after < before ? after : after - before;
}

}  // namespace

Done done_between(const DoneFor& before, const DoneFor& after) {
  Done sum;
  for (const auto& [virtual_pfs, now] : after) {
    const auto found = before.find(virtual_pfs);
    const Done then = found == before.end() ? Done() : found->second;
    sum.requests += grown(then.requests, now.requests);
    sum.bytes += grown(then.bytes, now.bytes);
  }
  return sum;
}

}  // namespace vpfs::selftest
