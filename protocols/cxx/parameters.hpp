// The document a driver reads from standard input (contract.Parameters).
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

namespace linktrial {

// One option as the driver's manifest declares it. tests hold the table and
// driver.yaml against each other.
struct Option {
  enum class Type { kString, kInt, kBool, kSize, kDuration };
  std::string name;
  Type type;
  std::vector<std::string> choices;  // of a string; empty: any
  double min = 0;                    // in bytes, milliseconds or as such
  double max = 0;
};

// The values given, checked against the table. Absent: the protocol's own default.
class Options {
 public:
  // Throws Failure(bad-parameters).
  Options(const std::vector<Option>& table, const nlohmann::json& given);
  Options() = default;

  bool has(const std::string& name) const { return values_.count(name) != 0; }
  std::string text(const std::string& name, const std::string& otherwise) const;
  int64_t number(const std::string& name, int64_t otherwise) const;
  bool flag(const std::string& name, bool otherwise) const;

 private:
  std::map<std::string, std::variant<std::string, int64_t, bool>> values_;
};

struct Endpoint {
  std::string address;
  int port = 0;
};

using TransferID = std::array<uint8_t, 16>;
std::string hex(const TransferID& id);

struct Parameters {
  enum class Role { kQuery, kServer, kClient };
  Role role = Role::kQuery;
  Endpoint local;
  Endpoint remote;
  std::string device;
  int dscp = 0;  // of all packets on the radio; 0: the default
  TransferID transfer_id{};
  int64_t size_bytes = 0;
  int64_t duration_ms = 0;  // 0: the size alone bounds the payload
  Options options;
  int64_t connect_ms = 0;   // 0: no limit
  int64_t transfer_ms = 0;  // 0: no limit
  int64_t sample_interval_ms = 100;
};

// Throws Failure(bad-parameters) with the field and what was expected.
Parameters parse_parameters(const std::string& document, const std::vector<Option>& table);

}  // namespace linktrial
