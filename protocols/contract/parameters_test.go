package contract

import (
	"encoding/json"
	"strings"
	"testing"
)

const (
	goodServer = `{"contract":2,"role":"server","local":{"address":"10.77.0.3","port":7001},"options":{},"limits":{"connect_ms":1,"transfer_ms":1},"sample_interval_ms":50}`
	goodClient = `{"contract":2,"role":"client","local":{"address":"10.77.0.1"},"remote":{"address":"10.77.0.3","port":7001},` +
		`"transfer":{"id":"` + vectorID + `","size_bytes":1024,"seed":"18446744073709551615"},"options":{"a":1},"limits":{"connect_ms":1,"transfer_ms":1}}`
	goodRelay = `{"contract":2,"role":"relay","local":{"address":"10.77.0.2","port":7101},"remote":{"address":"10.77.0.3","port":7001},"options":{},"limits":{"connect_ms":1,"transfer_ms":1}}`
	goodQuery = `{"contract":2,"role":"query"}`
)

func TestParseParameters(t *testing.T) {
	p, err := ParseParameters([]byte(goodClient))
	if err != nil {
		t.Fatal(err)
	}
	if p.Transfer.Seed != 1<<64-1 || p.SampleIntervalMS != 100 || p.Remote.Port != 7001 {
		t.Errorf("read %+v", p)
	}
	bounded := strings.Replace(goodClient, `"seed"`, `"duration_ms":100000,"seed"`, 1)
	if p, err = ParseParameters([]byte(bounded)); err != nil || p.Transfer.DurationMS != 100_000 {
		t.Errorf("read %+v, %v", p, err)
	}
	logs := strings.Replace(goodClient, `"options"`, `"log_folder":"/var/logs","options"`, 1)
	if p, err = ParseParameters([]byte(logs)); err != nil || p.LogFile(vectorID, "sqlog") != "/var/logs/"+vectorID+".client.sqlog" {
		t.Errorf("read %+v, %v", p, err)
	}
	for _, good := range []string{goodQuery, goodRelay} {
		if _, err = ParseParameters([]byte(good)); err != nil {
			t.Error(err)
		}
	}
	swap := func(s, old, with string) string {
		if !strings.Contains(s, old) {
			t.Fatalf("%s has no %s", s, old)
		}
		return strings.Replace(s, old, with, 1)
	}
	for s, want := range map[string]string{
		``:                                "parameters:",
		goodQuery + goodQuery:             "parameters:",
		`{"role":"query"}`:                "contract version 0",
		`{"contract":1,"role":"query"}`:   "contract version 1",
		`{"contract":2,"role":"client "}`: "role",
		swap(goodServer, `"options"`, `"log_folder":"logs","options"`):     "log_folder",
		`{"contract":2,"role":"router"}`:                                   "query, server, client or relay",
		swap(goodRelay, "7101", "0"):                                       "relay needs local and remote",
		swap(goodRelay, "7001", "65536"):                                   "relay needs local and remote",
		swap(goodRelay, "10.77.0.2", ""):                                   "relay needs local and remote",
		swap(goodRelay, "10.77.0.3", ""):                                   "relay needs local and remote",
		swap(goodServer, "7001", "0"):                                      "local.port",
		swap(goodServer, "7001", "65536"):                                  "local.port",
		swap(goodServer, "10.77.0.3", ""):                                  "local.address",
		swap(goodServer, "10.77.0.3", "fe80::1%radio0"):                    `local.address is "fe80::1%radio0", expected an IP address without a zone`,
		swap(goodServer, "10.77.0.3", "localhost"):                         "local.address",
		swap(goodClient, `"address":"10.77.0.3"`, `"address":"fe80::1%2"`): "remote.address",
		swap(goodClient, "10.77.0.1", "fd77::1"):                           "expected addresses of one family",
		swap(goodServer, `"options":{}`, `"options":[]`):                   "parameters:",
		swap(goodClient, `"address":"10.77.0.3"`, `"address":""`):          "remote.address",
		swap(goodClient, `"size_bytes":1024`, `"size_bytes":-1`):           "size_bytes",
		swap(goodClient, `1024`, `1099511627777`):                          "size_bytes",
		swap(bounded, `100000`, `-1`):                                      "duration_ms",
		swap(bounded, `100000`, `9223372036854775807`):                     "duration_ms",
		swap(goodClient, `18446744073709551615`, `18446744073709551616`):   "parameters:",
		swap(goodClient, `"18446744073709551615"`, `7`):                    "parameters:",
		swap(goodClient, vectorID, "12"):                                   "transfer id",
	} {
		if p, err := ParseParameters([]byte(s)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, expected an error with %q", s, p, err, want)
		}
	}
}

// FuzzParseParameters: what is taken can be written and is taken again, the same.
func FuzzParseParameters(f *testing.F) {
	for _, s := range []string{goodServer, goodClient, goodRelay, goodQuery, strings.Replace(goodClient, `"seed"`, `"duration_ms":1,"seed"`, 1)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParseParameters(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		q, err := ParseParameters(again)
		if err != nil {
			t.Fatalf("%s, written as %s: %v", b, again, err)
		}
		if p.Role != q.Role || p.Transfer != q.Transfer || p.Limits != q.Limits {
			t.Fatalf("%s, written as %s, is another", b, again)
		}
	})
}
