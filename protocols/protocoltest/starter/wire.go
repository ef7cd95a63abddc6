package starter

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// variable has this program be a starter.
const variable = "LINKTRIAL_DRIVER_STARTER"

// socketFD is the starter's end of the socket.
const socketFD = 3

// maxMessage bounds a message, in bytes: a command with its environment.
const maxMessage = 256 << 10

// mostFiles is the most files of a message.
const mostFiles = 4

// request starts a program, with the files of its standard input, output and error, and
// that of its network namespace where it has one.
type request struct {
	ID      int     `json:"id"`
	Program Program `json:"program"`
}

// reply says what became of a program: that it could not be started, that it was, with its
// pidfd, or that it has ended.
type reply struct {
	ID     int    `json:"id"`
	Error  string `json:"error,omitempty"`
	Ended  bool   `json:"ended,omitempty"`
	Status uint32 `json:"status,omitempty"` // as wait(2) has it
}

// send sends a message with files, at once.
func send(c *net.UnixConn, message any, files ...*os.File) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("a message of %d bytes, expected at most %d", len(b), maxMessage)
	}
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, _, err = c.WriteMsgUnix(b, rights, nil)
	return err
}

// receive reads the next message into one, and its files.
func receive(c *net.UnixConn, message any) (files []*os.File, err error) {
	b, rights := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*mostFiles))
	n, m, _, _, err := c.ReadMsgUnix(b, rights)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, net.ErrClosed // the other end of a socket of packets has gone
	}
	parts, err := unix.ParseSocketControlMessage(rights[:m])
	for i := range parts {
		fds, perr := unix.ParseUnixRights(&parts[i])
		err = errors.Join(err, perr)
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	if err == nil {
		err = json.Unmarshal(b[:n], message)
	}
	if err != nil {
		closeAll(files)
	}
	return files, err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written
	}
}
