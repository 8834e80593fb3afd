#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "dataserver/orangefs/config_summary.h"
#include "dataserver/orangefs/fs_config.h"
#include "dataserver/orangefs/server_config.h"
#include "protocols/orangefs/fs_config.h"
#include "test/fuzz/config_properties.h"

// The configuration of vpfs-server, and the fs.conf that it gives to clients.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vpfs;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  test::check_config(text, [](std::string_view yaml, ConfigErrors& errors) {
    const dataserver::ServerConfig config = dataserver::parse_server_config(yaml, errors);
    if (!errors.empty()) return;
    (void)dataserver::to_summary(config, std::nullopt);
    const dataserver::HandleRanges ranges(static_cast<std::uint32_t>(config.servers.size()));
    const auto served =
        orangefs::read_fs_config(orangefs::write_fs_config(fs_config(config, ranges)));
    test::require(!served.problem, "the server's fs.conf cannot be read");
    test::require(served.config.client_job_timeout == config.client_job_timeout,
                  "a proxy reads another time-out in fs.conf than was configured");
  });
  return 0;
}
