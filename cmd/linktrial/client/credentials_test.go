package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// FuzzParseCredentials: every token that is taken can be the header of a call.
func FuzzParseCredentials(f *testing.F) {
	f.Add(`{"orchestrators":{"https://a:8443":{"user":"anna","token":"lt_abcDEF-_0123"}}}`)
	f.Add(`{"orchestrators":{"https://a":{"token":"x\r\nY: z"}}}`)
	f.Add(`{"orchestrators":null}`)
	f.Add(`{}`)
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := parseCredentials([]byte(text))
		if err != nil {
			if len(c.Orchestrators) > 0 {
				t.Fatal("credentials beside an error")
			}
			return
		}
		for _, one := range c.Orchestrators {
			r, err := http.NewRequest(http.MethodGet, "http://a", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+one.Token)
			var b strings.Builder
			if err := r.Write(&b); err != nil || strings.Count(b.String(), "\n") != 5 {
				t.Fatalf("token %q: %q, %v", one.Token, b.String(), err)
			}
		}
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseCredentials(b)
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%+v was %+v: %v", again, c, err)
		}
	})
}

// What is no file of credentials is refused by its kind or its size, without reading
// it whole or waiting for a writer.
func TestCredentialsAreBounded(t *testing.T) {
	for want, harm := range map[string]func(path string) error{
		"is 100 GiB long, expected at most 1 MiB": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 100<<30))
		},
		"is a named pipe, expected a regular file": func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"other users can read": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o644)) // whatever the umask is
		},
		"is a folder, expected a regular file":            func(path string) error { return os.Mkdir(path, 0o700) },
		"unexpected end of JSON input: remove it and log": func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		for _, mask := range []int{0o022, 0o077} {
			t.Run(fmt.Sprintf("%s, umask %03o", want, mask), func(t *testing.T) {
				old := syscall.Umask(mask)
				defer syscall.Umask(old)
				t.Setenv("XDG_CONFIG_HOME", t.TempDir())
				path, err := credentialsPath()
				if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), harm(path)); err != nil {
					t.Fatal(err)
				}
				if _, err = ReadCredentials(); err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), path) != 1 {
					t.Fatalf("%v, expected %q and the path once", err, want)
				}
			})
		}
	}
}

// A --ca that is no file of certificates is named, with what it is.
func TestAuthoritiesAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Trust{CAFile: path}.pool("a:1")
	if want := "--ca: " + path + " is a named pipe, expected a regular file"; err == nil || err.Error() != want {
		t.Fatalf("%v, expected %q", err, want)
	}
}
