// The two stacks that can carry an association, behind one interface.
#pragma once

#include <memory>

#include "address.hpp"
#include "backend.hpp"

namespace linktrial {

// How many bytes one user message carries unless an option says otherwise.
// One DATA chunk each: the stacks count outstanding data in chunks, and only
// so can acknowledged bytes be told from it. On the wire it differs from
// larger messages only in the chunks' begin and end bits.
size_t message_bytes(const Parameters& p, uint32_t fragmentation_point);

class Stack {
 public:
  virtual ~Stack() = default;
  virtual Info info() const = 0;
  virtual std::unique_ptr<Listener> listen(const Parameters& p) = 0;
  virtual std::unique_ptr<Stream> connect(const Parameters& p, Nanoseconds deadline, const std::atomic<bool>& stop) = 0;
};

// Whether this kernel opens SCTP sockets; why not, where it does not.
bool kernel_has_sctp(std::string* why);

std::unique_ptr<Stack> kernel_stack();
std::unique_ptr<Stack> userland_stack();

}  // namespace linktrial
