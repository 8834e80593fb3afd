#include "control/coordinator/config/certificates.h"

#include <algorithm>
#include <string>
#include <vector>

#include "net/tls.h"

namespace vpfs::coordinator {

std::optional<WallTime> first_certificate_end(const Config& config) {
  std::vector<std::string> files = {config.control.certificate, config.listen.certificate,
                                    config.dialling.certificate};
  if (config.parent) files.push_back(config.parent->tls.certificate);
  std::optional<WallTime> first;
  for (const std::string& file : files) {
    if (file.empty()) continue;
    const auto end = net::end_of_certificate(file);
    if (end) first = first ? std::min(*first, *end) : *end;
  }
  return first;
}

}  // namespace vpfs::coordinator
