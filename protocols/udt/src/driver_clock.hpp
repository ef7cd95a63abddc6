// libudt's clock.
#pragma once

namespace linktrial {

// Lets libudt take its time from the system's clock, or from the processor's
// time-stamp counter as it does by itself. Before UDT::startup.
void use_system_clock();
void use_time_stamp_counter();


}  // namespace linktrial
