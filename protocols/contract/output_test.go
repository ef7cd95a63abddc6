package contract

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	outputReady = `{"event":"ready","info":{"implementation":"x"}}` + "\n"
	outputBlock = `{"event":"payload","transfer":"000102030405060708090a0b0c0d0e0f","bytes":%d}` + "\n%s"
)

func TestOutput(t *testing.T) {
	o := NewOutput(strings.NewReader(outputReady + fmt.Sprintf(outputBlock, 5, "a\n{\"b") + outputReady + fmt.Sprintf(outputBlock, 3, "cd")))
	e, size, payload, err := o.Next()
	require.NoError(t, err)
	require.Equal(t, KindReady, e.Event)
	require.Equal(t, len(outputReady), size)
	require.Empty(t, payload)
	e, _, payload, err = o.Next()
	require.NoError(t, err)
	require.Equal(t, "000102030405060708090a0b0c0d0e0f", e.Transfer)
	require.Equal(t, "a\n{\"b", string(payload))
	e, _, _, err = o.Next()
	require.NoError(t, err)
	require.Equal(t, KindReady, e.Event)
	_, _, _, err = o.Next()
	require.Equal(t, io.EOF, err, "payload that has not ended")
}

func TestOutputBreaches(t *testing.T) {
	for text, want := range map[string]string{
		"starting up\n":                        `"starting up\n"`,
		strings.Repeat("x", MaxLine+3):         ErrLineTooLong.Error(),
		fmt.Sprintf(outputBlock, 0, ""):        "1 to 1048576",
		fmt.Sprintf(outputBlock, 1048577, ""):  "1 to 1048576",
		`{"event":"payload","bytes":1}` + "\n": `transfer ""`,
	} {
		_, _, _, err := NewOutput(strings.NewReader(text)).Next()
		var breach *BreachError
		require.True(t, errors.As(err, &breach), "%.80q: %v", text, err)
		require.Contains(t, err.Error(), want)
	}
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte(outputReady + fmt.Sprintf(outputBlock, 3, "\n{}") + outputReady))
	f.Fuzz(func(t *testing.T, b []byte) {
		o := NewOutput(strings.NewReader(string(b)))
		for read := 0; ; {
			e, size, payload, err := o.Next()
			if err != nil {
				return
			}
			if read += size + len(payload); read > len(b) || e == nil || (e.Event == KindPayload) != (len(payload) > 0) || len(payload) != e.Bytes && e.Event == KindPayload {
				t.Fatalf("%d of %d bytes, event %+v with %d bytes of payload", read, len(b), e, len(payload))
			}
		}
	})
}
