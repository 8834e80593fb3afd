#include "net/tls/problems.h"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <asio/error.hpp>
#include <asio/ip/address.hpp>
#include <fmt/format.h>

#include "net/tls/openssl.h"

namespace vpfs::net {
namespace {

std::string text_of(const ASN1_STRING* string) {
  unsigned char* utf8 = nullptr;
  const int size = openssl().ASN1_STRING_to_UTF8(&utf8, string);
  if (size < 0) return "";
  std::string text(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
  openssl().CRYPTO_free(utf8, __FILE__, __LINE__);
  return text.find('\0') == std::string::npos ? text : "";
}

std::string address_of(const ASN1_OCTET_STRING* octets) {
  const unsigned char* data = openssl().ASN1_STRING_get0_data(octets);
  const int size = openssl().ASN1_STRING_length(octets);
  if (size == 4) {
    asio::ip::address_v4::bytes_type bytes = {};
    std::copy_n(data, bytes.size(), bytes.begin());
    return asio::ip::address_v4(bytes).to_string();
  }
  if (size == 16) {
    asio::ip::address_v6::bytes_type bytes = {};
    std::copy_n(data, bytes.size(), bytes.begin());
    return asio::ip::address_v6(bytes).to_string();
  }
  return "";
}

std::string common_name(const X509* certificate) {
  const X509_NAME* subject = openssl().X509_get_subject_name(certificate);
  std::string name;
  for (int at = -1;
       (at = openssl().X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;) {
    // The last one is the most specific.
    name = text_of(openssl().X509_NAME_ENTRY_get_data(openssl().X509_NAME_get_entry(subject, at)));
  }
  return name;
}

// What this side found wrong with the peer's certificate.
std::optional<std::string> verification_problem(SSL* ssl) {
  const long result = openssl().SSL_get_verify_result(ssl);
  switch (result) {
    case X509_V_OK:
      return std::nullopt;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "the peer's certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the peer's certificate is not valid yet; is a clock wrong?";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return "the peer's certificate is signed by an authority that is not in the CA file";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "the peer's certificate is for another host";
    case X509_V_ERR_INVALID_PURPOSE:
      return "the peer's certificate is not made for this side of a connection";
    default:
      return fmt::format("the peer's certificate is not good: {}",
                         openssl().X509_verify_cert_error_string(result));
  }
}

// What the peer said about this side.
std::optional<std::string> alert(int reason) {
  switch (reason) {
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return "the peer says that this side's certificate has expired";
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return "the peer does not know the authority that signed this side's certificate";
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return "the peer wants a certificate, and this side showed none";
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return "the peer does not accept this side's certificate";
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return "the peer showed no certificate";
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
      return "the peer does not speak TLS";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return "the peer speaks no version of TLS from 1.2 on";
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      return "the two sides share no cipher";
    default:
      return std::nullopt;
  }
}

class TlsCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "tls"; }
  [[nodiscard]] std::string message(int value) const override {
    const char* const reason = openssl().ERR_reason_error_string(static_cast<unsigned int>(value));
    return reason == nullptr ? "unknown problem" : reason;
  }
};

}  // namespace

const std::error_category& tls_category() {
  static const TlsCategory category;
  return category;
}

std::string explain_tls(SSL* ssl, const std::error_code& error) {
  if (error == asio::error::eof || error == asio::error::connection_reset) {
    return "the peer closed the connection";
  }
  if (error.category() != tls_category()) return error.message();
  const auto code = static_cast<unsigned long>(error.value());
  if (auto text = alert(ERR_GET_REASON(code))) return *text;
  if (auto text = verification_problem(ssl)) return *text;
  return "TLS: " + error.message();
}

std::vector<std::string> names_in_certificate(SSL* ssl) {
  const std::unique_ptr<X509, decltype(openssl().X509_free)> certificate(
      openssl().SSL_get1_peer_certificate(ssl), openssl().X509_free);
  std::vector<std::string> names;
  if (certificate == nullptr) return names;
  const auto add = [&](std::string name) {
    if (!name.empty()) names.push_back(std::move(name));
  };
  add(common_name(certificate.get()));
  const std::unique_ptr<GENERAL_NAMES, decltype(openssl().GENERAL_NAMES_free)> others(
      static_cast<GENERAL_NAMES*>(
          openssl().X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)),
      openssl().GENERAL_NAMES_free);
  // As the macros for stacks of names do.
  const auto* const stack = reinterpret_cast<const OPENSSL_STACK*>(others.get());
  const int count = others == nullptr ? 0 : openssl().OPENSSL_sk_num(stack);
  for (int i = 0; i < count; ++i) {
    const GENERAL_NAME* name =
        static_cast<const GENERAL_NAME*>(openssl().OPENSSL_sk_value(stack, i));
    if (name->type == GEN_DNS || name->type == GEN_EMAIL || name->type == GEN_URI) {
      add(text_of(name->d.ia5));
    } else if (name->type == GEN_IPADD) {
      add(address_of(name->d.iPAddress));
    }
  }
  return names;
}

std::string last_tls_error() {
  const unsigned long code = openssl().ERR_peek_last_error();
  openssl().ERR_clear_error();
  const char* reason = openssl().ERR_reason_error_string(code);
  return reason == nullptr ? "unknown problem" : reason;
}

}  // namespace vpfs::net
