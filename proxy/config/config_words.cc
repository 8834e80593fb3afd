#include "proxy/config/config_words.h"

namespace vpfs::proxy {
namespace {

constexpr ConfigWord kTop[] = {{"listen", "proxy.listen"},
                               {"upstream", "proxy.upstream"},
                               {"server", "proxy.upstream"},
                               {"protocol", "proxy.protocol"},
                               {"workers", "proxy.workers"},
                               {"threads", "proxy.workers"},
                               {"status_file", "proxy.status_file"},
                               {"log", "proxy.log"},
                               {"log_level", "proxy.log_level"},
                               {"policy", "scheduler.policy"},
                               {"depth", "scheduler.depth"},
                               {"classes", "scheduler.classes"},
                               {"applications", "virtual_pfs"},
                               {"jobs", "virtual_pfs"},
                               {"shares", "virtual_pfs"},
                               {"groups", "virtual_pfs"},
                               {"match", "rules"},
                               {"weight", "virtual_pfs.NAME.weight"},
                               {"priority", "virtual_pfs.NAME.weight"},
                               {"rate", "virtual_pfs.NAME.rate"},
                               {"bandwidth", "virtual_pfs.NAME.rate"},
                               {"iops", "virtual_pfs.NAME.operations"}};

constexpr ConfigWord kProxy[] = {{"server", "upstream"},
                                 {"backend", "upstream"},
                                 {"target", "upstream"},
                                 {"bind", "listen"},
                                 {"port", "listen"},
                                 {"address", "listen"},
                                 {"threads", "workers"},
                                 {"status", "status_file"},
                                 {"log_file", "log"},
                                 {"congestion", "local_congestion"},
                                 {"upstream_congestion", "local_congestion"},
                                 {"policy", "scheduler.policy"}};

}  // namespace

void suggest_top_words(ConfigReader& reader) {
  reader.suggest(kTop);
}

void suggest_proxy_words(ConfigReader& reader) {
  reader.suggest(kProxy);
}

}  // namespace vpfs::proxy
