#include "control/etcd/http_endpoint.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>

namespace vpfs::control {
namespace {

using HttpFailure = HttpEndpoint::Failure;

std::string text_of(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::ConnectionTimeout:
      return "cannot be connected to";
    case httplib::Error::Read:
    case httplib::Error::Write:
      return "ended the connection without an answer";
    case httplib::Error::SSLConnection:
      return "failed the TLS handshake";
    case httplib::Error::SSLLoadingCerts:
      return "cannot be checked: the file of the certificate authority is not usable";
    case httplib::Error::SSLServerVerification:
      return "has a certificate that is not trusted, or is for another host";
    default:
      return fmt::format("failed: {}", httplib::to_string(error));
  }
}

bool may_have_been_sent(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::ConnectionTimeout:
    case httplib::Error::SSLConnection:
    case httplib::Error::SSLLoadingCerts:
    case httplib::Error::SSLServerVerification:
      return false;
    default:
      return true;
  }
}

bool is_use_of_files(SSL_CTX* context, const net::TlsFiles& files, std::string& problem) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  if (!files.certificate.empty() &&
      SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    problem = "the certificate " + files.certificate + " is not usable";
  } else if (!files.key.empty() &&
             SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    problem = "the key " + files.key + " is not usable, or belongs to another certificate";
  } else if (!files.ca.empty() &&
             SSL_CTX_load_verify_locations(context, files.ca.c_str(), nullptr) != 1) {
    problem = "the certificate authority " + files.ca + " is not usable";
  }
  return problem.empty();
}

// An IPv6 address has colons itself, and brackets around it.
std::string host_of(const std::string& url) {
  const std::size_t begin = url.find("://") + 3;
  std::string host = url.substr(begin, url.rfind(':') - begin);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  return host;
}

// Tries end with the guard. These are for what it does not see.
template <typename Client>
void set_time_outs(Client& client, Duration connect, Duration call) {
  const auto rounded = [](Duration time) {
    return std::chrono::ceil<std::chrono::milliseconds>(time) + std::chrono::milliseconds(100);
  };
  client.set_connection_timeout(rounded(connect));
  client.set_read_timeout(rounded(call));
  client.set_write_timeout(rounded(call));
}

}  // namespace

HttpEndpoint::HttpEndpoint(Settings settings, CallGuard& guard, const Clock& clock)
    : settings_(std::move(settings)),
      guard_(guard),
      clock_(clock),
      addresses_(host_of(settings_.url)) {}

HttpEndpoint::~HttpEndpoint() = default;

Result<void> HttpEndpoint::check_files() {
  try {
    Result<void> made = make_client();
    drop();
    return made;
  } catch (const std::exception& problem) {
    return fail(settings_.url + ": " + problem.what());
  }
}

Result<void> HttpEndpoint::make_client() {
  client_ = std::make_unique<httplib::Client>(settings_.url);
  if (!client_->is_valid()) return fail(settings_.url + " is not a URL of a server");
  if (SSL_CTX* const context = client_->ssl_context(); context != nullptr) {
    std::string problem;
    if (!is_use_of_files(context, settings_.files, problem)) return fail(std::move(problem));
    // Otherwise the library would add the authorities of the system.
    if (!settings_.files.ca.empty()) client_->set_ca_cert_path(settings_.files.ca);
    client_->enable_server_certificate_verification(true);
  }
  client_->set_keep_alive(true);
  client_->set_tcp_nodelay(true);
  client_->set_decompress(false);
  client_->set_socket_options([this](int socket) { guard_.use_socket(socket); });
  return {};
}

Result<void> HttpEndpoint::aim() {
  const Result<std::string> address = addresses_.next(settings_.connect_time_out);
  if (!address) return std::unexpected(address.error());
  client_->set_hostname_addr_map({{host_of(settings_.url), *address}});
  return {};
}

void HttpEndpoint::drop() {
  client_.reset();
  line_.close();
}

std::expected<HttpEndpoint::Answer, HttpFailure> HttpEndpoint::post(const Call& call,
                                                                    std::size_t most) {
  Answer answer;
  bool is_too_large = false;
  const auto done = stream(call, [&](int status, std::string_view part) {
    answer.status = status;
    is_too_large = part.size() > most - answer.body.size();
    if (!is_too_large) answer.body += part;
    return !is_too_large;
  });
  if (is_too_large) {
    return std::unexpected(
        Failure{.why = Failure::Why::too_large,
                .text = fmt::format("answered {} with more than {} bytes", call.path, most),
                .was_sent = true,
                .was_kept = false});
  }
  if (!done) {
    const bool has_body = done.error().why == Failure::Why::failed && !answer.body.empty();
    if (!has_body) return std::unexpected(done.error());
    answer.may_be_cut = true;
  }
  return answer;
}

std::expected<void, HttpFailure> HttpEndpoint::stream(const Call& call, const Receive& receive) {
  try {
    for (std::size_t tries = 1;; ++tries) {
      auto done = exchange(call, receive);
      if (done) return done;
      drop();
      const bool has_other = !done.error().was_sent && tries < addresses_.known();
      if (!has_other || guard_.is_cancelled()) return done;
    }
  } catch (const std::exception& problem) {
    (void)guard_.end();
    drop();
    return std::unexpected(Failure{.why = Failure::Why::failed,
                                   .text = fmt::format("cannot be asked: {}", problem.what()),
                                   .was_sent = true,
                                   .was_kept = false});
  }
}

std::expected<void, HttpFailure> HttpEndpoint::exchange(const Call& call, const Receive& receive) {
  if (client_ == nullptr) {
    Result<void> made = make_client();
    if (made) made = aim();
    if (!made) {
      return std::unexpected(Failure{.why = Failure::Why::failed,
                                     .text = "cannot be asked: " + made.error().message,
                                     .was_sent = false,
                                     .was_kept = false});
    }
  }
  const bool was_kept = client_->is_socket_open() != 0;
  // The guard is first, and knows why.
  const Duration longest =
      std::max<Duration>(call.time_out + settings_.connect_time_out, call.patience) +
      std::chrono::seconds(1);
  set_time_outs(*client_, settings_.connect_time_out, longest);

  httplib::Request request;
  request.method = "POST";
  request.path = call.path;
  request.body = call.body;
  request.set_header("Content-Type", "application/json");
  if (!call.token.empty()) request.set_header("Authorization", call.token);

  const TimePoint begun = clock_.now();
  int status = 0;
  bool is_enough = false;
  request.response_handler = [&](const httplib::Response& response) {
    status = response.status;
    if (call.patience > Duration::zero()) guard_.set_deadline(begun + call.patience);
    is_enough = !receive(status, {});
    return !is_enough;
  };
  request.content_receiver = [&](const char* data, std::size_t size, std::uint64_t, std::uint64_t) {
    is_enough = !receive(status, std::string_view(data, size));
    return !is_enough;
  };

  Duration time_out = call.time_out;
  if (!was_kept) time_out += settings_.connect_time_out;
  if (call.patience > Duration::zero()) time_out = std::min(time_out, call.patience);
  httplib::Response response;
  httplib::Error error = httplib::Error::Success;
  guard_.begin(line_, begun + time_out);
  const bool is_whole = !guard_.is_cancelled() && client_->send(request, response, error);
  const CallGuard::Ended ended = guard_.end();

  if (is_whole) return {};
  if (is_enough) {
    drop();  // the rest of the body would come before the next answer
    return {};
  }
  Failure failure{.why = Failure::Why::failed,
                  .text = text_of(error),
                  .was_sent = may_have_been_sent(error),
                  .was_kept = was_kept};
  if (ended == CallGuard::Ended::cancelled) {
    failure.why = Failure::Why::cancelled;
    failure.text = "was not waited for: the call was cancelled";
  } else if (ended == CallGuard::Ended::at_deadline) {
    failure.why = Failure::Why::timed_out;
    failure.text = "has not answered in time";
  }
  return std::unexpected(std::move(failure));
}

}  // namespace vpfs::control
