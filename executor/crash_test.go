package executor

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCrash(t *testing.T) {
	t.Parallel()
	signal := func(s syscall.Signal) Exit { return Exit{Code: -1, Signal: s.String()} }
	for name, c := range map[string]struct {
		exit Exit
		log  string
		want string
	}{
		"segmentation fault":      {signal(syscall.SIGSEGV), "", "signal: segmentation fault"},
		"assertion":               {signal(syscall.SIGABRT), "driver: x.c:7: f: Assertion `0' failed.", "signal: aborted"},
		"bus error":               {signal(syscall.SIGBUS), "", "signal: bus error"},
		"division":                {signal(syscall.SIGFPE), "", "signal: floating point exception"},
		"illegal instruction":     {signal(syscall.SIGILL), "", "signal: illegal instruction"},
		"trap":                    {signal(syscall.SIGTRAP), "", "signal: trace/breakpoint trap"},
		"panic":                   {Exit{Code: 2}, "one line\npanic: runtime error: index out of range [3]\n\ngoroutine 7 [running]:\n", "panic: runtime error: index out of range [3]"},
		"fatal error":             {Exit{Code: 2}, "fatal error: concurrent map writes\n", "fatal error: concurrent map writes"},
		"signal that Go reported": {Exit{Code: 2}, "SIGABRT: abort\nPC=0x4706e1 m=0 sigcode=0\n", "SIGABRT: abort"},
		"exit code 2 of others":   {Exit{Code: 2}, "usage: driver\n", ""},
		"panic in a log alone":    {Exit{Code: 1}, "panic: recovered\n", ""},
		"killed from outside":     {signal(syscall.SIGKILL), "", ""},
		"told to stop":            {signal(syscall.SIGTERM), "", ""},
		"engine ended":            {Exit{Code: -1, Signal: SignalLost}, "", ""},
		"over its memory":         {Exit{Code: -1, Signal: "killed", OverMemory: true}, "", ""},
		"in order":                {Exit{}, "", ""},
	} {
		require.Equal(t, c.want, c.exit.crash(c.log), name)
		// None is taken for both: a crash and an end from outside.
		require.False(t, c.want != "" && c.exit.outside(), name)
	}
}
