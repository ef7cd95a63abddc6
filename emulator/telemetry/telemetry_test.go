package telemetry

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gosnmp/gosnmp"
	"go.uber.org/goleak"

	"linktrial/internal/radio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func state() *State {
	s := &State{Role: radio.RoleRelay, MTUBytes: 1400, Up: true, UptimeSeconds: 12.5, InBytes: 1 << 40, InPackets: 7, OutBytes: 9, OutPackets: 3, DroppedPackets: 5,
		Neighbours: []Neighbour{
			{Role: radio.RoleClient, SNR: -3.25, QueueBytes: 300, QueuePackets: 1, RateBitsPerSecond: 2e6, Loss: 0.25},
			{Role: radio.RoleServer, SNR: 20, QueueBytes: 100, RateBitsPerSecond: 1e6},
		}}
	s.Sum()
	return s
}

func serve(t *testing.T, read func() (*State, error)) (snmp *gosnmp.GoSNMP, page string) {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(packets, pages, read, slog.New(slog.DiscardHandler))
	t.Cleanup(s.Close)
	snmp = &gosnmp.GoSNMP{Target: "127.0.0.1", Port: uint16(packets.LocalAddr().(*net.UDPAddr).Port), Version: gosnmp.Version2c, Community: "public", Timeout: 5 * time.Second, Retries: 1, MaxOids: 60, MaxRepetitions: 10}
	if err := snmp.Connect(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { snmp.Conn.Close() })
	return snmp, "http://" + pages.Addr().String() + radio.EmulatedHTTPPath
}

func TestSNMP(t *testing.T) {
	g, _ := serve(t, func() (*State, error) { return state(), nil })
	res, err := g.Get([]string{radio.OIDIfHCIn, radio.OIDIfOutDrops, radio.EnterpriseColumn(radio.ColumnSNR, 1), radio.EnterpriseColumn(radio.ColumnPeer, 2), "1.3.6.1.2.1.99.0"})
	if err != nil {
		t.Fatal(err)
	}
	v := res.Variables
	if gosnmp.ToBigInt(v[0].Value).Uint64() != 1<<40 || v[0].Type != gosnmp.Counter64 || gosnmp.ToBigInt(v[1].Value).Int64() != 5 ||
		gosnmp.ToBigInt(v[2].Value).Int64() != -325 || string(v[3].Value.([]byte)) != "server" || v[4].Type != gosnmp.NoSuchInstance {
		t.Errorf("%+v", v)
	}
	want := len(tree(state()))
	for name, walk := range map[string]func(string) ([]gosnmp.SnmpPDU, error){"next": g.WalkAll, "bulk": g.BulkWalkAll} {
		all, err := walk(".1.3.6.1")
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != want {
			t.Errorf("%s: %d objects, want %d", name, len(all), want)
		}
		for i := 1; i < len(all); i++ {
			a, _ := arcs(all[i-1].Name)
			b, _ := arcs(all[i].Name)
			if _, later := find([]entry{{arcs: a}}, b); later || len(b) == 0 {
				t.Errorf("%s after %s", all[i].Name, all[i-1].Name)
			}
		}
	}
	if res, err := g.Set([]gosnmp.SnmpPDU{{Name: radio.OIDSysName, Type: gosnmp.OctetString, Value: "x"}}); err != nil || res.Error != gosnmp.NotWritable {
		t.Errorf("set: %v %v", res, err)
	}
	g.Community, g.Timeout, g.Retries = "private", 200*time.Millisecond, 0
	if res, err := g.Get([]string{radio.OIDSysName}); err == nil {
		t.Errorf("another community was answered: %+v", res)
	}
}

func TestHTTP(t *testing.T) {
	_, page := serve(t, func() (*State, error) { return state(), nil })
	var got map[string]any
	fetch(t, page, http.StatusOK, &got)
	if got["snr_db"] != -3.25 || got["queue_bytes"] != 400.0 || got["rate_bits_per_second"] != 1e6 || len(got["neighbours"].([]any)) != 2 {
		t.Errorf("%v", got)
	}
}

func TestRadioThatCannotBeRead(t *testing.T) {
	g, page := serve(t, func() (*State, error) { return nil, errors.New("the emulator is ending") })
	res, err := g.Get([]string{radio.OIDSysName})
	if err != nil || res.Error != gosnmp.GenErr {
		t.Errorf("%+v %v", res, err)
	}
	fetch(t, page, http.StatusServiceUnavailable, nil)
	fetch(t, strings.Replace(page, radio.EmulatedHTTPPath, "/", 1), http.StatusNotFound, nil)
}

func fetch(t *testing.T, page string, status int, into any) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr, Timeout: 10 * time.Second}).Get(page)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != status {
		t.Errorf("%s: %s, want %d", page, res.Status, status)
	}
	if into != nil {
		if err := json.NewDecoder(res.Body).Decode(into); err != nil {
			t.Error(err)
		}
	}
}

// FuzzRespond: any datagram is passed over, or gets an answer that is an SNMP
// response of the same request.
func FuzzRespond(f *testing.F) {
	for _, kind := range []gosnmp.PDUType{gosnmp.GetRequest, gosnmp.GetNextRequest, gosnmp.GetBulkRequest, gosnmp.SetRequest} {
		p := &gosnmp.SnmpPacket{Version: gosnmp.Version2c, Community: "public", PDUType: kind, RequestID: 77, MaxRepetitions: 3,
			Variables: []gosnmp.SnmpPDU{{Name: radio.OIDSysName, Type: gosnmp.Null}, {Name: ".1.3", Type: gosnmp.Null}}}
		b, err := p.MarshalMsg()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{0x30, 0x80})
	f.Fuzz(func(t *testing.T, request []byte) {
		out, err := respond(request, func() (*State, error) { return state(), nil })
		if err != nil {
			return
		}
		d := &gosnmp.GoSNMP{Version: gosnmp.Version2c}
		in, err := d.SnmpDecodePacket(request)
		if err != nil {
			t.Fatalf("answered what cannot be read: %v", err)
		}
		res, err := d.SnmpDecodePacket(out)
		if err != nil || res.PDUType != gosnmp.GetResponse || res.RequestID != in.RequestID {
			t.Fatalf("%+v %v", res, err)
		}
	})
}
