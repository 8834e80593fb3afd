#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "control/wire/client.h"
#include "net/tls.h"
#include "tools/vpfsctl/site/answer.h"
#include "tools/vpfsctl/site/atomic.h"
#include "tools/vpfsctl/site/targets.h"

namespace vpfs::ctl {

// How proxies are asked.
struct SiteOptions {
  control::ClientOptions client;
  Duration timeout;  // of connecting, and of each answer
};

// The error is about the files of certificates.
[[nodiscard]] Result<SiteOptions> site_options(const net::TlsFiles& tls, Duration timeout,
                                               const std::string& version);

// The answer that came over the wire, or why none came.
[[nodiscard]] ProxyAnswer to_answer(std::string name, control::Reply<control::Envelope> reply);

// The proxies that a command goes to.
class AskedProxies {
 public:
  AskedProxies(std::vector<Target> targets, SiteOptions options);

  [[nodiscard]] std::size_t size() const { return targets_.size(); }
  // As the administrator named it, else as the proxy names itself, else by its endpoint.
  [[nodiscard]] std::string name(std::size_t proxy) const;

  // Asks all at once; blocks until all have answered or time is up.
  [[nodiscard]] std::vector<ProxyAnswer> ask_all(const control::Envelope& request);
  // At most one question for each proxy.
  [[nodiscard]] std::vector<ProxyAnswer> ask(const std::vector<Question>& questions);

 private:
  const std::vector<Target> targets_;
  const SiteOptions options_;
  control::SiteClient client_;
};

}  // namespace vpfs::ctl
