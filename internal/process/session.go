package process

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// PreferSession gives all processes of this process's session together the share of the
// processors that one process of that nice value (-20 to 19) has. Linux with automatic
// groups (sched(7), CONFIG_SCHED_AUTOGROUP) divides the processors among sessions
// first, so that there a nice value only counts within one.
//
// It returns an error where this process does not lead its session, because the value
// would then be that of a user's terminal too, where the kernel has no such groups, and
// where they may not be changed (values below 0 need CAP_SYS_NICE).
func PreferSession(nice int) error {
	if sid, err := unix.Getsid(0); err != nil || sid != os.Getpid() {
		return fmt.Errorf("process %d does not lead its session", os.Getpid())
	}
	return os.WriteFile("/proc/self/autogroup", []byte(strconv.Itoa(nice)), 0o644)
}
