package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"linktrial/internal/testkind"
)

// inRoom leaves what killed runs of the tests have left: a process in a session of its
// own, a network namespace, a mount, shared memory and temporary files.
const inRoom = `set -e
ip netns add lt-left
mount -t tmpfs tmpfs /mnt
touch /dev/shm/$1 $TMPDIR/$1 /var/tmp/$1
setsid sleep 7$1 &
trap 'exit 0' TERM
echo ready
while :; do sleep 0.1; done`

// TestRoom kills a run at each of its processes: nothing of it is alive after, nothing of
// it is to be seen from outside, and the next run removes its folders.
func TestRoom(t *testing.T) {
	testkind.OfTest(t, testkind.RealTime, "starts and kills processes")
	if os.Geteuid() != 0 {
		t.Fatal("needs root: makes namespaces")
	}
	room, err := filepath.Abs("../../scripts/test-room")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who    string
		depth  int // below the caller
		signal syscall.Signal
		leaves bool // its folders, for the next one to remove
	}{
		{"who called it", 0, syscall.SIGKILL, false},
		{"the room", 1, syscall.SIGKILL, true},
		{"unshare", 2, syscall.SIGKILL, false},
		{"its first process", 3, syscall.SIGKILL, false},
		{"the command", 4, syscall.SIGKILL, false},
		{"the room, which is asked to end", 1, syscall.SIGTERM, false},
	} {
		t.Run(c.who, func(t *testing.T) {
			mark := strconv.FormatInt(time.Now().UnixNano()%1e9, 10)
			// make has a shell between itself and the room; the second command keeps it. No
			// file: a room in this one has temporary folders of its own.
			cmd := exec.Command("bash", "-c", `"$0" bash -c "$1" bash "$2"; true`, room, inRoom, mark)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ready := make([]byte, 6)
			if _, err := out.Read(ready); err != nil || string(ready) != "ready\n" {
				t.Fatalf("%q, %v", ready, err)
			}
			if err := syscall.Kill(descendant(t, cmd.Process.Pid, c.depth), c.signal); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			for began := time.Now(); len(mentioning(t, mark)) > 0; time.Sleep(20 * time.Millisecond) {
				if time.Since(began) > time.Minute {
					t.Fatalf("still alive: %v", mentioning(t, mark))
				}
			}
			after, err := exec.Command(room, "true").CombinedOutput()
			if err != nil {
				t.Fatalf("the next one: %v: %s", err, after)
			}
			if says := bytes.Contains(after, []byte("removed, of a run that was killed")); says != c.leaves {
				t.Errorf("the next one says %q, expected to say that it removed something: %v", after, c.leaves)
			}
			for _, path := range []string{"/dev/shm/" + mark, "/var/tmp/" + mark, "/run/netns/lt-left"} {
				if _, err := os.Stat(path); err == nil {
					t.Errorf("%s is left", path)
				}
			}
			found, _ := exec.Command("find", "/tmp", "/var/tmp", "-name", mark).Output()
			if len(found) > 0 {
				t.Errorf("left: %s", found)
			}
		})
	}
}

// descendant is the first child of the first child and so on, so deep.
func descendant(t *testing.T, pid, depth int) int {
	t.Helper()
	for range depth {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(pid) + "/children")
		if err != nil {
			t.Fatal(err)
		}
		children := strings.Fields(string(b))
		if len(children) == 0 {
			t.Fatalf("process %d has no child", pid)
		}
		if pid, err = strconv.Atoi(children[0]); err != nil {
			t.Fatal(err)
		}
	}
	return pid
}

// mentioning are the processes with a word in their command lines.
func mentioning(t *testing.T, word string) (out []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(word)) {
			out = append(out, path+": "+string(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
		}
	}
	return out
}
