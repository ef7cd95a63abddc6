package cxxtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"linktrial/internal/payload"
	"linktrial/protocols/contract"
	"linktrial/protocols/protocoltest"
)

// CheckGarbage feeds a driver what is no document of the contract: each must
// end with one error event, bad-parameters, and exit code 1.
func CheckGarbage(t *testing.T, d *Driver) {
	for name, document := range garbage(t, d) {
		t.Run(name, func(t *testing.T) { refused(t, d, []byte(document)) })
	}
	// Bytes turned over at random: whatever it makes of them, the driver ends by
	// itself, with lines that are events. As a query, it opens nothing.
	query := Document(t, d.Parameters(contract.RoleQuery, 7000))
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		b := bytes.Clone(query)
		for range 1 + rnd.IntN(4) {
			b[rnd.IntN(len(b))] = byte(rnd.Uint32())
		}
		if bytes.Contains(b, []byte(`"server"`)) || bytes.Contains(b, []byte(`"client"`)) {
			continue
		}
		if _, code := d.Start(t, b).Wait(); code != contract.ExitOK && code != contract.ExitFailed {
			t.Errorf("exit code %d for %q", code, b)
		}
	}
}

// garbage is documents that a driver must refuse, by what is wrong with them.
func garbage(t *testing.T, d *Driver) map[string]string {
	good := string(Document(t, d.Parameters(contract.RoleClient, 7000)))
	with := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%s is not in %s", old, good)
		}
		return strings.Replace(good, old, new, 1)
	}
	return map[string]string{
		"nothing":             "",
		"text":                "hello",
		"cut":                 good[:len(good)/2],
		"two documents":       good + good,
		"list":                "[]",
		"null":                "null",
		"number":              "1e999",
		"not UTF-8":           with(`"lo"`, "\"\xff\xfe\""),
		"deep":                strings.Repeat("[", 100_000),
		"deep objects":        strings.Repeat(`{"a":`, 100_000),
		"too long":            good + strings.Repeat(" ", 1<<20),
		"no role":             with(`"role":"client"`, `"role":""`),
		"other role":          with(`"role":"client"`, `"role":"router"`),
		"role a number":       with(`"role":"client"`, `"role":7`),
		"contract 1":          with(`"contract":2`, `"contract":1`),
		"contract missing":    with(`"contract":2,`, ``),
		"contract a fraction": with(`"contract":2`, `"contract":2.5`),
		"port too large":      with(`"port":7000`, `"port":70000`),
		"port negative":       with(`"port":7000`, `"port":-1`),
		"port zero":           with(`"port":7000`, `"port":0`),
		"no address":          with(`"remote":{"address":"127.0.0.1"`, `"remote":{"address":""`),
		"address a name":      with(`"remote":{"address":"127.0.0.1"`, `"remote":{"address":"localhost"`),
		"address with NUL":    with(`"remote":{"address":"127.0.0.1"`, `"remote":{"address":"127.0.0.1\u0000"`),
		"mixed families":      with(`"remote":{"address":"127.0.0.1"`, `"remote":{"address":"::1"`),
		"remote a list":       with(`"remote":{`, `"remote":[],"remote_":{`),
		"transfer id short":   with(Transfer, Transfer[1:]),
		"transfer id upper":   with(Transfer, strings.ToUpper(Transfer)),
		"transfer id text":    with(Transfer, strings.Repeat("g", 32)),
		"size negative":       with(`"size_bytes":100000`, `"size_bytes":-1`),
		"size too large":      with(`"size_bytes":100000`, fmt.Sprintf(`"size_bytes":%d`, uint64(1<<63))),
		"size a fraction":     with(`"size_bytes":100000`, `"size_bytes":1e5`),
		"duration negative":   with(`"size_bytes":100000`, `"size_bytes":100000,"duration_ms":-1`),
		"duration too long":   with(`"size_bytes":100000`, `"size_bytes":100000,"duration_ms":31536000001`),
		"duration a fraction": with(`"size_bytes":100000`, `"size_bytes":100000,"duration_ms":1.0`),
		"duration text":       with(`"size_bytes":100000`, `"size_bytes":100000,"duration_ms":"5"`),
		"duration wraps":      with(`"size_bytes":100000`, `"size_bytes":100000,"duration_ms":18446744073709551616`),
		"size text":           with(`"size_bytes":100000`, `"size_bytes":"100000"`),
		"options a list":      with(`"options":{}`, `"options":[]`),
		"unknown option":      with(`"options":{}`, `"options":{"no_such_option":1}`),
		"unknown long option": with(`"options":{}`, `"options":{"`+strings.Repeat("x", 200_000)+`":1}`),
		"limits a number":     with(`"limits":{`, `"limits":3,"limits_":{`),
		"interval text":       with(`"sample_interval_ms":100`, `"sample_interval_ms":"100"`),
	}
}

func refused(t *testing.T, d *Driver, document []byte) {
	t.Helper()
	events, code := d.Start(t, document).Wait()
	e := Only(t, events, contract.KindError)
	if e.Code != contract.CodeBadParameters || e.Message == "" || code != contract.ExitFailed {
		t.Errorf("exit code %d and %s (%s), expected %d and %s", code, e.Code, e.Message, contract.ExitFailed, contract.CodeBadParameters)
	}
}

// CheckOptions holds the manifest's options against the program's: defaults
// and bounds are accepted, what is beyond them or of another type is refused.
func CheckOptions(t *testing.T, d *Driver) {
	try := func(name string, value any, taken bool) {
		t.Helper()
		p := d.Parameters(contract.RoleQuery, 0)
		p.Options[name] = value
		document := Document(t, p)
		if !taken {
			refused(t, d, document)
			return
		}
		events, code := d.Start(t, document).Wait()
		if code == contract.ExitUnsupported {
			return // this node lacks what the value asks for, which is another matter
		}
		if code != contract.ExitOK {
			t.Errorf("%s: %v is refused: %s", name, value, Only(t, events, contract.KindError).Message)
		}
	}
	for _, o := range d.Manifest.Options {
		t.Run(o.Name, func(t *testing.T) {
			if o.Default != nil {
				try(o.Name, o.Default, true)
			}
			switch o.Type {
			case contract.TypeString:
				for _, c := range o.Choices {
					try(o.Name, c, true)
				}
				try(o.Name, "no such choice", false)
				try(o.Name, 1, false)
			case contract.TypeBool:
				try(o.Name, true, true)
				try(o.Name, "true", false)
			default:
				if o.Min == nil || o.Max == nil {
					t.Fatalf("option %s has no bounds", o.Name)
				}
				if o.Name != "rto_initial" && o.Name != "rto_min" && o.Name != "rto_max" { // these bind each other
					try(o.Name, *o.Min, true)
					try(o.Name, *o.Max, true)
				}
				try(o.Name, *o.Min-1, false)
				try(o.Name, *o.Max+1, false)
				try(o.Name, "1", false)
				if o.Type != contract.TypeDuration {
					try(o.Name, *o.Min+0.5, false)
				}
			}
		})
	}
}

// CheckConformance runs the quick conformance suite without some checks, in
// parts at the same time: it is mostly waiting.
func CheckConformance(t *testing.T, d *Driver, without ...string) {
	// These look at what the other checks' processes did.
	always := []string{"output", "exit-codes", "children"}
	names := slices.DeleteFunc(protocoltest.Selected(d.Manifest, nil), func(n string) bool {
		return slices.Contains(without, n) || slices.Contains(always, n)
	})
	const parts = 4
	for part := range parts {
		only := slices.Clone(always)
		for i := part; i < len(names); i += parts {
			only = append(only, names[i])
		}
		t.Run(fmt.Sprintf("part %d of %d", part+1, parts), func(t *testing.T) {
			t.Parallel()
			_, err := protocoltest.Run(t.Context(), protocoltest.Target{Manifest: d.Manifest, Dir: d.Dir}, protocoltest.Options{
				Quick: true, Only: only, Patience: Hang,
				Progress: func(c protocoltest.Check) {
					t.Logf("%-8s %-18s %6.2f s  %s", c.Outcome, c.Name, c.Elapsed.Seconds(), c.Detail)
					if c.Outcome == protocoltest.Failed {
						t.Errorf("%s: %s", c.Name, c.Detail)
					}
				},
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// CheckTransfer holds a client's and a server's events of one good transfer
// against the contract. The size of one that a time bounds is what the client
// says it is.
func CheckTransfer(t *testing.T, p *contract.Parameters, client, server []*contract.Event) (c, s *contract.Result) {
	t.Helper()
	size := p.Transfer.SizeBytes
	if p.Transfer.DurationMS > 0 {
		if size = Only(t, client, contract.KindResult).Result.SizeBytes; size > p.Transfer.SizeBytes {
			t.Errorf("%d bytes of %d at most", size, p.Transfer.SizeBytes)
		}
	}
	digest := payload.NewSource(PayloadKey, size).Digest(size)
	for side, events := range map[string][]*contract.Event{"client": client, "server": server} {
		r := Only(t, events, contract.KindResult)
		if r.Transfer != p.Transfer.ID || r.Result.SizeBytes != size || r.Result.Digest != digest {
			t.Errorf("%s: transfer %s of %d bytes with digest %s", side, r.Transfer, r.Result.SizeBytes, r.Result.Digest)
		}
		if f := r.Result.Final; f == nil || f.SentBytes != size {
			t.Errorf("%s: final sample %+v", side, f)
		}
		var elapsed, sent, acked int64
		for _, e := range events {
			x := e.Sample
			if x == nil {
				continue
			}
			if x.ElapsedNS < elapsed || x.SentBytes < sent || x.SentBytes > size {
				j, _ := json.Marshal(x)
				t.Errorf("%s: sample %s after elapsed_ns %d, sent_bytes %d", side, j, elapsed, sent)
			}
			elapsed, sent = x.ElapsedNS, x.SentBytes
			if x.AckedBytes != nil {
				if *x.AckedBytes < acked || *x.AckedBytes > sent {
					t.Errorf("%s: acked_bytes %d after %d, sent_bytes %d", side, *x.AckedBytes, acked, sent)
				}
				acked = *x.AckedBytes
			}
		}
	}
	return Only(t, client, contract.KindResult).Result, Only(t, server, contract.KindResult).Result
}
