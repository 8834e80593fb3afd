#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "protocols/orangefs/datafile_layout.h"

// Distributions byte by byte, to compare with computed values.
namespace vpfs::orangefs::test {

struct StripingModel {
  struct Strip {
    std::uint32_t server = 0;
    std::int64_t size = 0;
  };
  Distribution distribution;
  std::uint32_t servers = 1;
  std::vector<Strip> period;  // in the order of the file; empty: every server has everything

  [[nodiscard]] std::uint32_t server_of(std::int64_t logical) const {
    std::int64_t size = 0;
    for (const Strip& strip : period) size += strip.size;
    std::int64_t rest = logical % size;
    for (const Strip& strip : period) {
      if (rest < strip.size) return strip.server;
      rest -= strip.size;
    }
    return 0;
  }
  [[nodiscard]] bool has(std::uint32_t server, std::int64_t logical) const {
    return period.empty() || server_of(logical) == server;
  }
  // The datafile offset of every logical byte below `end`; for bytes of other datafiles, that of
  // the next own byte.
  [[nodiscard]] std::vector<std::int64_t> offsets(std::uint32_t server, std::int64_t end) const {
    std::vector<std::int64_t> found;
    std::int64_t next = 0;
    for (std::int64_t at = 0; at < end; ++at) {
      found.push_back(next);
      if (has(server, at)) ++next;
    }
    return found;
  }
};

inline StripingModel random_striping(std::mt19937_64& random) {
  StripingModel model;
  model.servers = 1 + static_cast<std::uint32_t>(random() % 5);
  const auto strip = static_cast<std::int64_t>(1 + random() % 9);
  switch (random() % 4) {
    case 0:
      model.distribution = BasicDistribution{};
      break;
    case 1:
      model.distribution = SimpleStripe{.strip_size = strip};
      for (std::uint32_t server = 0; server < model.servers; ++server) {
        model.period.push_back({server, strip});
      }
      break;
    case 2: {
      const TwoDStripe stripe{.groups = 1 + static_cast<std::uint32_t>(random() % model.servers),
                              .strip_size = strip,
                              .factor = 1 + static_cast<std::uint32_t>(random() % 4)};
      model.distribution = stripe;
      const std::uint32_t usual = model.servers / stripe.groups;
      for (std::uint32_t group = 0; group < stripe.groups; ++group) {
        const std::uint32_t end = group + 1 == stripe.groups ? model.servers : (group + 1) * usual;
        for (std::uint32_t row = 0; row < stripe.factor; ++row) {
          for (std::uint32_t server = group * usual; server < end; ++server) {
            model.period.push_back({server, strip});
          }
        }
      }
      break;
    }
    default: {
      std::string text;
      for (std::uint32_t i = 0; i < model.servers + random() % 6; ++i) {
        const std::uint32_t server =
            i < model.servers ? i : static_cast<std::uint32_t>(random() % model.servers);
        const auto size = static_cast<std::int64_t>(1 + random() % 9);
        model.period.push_back({server, size});
        text += std::to_string(server) + ":" + std::to_string(size) + ";";
      }
      if (random() % 2 == 0) text.pop_back();
      model.distribution = VarStrip{.strips = text};
    }
  }
  return model;
}

}  // namespace vpfs::orangefs::test
