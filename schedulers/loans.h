#pragma once

#include "schedulers/request.h"

namespace vpfs {

// What a flow has lent to others, or paid back, and what it has borrowed from them, or got back, in
// cost, since it was added. A policy without loans has none.
struct Loans {
  Cost lent = 0;
  Cost borrowed = 0;

  Loans& operator+=(const Loans& more) {
    lent += more.lent;
    borrowed += more.borrowed;
    return *this;
  }
  bool operator==(const Loans&) const = default;
};

}  // namespace vpfs
