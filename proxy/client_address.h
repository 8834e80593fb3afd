#pragma once

#include "net/async.h"
#include "stage/rules/address.h"

namespace vpfs::proxy {

// The form of an address that rules match.
[[nodiscard]] inline stage::Address address_of(const asio::ip::address& address) {
  const asio::ip::address_v6 v6 =
      address.is_v4() ? asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4())
                      : address.to_v6();
  return stage::Address(v6.to_bytes());
}

}  // namespace vpfs::proxy
