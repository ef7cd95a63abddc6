package protocoltest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// group are the threads of a driver and of its children, as folders of /proc.
func (s *suite) group(p *proc) []string {
	ids := []int{p.process.PID}
	for _, id := range s.net.inhabitants() {
		if g, err := unix.Getpgid(id.PID); err == nil && g == p.process.PID && id.PID != g {
			ids = append(ids, id.PID)
		}
	}
	var out []string
	for _, id := range ids {
		dir := fmt.Sprintf("/proc/%d/task", id)
		threads, _ := os.ReadDir(dir)
		for _, t := range threads {
			out = append(out, dir+"/"+t.Name())
		}
	}
	return out
}

// pause stops a driver's processes (SIGSTOP) and returns a moment at which all
// of them had stopped.
func (s *suite) pause(ctx context.Context, p *proc) (time.Time, error) {
	if err := unix.Kill(-p.process.PID, unix.SIGSTOP); err != nil {
		return time.Time{}, fmt.Errorf("stop the %s: %w", p.name, err)
	}
	for began := time.Now(); ; {
		running := ""
		for _, thread := range s.group(p) {
			if b, err := os.ReadFile(thread + "/stat"); err == nil && !stoppedThread(b) {
				running = thread
			}
		}
		switch {
		case running == "":
			return time.Now(), nil
		case ctx.Err() != nil:
			return time.Time{}, ctx.Err()
		case time.Since(began) > s.o.waits.ready:
			return time.Time{}, fmt.Errorf("the %s does not stop by SIGSTOP: %s still runs after %s", p.name, running, time.Since(began).Round(time.Millisecond))
		}
		select {
		case <-time.After(time.Millisecond):
		case <-p.ended:
			return time.Time{}, fmt.Errorf("the %s ended (%s) instead of being stopped%s", p.name, p.ending(), p.lastError())
		}
	}
}

// resume lets them go on, and returns a moment before.
func (p *proc) resume() time.Time {
	at := time.Now()
	_ = unix.Kill(-p.process.PID, unix.SIGCONT)
	return at
}

// stoppedThread reads the state in a thread's stat (proc(5)): the field after
// the name, which is in parentheses and may have any character in it. A thread
// that is about to end counts as stopped.
func stoppedThread(stat []byte) bool {
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && i+2 < len(stat) && bytes.IndexByte([]byte("TtXZ"), stat[i+2]) >= 0
}
