package vitals

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Use is what a process uses at one moment: its vitals, and what the kernel says.
type Use struct {
	Vitals
	MemoryBytes int64 `json:"memory_bytes"` // as of [Memory]
	Threads     int   `json:"threads"`
	Files       int   `json:"files"` // open ones
}

// UseOf tells what a process uses that has folder in its environment. Of a process
// that is not this program's, folder is empty, and the vitals stay zero.
func UseOf(folder string, pid int) (u Use, err error) {
	if folder != "" {
		if u.Vitals, err = Of(folder, pid); err != nil {
			return Use{}, err
		}
	}
	u.MemoryBytes, u.Threads, u.Files = Memory(pid), entries(pid, "task"), entries(pid, "fd")
	return u, nil
}

// Add adds the use of another process.
func (u Use) Add(o Use) Use {
	u.Goroutines += o.Goroutines
	u.HeapBytes += o.HeapBytes
	u.MemoryBytes += o.MemoryBytes
	u.Threads += o.Threads
	u.Files += o.Files
	return u
}

// Memory returns a process's memory in bytes, with its share of shared pages
// (proc_pid_smaps_rollup(5), Pss); zero for a process that has gone. A kernel that
// does not count shares, as that of the virtual-time lab, gives all resident pages.
func Memory(pid int) int64 {
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid)); err == nil {
		return kibibytes(string(b), "Pss:")
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	return kibibytes(string(b), "VmRSS:")
}

// kibibytes returns the value of the line of that name, in bytes; zero where there is
// none.
func kibibytes(text, name string) int64 {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return n << 10
			}
		}
	}
	return 0
}

// entries counts the entries of a folder of a process; none where it has gone.
func entries(pid int, folder string) int {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", pid, folder))
	if err != nil {
		return 0
	}
	return len(list)
}
