package arrival

import (
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Datagrams over the loopback interface arrive after they were sent and before they
// are read, in order, and a wait without one ends.
func TestReceive(t *testing.T) {
	to, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(to) }()
	if err := Enable(to); err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(to, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(to)
	if err != nil {
		t.Fatal(err)
	}
	send := func() {
		t.Helper()
		if err := unix.Sendto(to, []byte("?"), 0, name); err != nil {
			t.Fatal(err)
		}
	}
	awaitTimes(t, to, send)
	began := Now()
	for range 3 {
		send()
	}
	got, err := Receive(to, 4, 50*time.Millisecond)
	if err != nil || len(got) != 3 {
		t.Fatalf("%v, %v; expected three times", got, err)
	}
	for i, at := range append(got, Now()) {
		if at < began {
			t.Errorf("time %d is %s before the preceding one", i, began-at)
		}
		began = at
	}
}

// awaitTimes returns when the kernel notes times of arrival: until then, a datagram has the
// time at which it is read, which is after the pause.
func awaitTimes(t *testing.T, fd int, send func()) {
	t.Helper()
	for range 1000 {
		send()
		sent := Now()
		time.Sleep(5 * time.Millisecond)
		got, err := Receive(fd, 1, time.Second)
		if err != nil || len(got) != 1 {
			t.Fatalf("%v, %v; expected one time", got, err)
		}
		if got[0] <= sent {
			return
		}
	}
	t.Fatal("the kernel notes no times of arrival")
}

// Control messages that end before the length that their header states are an error.
func TestOfRefusesWhatIsCut(t *testing.T) {
	if _, there, err := Of(nil); there || err != nil {
		t.Errorf("no control message: %t, %v", there, err)
	}
	cut := make([]byte, unix.CmsgSpace(16))
	binary.NativeEndian.PutUint64(cut, uint64(len(cut)+1))
	if _, there, err := Of(cut); there || err == nil {
		t.Errorf("a header that states more than there is: %t, %v", there, err)
	}
}
