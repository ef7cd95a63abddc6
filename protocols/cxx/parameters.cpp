#include "parameters.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "address.hpp"
#include "failure.hpp"
#include "transfer.hpp"

namespace linktrial {
namespace {

using nlohmann::json;

constexpr int kContractVersion = 2;
// A year, so that a transfer's time can be counted in nanoseconds.
constexpr int64_t kMaxDurationMS = int64_t{365} * 24 * 3600 * 1000;
// Longest part of the input that an error message quotes, in bytes.
constexpr size_t kQuoteBytes = 60;

[[noreturn]] void bad(const std::string& what) { throw Failure(code::kBadParameters, "parameters: " + what); }

std::string shown(const json& v) {
  std::string s = v.dump(-1, ' ', true, json::error_handler_t::replace);
  if (s.size() > kQuoteBytes) s = s.substr(0, kQuoteBytes) + "…";
  return s;
}

const json* field(const json& object, const char* name) {
  auto at = object.find(name);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

const json* object_field(const json& object, const char* name) {
  const json* v = field(object, name);
  if (v && !v->is_object()) bad(std::string(name) + " is " + shown(*v) + ", expected an object");
  return v;
}

std::string text_field(const json& object, const char* name) {
  const json* v = field(object, name);
  if (!v) return "";
  if (!v->is_string()) bad(std::string(name) + " is " + shown(*v) + ", expected text");
  return v->get<std::string>();
}

// Without fraction or exponent, as the contract has it.
std::optional<int64_t> whole(const json& v) {
  if (v.is_number_unsigned()) {
    uint64_t n = v.get<uint64_t>();
    if (n > INT64_MAX) return std::nullopt;
    return static_cast<int64_t>(n);
  }
  if (v.is_number_integer()) return v.get<int64_t>();
  return std::nullopt;
}

int64_t whole_field(const json& object, const char* name, int64_t lo, int64_t hi) {
  const json* v = field(object, name);
  if (!v) return 0;
  auto n = whole(*v);
  if (!n || *n < lo || *n > hi) {
    bad(std::string(name) + " is " + shown(*v) + ", expected a whole number from " + std::to_string(lo) + " to " + std::to_string(hi));
  }
  return *n;
}

Endpoint endpoint_field(const json& object, const char* name) {
  Endpoint e;
  if (const json* v = object_field(object, name)) {
    e.address = text_field(*v, "address");
    e.port = static_cast<int>(whole_field(*v, "port", 0, 65535));
  }
  return e;
}

TransferID parse_transfer_id(const std::string& s) {
  TransferID id{};
  auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  bool ok = s.size() == 2 * id.size();
  for (size_t i = 0; ok && i < id.size(); i++) {
    int high = digit(s[2 * i]), low = digit(s[2 * i + 1]);
    ok = high >= 0 && low >= 0;
    if (ok) id[i] = static_cast<uint8_t>(high << 4 | low);
  }
  if (!ok) bad("transfer.id is " + shown(s) + ", expected 32 lower-case hexadecimal digits");
  return id;
}

// Addresses are numeric, without a zone, and of one family (rule P9 of the contract).
void check_addresses(const Parameters& p) {
  int local = p.local.address.empty() ? AF_UNSPEC : parse_address(p.local, "local").family();
  int remote = p.remote.address.empty() ? AF_UNSPEC : parse_address(p.remote, "remote").family();
  if (local != AF_UNSPEC && remote != AF_UNSPEC && local != remote) bad("local.address and remote.address are of different families");
}

void parse_client(Parameters& p, const json& document) {
  if (p.remote.address.empty() || p.remote.port == 0) bad("client needs remote.address and remote.port 1…65535");
  const json* t = object_field(document, "transfer");
  if (!t) bad("client needs transfer");
  p.transfer_id = parse_transfer_id(text_field(*t, "id"));
  p.size_bytes = whole_field(*t, "size_bytes", 0, kMaxSizeBytes);
  p.duration_ms = whole_field(*t, "duration_ms", 0, kMaxDurationMS);
}

}  // namespace

Options::Options(const std::vector<Option>& table, const json& given) {
  for (const auto& [name, v] : given.items()) {
    const std::string& key = name;
    auto declared = std::find_if(table.begin(), table.end(), [&](const Option& o) { return o.name == key; });
    if (declared == table.end()) bad("unknown option " + shown(name));
    const Option& o = *declared;
    auto wrong = [&](const std::string& expected) { bad("option " + o.name + " is " + shown(v) + ", expected " + expected); };
    switch (o.type) {
      case Option::Type::kString: {
        if (!v.is_string()) wrong("text");
        auto s = v.get<std::string>();
        if (!o.choices.empty() && std::find(o.choices.begin(), o.choices.end(), s) == o.choices.end()) {
          std::string there;
          for (const auto& c : o.choices) there += (there.empty() ? "" : ", ") + c;
          wrong("one of " + there);
        }
        values_[o.name] = s;
        break;
      }
      case Option::Type::kBool:
        if (!v.is_boolean()) wrong("true or false");
        values_[o.name] = v.get<bool>();
        break;
      case Option::Type::kDuration:
      case Option::Type::kInt:
      case Option::Type::kSize: {
        if (!v.is_number()) wrong("a number");
        double f = v.get<double>();
        if (!(f >= o.min && f <= o.max)) wrong("a number from " + shown(o.min) + " to " + shown(o.max));
        if (o.type != Option::Type::kDuration && f != std::trunc(f)) wrong("a whole number");
        values_[o.name] = static_cast<int64_t>(std::llround(f));
        break;
      }
    }
  }
}

std::string Options::text(const std::string& name, const std::string& otherwise) const {
  auto at = values_.find(name);
  return at == values_.end() ? otherwise : std::get<std::string>(at->second);
}

int64_t Options::number(const std::string& name, int64_t otherwise) const {
  auto at = values_.find(name);
  return at == values_.end() ? otherwise : std::get<int64_t>(at->second);
}

bool Options::flag(const std::string& name, bool otherwise) const {
  auto at = values_.find(name);
  return at == values_.end() ? otherwise : std::get<bool>(at->second);
}

std::string hex(const TransferID& id) {
  static const char digits[] = "0123456789abcdef";
  std::string out;
  for (uint8_t b : id) {
    out += digits[b >> 4];
    out += digits[b & 15];
  }
  return out;
}

Parameters parse_parameters(const std::string& document, const std::vector<Option>& table) {
  json d = json::parse(document, nullptr, false);
  if (d.is_discarded()) bad("not one JSON document");
  if (!d.is_object()) bad("found " + shown(d) + ", expected an object");

  int64_t version = whole_field(d, "contract", INT32_MIN, INT32_MAX);
  if (version != kContractVersion) {
    bad("contract version " + std::to_string(version) + ", this driver speaks " + std::to_string(kContractVersion));
  }
  Parameters p;
  std::string role = text_field(d, "role");
  p.local = endpoint_field(d, "local");
  p.remote = endpoint_field(d, "remote");
  check_addresses(p);
  p.device = text_field(d, "device");
  p.dscp = static_cast<int>(whole_field(d, "dscp", 0, 63));
  if (const json* limits = object_field(d, "limits")) {
    p.connect_ms = whole_field(*limits, "connect_ms", INT64_MIN, INT64_MAX);
    p.transfer_ms = whole_field(*limits, "transfer_ms", INT64_MIN, INT64_MAX);
  }
  p.sample_interval_ms = std::min(whole_field(d, "sample_interval_ms", INT64_MIN, INT64_MAX), int64_t{INT32_MAX});
  if (p.sample_interval_ms <= 0) p.sample_interval_ms = 100;
  if (const json* o = object_field(d, "options")) p.options = Options(table, *o);

  if (role == "query") {
    p.role = Parameters::Role::kQuery;
  } else if (role == "server") {
    p.role = Parameters::Role::kServer;
    if (p.local.address.empty() || p.local.port == 0) bad("server needs local.address and local.port 1…65535");
  } else if (role == "client") {
    p.role = Parameters::Role::kClient;
    parse_client(p, d);
  } else {
    bad("role " + shown(role) + ", expected query, server or client");
  }
  return p;
}

}  // namespace linktrial
