package people

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// endless is a stream without a line's end; it counts what was read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) { e.read += len(p); return len(p), nil }

func TestPasswordsFromAStream(t *testing.T) {
	p := &passwords{lines: bufio.NewReaderSize(strings.NewReader("now\r\nnext"), maxLine)}
	for _, want := range []string{"now", "next"} {
		got, err := p.ask("Password", true)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := p.ask("New password", true)
	require.ErrorContains(t, err, "new password: expected a line on standard input")

	var e endless
	p = &passwords{lines: bufio.NewReaderSize(&e, maxLine)}
	_, err = p.ask("Password of anna", false)
	require.EqualError(t, err, "password of anna: the line on standard input is longer than 4 KiB, expected a password alone")
	require.LessOrEqual(t, e.read, maxLine)
}
