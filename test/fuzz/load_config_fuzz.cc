#include <cstddef>
#include <cstdint>
#include <string_view>

#include "test/fuzz/config_properties.h"
#include "tools/load/settings.h"
#include "tools/load/settings_summary.h"

// The configuration of vpfs-load.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vpfs;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  test::check_config(text, [](std::string_view yaml, ConfigErrors& errors) {
    const load::LoadSettings settings = load::read_settings(yaml, {}, errors);
    if (errors.empty()) (void)load::to_summary(settings);
  });
  return 0;
}
