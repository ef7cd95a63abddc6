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
