#include "control/metrics/http_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpfs::control {
namespace {

using ::testing::HasSubstr;

struct Read {
  HttpConfig config;
  std::string errors;
};

Read read_config(const std::string& text) {
  ConfigErrors errors("p.yaml");
  Read found;
  {
    ConfigReader reader(text, errors);
    ConfigReader control = reader.child("control");
    read_http(control, found.config);
  }
  found.errors = errors.to_string();
  return found;
}

TEST(HttpConfig, PortIsOffUnlessThereIsAnAddress) {
  EXPECT_FALSE(read_config("control: {}").config.enabled());
  const Read found = read_config("control: {http: '127.0.0.1:9464', http_virtual_pfs: 5}");
  EXPECT_EQ(found.errors, "");
  EXPECT_EQ(found.config, (HttpConfig{.address = "127.0.0.1:9464", .most_virtual_pfs = 5}));
  EXPECT_TRUE(found.config.enabled());
}

TEST(HttpConfig, OnlyLoopbackAddressesAreGood) {
  for (const char* good : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"}) {
    EXPECT_TRUE(check_loopback(good)) << good;
  }
  for (const char* bad : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "stor0:1", "localhost.example:1",
                          "127.0.0.1", "", "[::ffff:10.0.0.1]:1"}) {
    EXPECT_FALSE(check_loopback(bad)) << bad;
  }
  EXPECT_THAT(
      read_config("control: {http: '0.0.0.0:9464'}").errors,
      HasSubstr("p.yaml:1: control.http: '0.0.0.0:9464' is not a loopback address: this port "
                "has neither TLS nor passwords"));
}

TEST(HttpConfig, NumberOfVirtualPfsesIsBounded) {
  EXPECT_THAT(read_config("control: {http_virtual_pfs: 0}").errors, HasSubstr("http_virtual_pfs"));
  EXPECT_THAT(read_config("control: {http_virtual_pfs: 100001}").errors,
              HasSubstr("http_virtual_pfs"));
}

}  // namespace
}  // namespace vpfs::control
