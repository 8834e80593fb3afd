#include "tools/vpfsctl/site/asked_proxies.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/result.h"

namespace vpfs::ctl {
namespace {

std::vector<control::PortAddress> ports_of(const std::vector<Target>& targets) {
  std::vector<control::PortAddress> ports;
  ports.reserve(targets.size());
  for (const Target& target : targets) ports.push_back(target.endpoint);
  return ports;
}

}  // namespace

Result<SiteOptions> site_options(const net::TlsFiles& tls, Duration timeout,
                                 const std::string& version) {
  SiteOptions options{.client = {.program = "vpfsctl " + version, .connect_within = timeout},
                      .timeout = timeout};
  options.client.if_coordinator =
      "is a coordinator, and not a proxy: --coordinator or VPFS_COORDINATOR names it";
  const bool any = !tls.certificate.empty() || !tls.key.empty() || !tls.ca.empty();
  const bool all = !tls.certificate.empty() && !tls.key.empty() && !tls.ca.empty();
  if (any && !all) return fail("--certificate, --key and --ca belong together");
  if (all) {
    auto context = net::TlsContext::load(tls, net::TlsSide::client);
    VPFS_TRY(context);
    options.client.tls = std::move(*context);
  }
  return options;
}

ProxyAnswer to_answer(std::string name, control::Reply<control::Envelope> reply) {
  if (reply) return make_answer(std::move(name), std::move(*reply));
  if (reply.error().answers) return unanswered(std::move(name), reply.error().error.text());
  if (!reply.error().reached) {
    return unreachable(std::move(name), "unreachable", reply.error().error.text());
  }
  control::Envelope refusal;
  *refusal.mutable_error() = std::move(reply.error().error);
  return make_answer(std::move(name), std::move(refusal));
}

AskedProxies::AskedProxies(std::vector<Target> targets, SiteOptions options)
    : targets_(std::move(targets)),
      options_(std::move(options)),
      client_(ports_of(targets_), options_.client) {}

std::string AskedProxies::name(std::size_t proxy) const {
  const Target& target = targets_[proxy];
  const control::Hello* hello = client_.hello(proxy);
  if (target.is_named || hello == nullptr || hello->name().empty()) return target.name;
  // Two with one name are told apart by their endpoints.
  for (std::size_t other = 0; other < targets_.size(); ++other) {
    if (other == proxy) continue;
    const control::Hello* theirs = client_.hello(other);
    if (targets_[other].name == hello->name()) return target.name;
    if (theirs != nullptr && theirs->name() == hello->name()) return target.name;
  }
  return hello->name();
}

std::vector<ProxyAnswer> AskedProxies::ask_all(const control::Envelope& request) {
  std::vector<Question> questions;
  questions.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) questions.push_back({.proxy = i, .request = request});
  return ask(questions);
}

std::vector<ProxyAnswer> AskedProxies::ask(const std::vector<Question>& questions) {
  std::vector<std::optional<control::Envelope>> requests(size());
  for (const Question& question : questions) requests[question.proxy] = question.request;
  auto replies = client_.ask(requests, options_.timeout);
  std::vector<ProxyAnswer> answers;
  for (const Question& question : questions) {
    auto& reply = replies[question.proxy];
    VPFS_ASSERT(reply.has_value());
    answers.push_back(to_answer(name(question.proxy), std::move(*reply)));
  }
  return answers;
}

}  // namespace vpfs::ctl
