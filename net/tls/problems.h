#pragma once

#include <string>
#include <system_error>
#include <vector>

#include <openssl/ssl.h>

// What OpenSSL says, for people.
namespace vpfs::net {

// The category of errors whose values are codes of OpenSSL.
[[nodiscard]] const std::error_category& tls_category();

// Why a handshake, or the first read or write after it, failed. With TLS 1.3 a client learns only
// then that the server does not like its certificate.
[[nodiscard]] std::string explain_tls(SSL* ssl, const std::error_code& error);

// The common name and the alternative names (of hosts, mail, URIs and addresses) of the peer's
// certificate. Names with a zero byte inside are left out.
[[nodiscard]] std::vector<std::string> names_in_certificate(SSL* ssl);

// The newest error of OpenSSL on this thread, which is then forgotten.
[[nodiscard]] std::string last_tls_error();

}  // namespace vpfs::net
