#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proxy/config/config.h"
#include "proxy/config/config_summary.h"
#include "test/fuzz/config_properties.h"

// The configuration of vpfs-proxy, at its start and while it runs.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vpfs;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  test::check_config(text, [](std::string_view yaml, ConfigErrors& errors) {
    const proxy::Config config = proxy::parse_config(yaml, errors);
    if (!errors.empty()) return;
    (void)proxy::to_summary(config);
    // A running proxy takes its own configuration again.
    ConfigErrors reload("f.yaml");
    (void)proxy::parse_config(yaml, reload, &config);
    test::require(reload.empty(), "a running proxy does not take its own configuration");
  });
  return 0;
}
