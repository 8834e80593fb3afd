#include "test/support/control/certificates.h"

#include <stdexcept>
#include <utility>

#include "test/support/places.h"
#include "test/support/process.h"

namespace vpfs::test {

void make_certificates(const std::filesystem::path& folder, std::vector<std::string> arguments) {
  std::vector<std::string> command = {source("script/certificates")};
  std::size_t options = 0;
  while (options < arguments.size() && arguments[options].starts_with("--")) {
    options += arguments[options] == "--days" || arguments[options] == "--seconds" ? 2 : 1;
  }
  arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(options), folder.string());
  command.insert(command.end(), arguments.begin(), arguments.end());
  Process script(std::move(command));
  const auto end = script.wait();
  if (!end || !end->ok()) throw std::runtime_error("script/certificates: " + script.errors());
}

net::TlsFiles certificate_files(const std::filesystem::path& folder, const std::string& name) {
  return {.certificate = folder / (name + ".pem"),
          .key = folder / (name + ".key"),
          .ca = folder / "ca.pem"};
}

std::shared_ptr<net::TlsContext> client_tls(const std::filesystem::path& folder,
                                            const std::string& name) {
  auto context = net::TlsContext::load(certificate_files(folder, name), net::TlsSide::client);
  if (!context) throw std::runtime_error(context.error().message);
  return std::move(*context);
}

}  // namespace vpfs::test
