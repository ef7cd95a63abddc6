package request

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
)

func TestEveryNamedFieldExists(t *testing.T) {
	for name := range kinds {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(apiPackage) + name)
		require.NoError(t, err, name)
		f, ok := d.(protoreflect.FieldDescriptor)
		require.True(t, ok, name)
		require.True(t, f.Kind() == protoreflect.StringKind || f.IsMap(), name)
	}
}

func TestCheck(t *testing.T) {
	long := strings.Repeat("x", maxText+1)
	for name, c := range map[string]struct {
		m    proto.Message
		want string // the error; empty: none
	}{
		"in order":                  {&linktrialv1.AbortRunRequest{RunId: "a-1", Reason: "one\n\ttwo"}, ""},
		"NUL":                       {&linktrialv1.GetRunRequest{RunId: "a\x00"}, "run_id has the control character U+0000 at byte 1: expected text without control characters"},
		"escape in text":            {&linktrialv1.AbortRunRequest{Reason: "\x1b[2J"}, "reason has the control character U+001B"},
		"a line break in a line":    {&linktrialv1.GetRunRequest{RunId: "a\nb"}, "run_id has the control character U+000A"},
		"long":                      {&linktrialv1.GetRunRequest{RunId: long}, "run_id has 10001 bytes, expected at most 1000"},
		"long text":                 {&linktrialv1.AbortRunRequest{Reason: long}, "reason has 10001 bytes, expected at most 10000"},
		"invalid UTF-8":             {&linktrialv1.GetRunRequest{RunId: "\xff"}, "run_id is not valid UTF-8"},
		"in a list":                 {&linktrialv1.SummarizeRequest{Ids: []string{"a", "\x07"}}, "ids[1] has the control character U+0007"},
		"a long list":               {&linktrialv1.SummarizeRequest{Ids: make([]string, maxList+1)}, "ids has 1001 elements, expected at most 1000"},
		"nested":                    {&linktrialv1.RegisterRequest{Drivers: []*linktrialv1.DriverState{{Name: "a"}, {Name: "\x00"}}}, "drivers[1].name has the control character"},
		"a secret may be anything":  {&linktrialv1.LoginRequest{Password: "\x00\x1b"}, ""},
		"but not of any length":     {&linktrialv1.LoginRequest{Password: long}, "password has 10001 bytes"},
		"a mebibyte of a file name": {&linktrialv1.CheckPlanRequest{File: strings.Repeat("x", 1<<20)}, "file has 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := message(c.m.ProtoReflect(), "")
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// What programs on a node wrote is cleaned, wherever it is.
func TestReportsAreCleaned(t *testing.T) {
	m := &linktrialv1.RegisterRequest{Name: "client", Kernel: "6.1\x00", Drivers: []*linktrialv1.DriverState{
		{Name: "a", Unsupported: "no \x1b[31mmodule\x1b[0m", Choices: map[string]string{"x\x07": "\x00y"}}}}
	require.NoError(t, message(m.ProtoReflect(), ""))
	require.Equal(t, "6.1�", m.Kernel)
	require.Equal(t, "no �[31mmodule�[0m", m.Drivers[0].Unsupported)
	require.Equal(t, map[string]string{"x�": "�y"}, m.Drivers[0].Choices)
}

func FuzzClean(f *testing.F) {
	f.Add("plain", 100)
	f.Add("\x1b[31m\x00\xff", 3)
	f.Add("ééééé€", 7)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = 3 + max(0, most)%1000
		got := Clean(s, most)
		require.LessOrEqual(t, len(got), max(most, 0)+0)
		require.True(t, utf8.ValidString(got))
		require.False(t, strings.ContainsFunc(got, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }))
		require.Equal(t, got, Clean(got, most), "cleaning once is enough")
	})
}

// Whatever a request's bytes are, a handler gets texts within their bounds, or an
// error that names a field.
func FuzzRequest(f *testing.F) {
	good, err := proto.Marshal(&linktrialv1.RegisterRequest{Name: "client", Role: "client", Kernel: "6.1", Drivers: []*linktrialv1.DriverState{{Name: "tcp", Choices: map[string]string{"a": "b"}}}})
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte{0x0a, 0x02, 0xff, 0xfe})
	f.Add([]byte("\x0a\x03a\x00b"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(linktrialv1.RegisterRequest)
		if (binaryCodec{}).Unmarshal(b, m) != nil || Check(m) != nil {
			return
		}
		for _, s := range []string{m.Name, m.Kernel, m.Host} {
			require.True(t, utf8.ValidString(s) && !strings.ContainsRune(s, 0))
		}
		require.NoError(t, Check(m), "a checked request is in order")
	})
}
