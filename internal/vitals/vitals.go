// Package vitals tells of a process of this program how many goroutines it has and
// how much memory their values take: what no file of the kernel says, and what must
// not grow over days. A process answers only where the environment asks it to.
package vitals

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"
)

// FolderVariable names a folder. A process with it in its environment has a socket
// there that answers [Of].
const FolderVariable = "LINKTRIAL_VITALS"

// Vitals are values of a process at one moment.
type Vitals struct {
	Goroutines int    `json:"goroutines"`
	HeapBytes  uint64 `json:"heap_bytes"` // of reachable values, after a collection
}

// Serve answers [Of] for this process until it ends, where the environment asks for
// it. A process that cannot does its work without.
func Serve() {
	dir := os.Getenv(FolderVariable)
	if dir == "" {
		return
	}
	l, err := net.Listen("unix", socketOf(dir, os.Getpid()))
	if err != nil {
		return
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			answer(c)
		}
	}()
}

// answer writes the vitals of now, without the goroutine that does.
func answer(c net.Conn) {
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return
	}
	// Garbage is no growth, and how much there is depends on the moment.
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	// A reader that has gone needs no answer.
	_ = json.NewEncoder(c).Encode(Vitals{Goroutines: runtime.NumGoroutine() - 1, HeapBytes: m.HeapAlloc})
}

// Of asks a process for its vitals, with that folder in its environment. It blocks
// for at most ten seconds.
func Of(dir string, pid int) (Vitals, error) {
	var v Vitals
	c, err := net.DialTimeout("unix", socketOf(dir, pid), 5*time.Second)
	if err != nil {
		return v, fmt.Errorf("vitals of process %d: %w", pid, err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return v, fmt.Errorf("vitals of process %d: %w", pid, err)
	}
	if err := json.NewDecoder(c).Decode(&v); err != nil {
		return v, fmt.Errorf("vitals of process %d: %w", pid, err)
	}
	return v, nil
}

func socketOf(dir string, pid int) string {
	return filepath.Join(dir, strconv.Itoa(pid)+".sock")
}
