#include "control/metrics/http_tls.h"

#include <utility>

#include <fmt/format.h>

#include "control/wire/rights.h"

namespace vpfs::control {

Result<HttpTls> load_http_tls(const PortConfig& control, const Accounts& accounts) {
  auto access = resolve_access(control, accounts);
  if (!access) return fail(fmt::format("{}: {}", access.error().place(), access.error().text()));
  auto context =
      net::TlsContext::load({control.certificate, control.key, control.ca}, net::TlsSide::server);
  if (!context) return fail("control.certificate: " + context.error().message);
  return HttpTls{.context = std::move(*context),
                 .may_read = [access = std::move(*access)](const std::vector<std::string>& names) {
                   Identity who;
                   who.certificate = names;
                   return may_connect(who, access);
                 }};
}

void check_http_tls(const HttpConfig& http, const PortConfig& control, ConfigErrors& errors,
                    const Accounts& accounts) {
  if (!http.has_tls() || !control.tcp.empty()) return;
  // check_port_config() resolves the readers and writers of a port that is enabled.
  if (control.enabled() && !resolve_access(control, accounts)) return;
  if (const auto tls = load_http_tls(control, accounts); !tls) {
    errors.add("control.https", tls.error().message);
  }
}

}  // namespace vpfs::control
