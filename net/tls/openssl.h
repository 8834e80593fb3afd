#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/result.h"

namespace vpfs::net {

#define VPFS_OPENSSL_FUNCTIONS(X)       \
  X(ASN1_STRING_get0_data)              \
  X(ASN1_STRING_length)                 \
  X(ASN1_STRING_to_UTF8)                \
  X(ASN1_TIME_to_tm)                    \
  X(BIO_clear_flags)                    \
  X(BIO_get_data)                       \
  X(BIO_meth_new)                       \
  X(BIO_meth_set_ctrl)                  \
  X(BIO_meth_set_read)                  \
  X(BIO_meth_set_write)                 \
  X(BIO_new)                            \
  X(BIO_set_data)                       \
  X(BIO_set_flags)                      \
  X(BIO_set_init)                       \
  X(CRYPTO_free)                        \
  X(ERR_clear_error)                    \
  X(ERR_get_error)                      \
  X(ERR_peek_last_error)                \
  X(ERR_reason_error_string)            \
  X(GENERAL_NAMES_free)                 \
  X(OPENSSL_sk_num)                     \
  X(OPENSSL_sk_value)                   \
  X(SSL_CTX_ctrl)                       \
  X(SSL_CTX_free)                       \
  X(SSL_CTX_get0_certificate)           \
  X(SSL_CTX_load_verify_file)           \
  X(SSL_CTX_new)                        \
  X(SSL_CTX_set_default_passwd_cb)      \
  X(SSL_CTX_set_num_tickets)            \
  X(SSL_CTX_set_options)                \
  X(SSL_CTX_set_verify)                 \
  X(SSL_CTX_use_PrivateKey_file)        \
  X(SSL_CTX_use_certificate_chain_file) \
  X(SSL_ctrl)                           \
  X(SSL_do_handshake)                   \
  X(SSL_free)                           \
  X(SSL_get0_param)                     \
  X(SSL_get1_peer_certificate)          \
  X(SSL_get_error)                      \
  X(SSL_get_verify_result)              \
  X(SSL_new)                            \
  X(SSL_read)                           \
  X(SSL_set_accept_state)               \
  X(SSL_set_bio)                        \
  X(SSL_set_connect_state)              \
  X(SSL_write)                          \
  X(TLS_client_method)                  \
  X(TLS_server_method)                  \
  X(X509_NAME_ENTRY_get_data)           \
  X(X509_NAME_get_entry)                \
  X(X509_NAME_get_index_by_NID)         \
  X(X509_VERIFY_PARAM_set1_host)        \
  X(X509_VERIFY_PARAM_set1_ip_asc)      \
  X(X509_free)                          \
  X(X509_get0_notAfter)                 \
  X(X509_get_ext_d2i)                   \
  X(X509_get_subject_name)              \
  X(X509_verify_cert_error_string)

// The functions of OpenSSL that vpfs calls, by their own names.
//
// The library is loaded when TLS is configured and not when the program starts: unused, it makes
// 1.7 MiB of every process resident, a quarter of it changed by relocations.
struct OpenSsl {
#define VPFS_OPENSSL_MEMBER(name) decltype(&::name) name = nullptr;
  VPFS_OPENSSL_FUNCTIONS(VPFS_OPENSSL_MEMBER)
#undef VPFS_OPENSSL_MEMBER
};

// Loads the library that the headers belong to. Later calls return what the first one did. Any
// thread may call it.
[[nodiscard]] Result<void> load_openssl();

// REQUIRES: load_openssl() succeeded.
[[nodiscard]] const OpenSsl& openssl();

}  // namespace vpfs::net
