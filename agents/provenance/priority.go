package provenance

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"linktrial/executor/journal"
)

// policies are the names of sched(7), by their numbers.
var policies = map[uint32]string{
	unix.SCHED_NORMAL: "other", unix.SCHED_FIFO: "fifo", unix.SCHED_RR: "rr", unix.SCHED_BATCH: "batch", unix.SCHED_IDLE: "idle", unix.SCHED_DEADLINE: "deadline",
}

// priority reads that of this process; nil: the system does not tell.
func priority() *journal.Priority {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return nil
	}
	p := &journal.Priority{Nice: int(attr.Nice), Policy: policies[attr.Policy]}
	if p.Policy == "" {
		p.Policy = strconv.Itoa(int(attr.Policy)) // newer than this program
	}
	group := field("/proc/self/cgroup", "::", "0")
	if group != "" && !strings.Contains(group, "..") {
		if b, err := os.ReadFile("/sys/fs/cgroup" + group + "/cpu.weight"); err == nil {
			p.CPUWeight = weight(b)
		}
	}
	return p
}

// weight is that of a group's cpu.weight; 0: it is none.
func weight(b []byte) int {
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 1 || n > 10000 {
		return 0
	}
	return n
}
