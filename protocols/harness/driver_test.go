package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"linktrial/protocols/contract"
)

func TestCodes(t *testing.T) {
	for _, c := range []struct {
		err        error
		code, dial contract.Code
	}{
		{io.EOF, contract.CodeReset, contract.CodeReset},
		{&net.OpError{Err: os.NewSyscallError("read", syscall.ECONNRESET)}, contract.CodeReset, contract.CodeReset},
		{syscall.EHOSTUNREACH, contract.CodeUnreachable, contract.CodeUnreachable},
		{syscall.ETIMEDOUT, contract.CodeReset, contract.CodeConnectTimeout},
		{fmt.Errorf("x: %w", Unsupported("y")), contract.CodeUnsupported, contract.CodeUnsupported},
		{context.DeadlineExceeded, contract.CodeInternal, contract.CodeConnectTimeout},
		{errors.New("?"), contract.CodeInternal, contract.CodeInternal},
	} {
		if got := codeOf(c.err, contract.CodeInternal); got != c.code {
			t.Errorf("%v: %s, expected %s", c.err, got, c.code)
		}
		if got := dialCode(c.err); got != c.dial {
			t.Errorf("dial: %v: %s, expected %s", c.err, got, c.dial)
		}
	}
}

// A connection that its limit ended is said to be that, and to whom; another cause is kept.
func TestConnectTimeoutInWords(t *testing.T) {
	p := &contract.Parameters{Remote: contract.Endpoint{Address: "10.9.0.3", Port: 5001}, Limits: contract.Limits{ConnectMS: 5000}}
	for cause, want := range map[error]string{
		context.DeadlineExceeded: "no connection to 10.9.0.3:5001 within limits.connect_ms (5000 ms)",
		&net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}: "no connection to 10.9.0.3:5001 within limits.connect_ms (5000 ms)",
		errors.New("the handshake was not answered"):                      "no connection to 10.9.0.3:5001 within limits.connect_ms (5000 ms): the handshake was not answered",
	} {
		err := connectTimeout(p, cause)
		if err.Error() != want || dialCode(err) != contract.CodeConnectTimeout {
			t.Errorf("%v: %v (%s), want %s", cause, err, dialCode(err), want)
		}
	}
}
