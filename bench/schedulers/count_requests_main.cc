// Requests of every policy for a tool that counts instructions: it counts within
// counted_requests().
#include <cstdint>
#include <exception>
#include <iostream>
#include <string_view>

#include "base/command_line.h"
#include "bench/schedulers/policy_load.h"

// A name that tools find without knowing how C++ mangles.
extern "C" [[gnu::noinline]] void counted_requests(vpfs::PolicyLoad& load, std::uint64_t requests) {
  for (std::uint64_t i = 0; i < requests; ++i) load.one_request();
}

namespace vpfs {
namespace {

#ifdef __clang__
constexpr std::string_view kCompiler = "clang";
constexpr int kCompilerVersion = __clang_major__;
#else
constexpr std::string_view kCompiler = "gcc";
constexpr int kCompilerVersion = __GNUC__;
#endif

int count(int argc, char** argv) {
  OptionParser app{
      "Sends the same requests through every scheduling policy. Prints the compiler, "
      "and the name of each policy after its requests."};
  std::uint32_t flows = 1000;
  std::uint64_t requests = 20'000;
  app.add_option("--flows", flows, "number of backlogged flows").between(1, 10'000'000);
  app.add_option("--requests", requests, "requests that are counted for each policy, after as many")
      .between(1U, 1'000'000'000U);
  if (const auto code = app.parse(argc, argv)) return *code;
  std::cout << kCompiler << " " << kCompilerVersion << std::endl;
  for (const Variant& variant : measured_variants()) {
    PolicyLoad load(variant, flows);
    for (std::uint64_t i = 0; i < requests; ++i) load.one_request();
    counted_requests(load, requests);
    std::cout << variant.name << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace vpfs

int main(int argc, char** argv) {
  try {
    return vpfs::count(argc, argv);
  } catch (const std::exception& exception) {
    std::cerr << exception.what() << "\n";
    return 1;
  }
}
