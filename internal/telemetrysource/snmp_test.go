package telemetrysource

import (
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/gosnmp/gosnmp"
)

// Whatever a radio answers, a value is one that JSON can hold, or an error.
func FuzzSNMPAnswer(f *testing.F) {
	// A response of version 2c with the text "NaN", and one with a Gauge32.
	for _, s := range []string{
		"302b02010104067075626c6963a21e020400000001020100020100301030" + "0e06082b0601020101050004024e61",
		"302902010104067075626c6963a21c020101020100020100301130" + "0f060a2b060102010202010a01420164",
		"3000", "30820000",
	} {
		b, err := hex.DecodeString(s)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, 1.0)
	}
	f.Add([]byte{}, 1e308)
	f.Fuzz(func(t *testing.T, b []byte, scale float64) {
		g := &gosnmp.GoSNMP{Version: gosnmp.Version2c, Community: "public"}
		packet, err := g.SnmpDecodePacket(b)
		if err != nil || packet == nil {
			return
		}
		for i := range packet.Variables {
			checkValue(t, &packet.Variables[i], scale)
		}
	})
}

func checkValue(t *testing.T, v *gosnmp.SnmpPDU, scale float64) {
	t.Helper()
	x, err := snmpNumber(v)
	if err != nil {
		return
	}
	r, err := (&Value{Name: "x", Scale: scale}).reading(x)
	if err != nil {
		return
	}
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("%v: the journal cannot hold it: %v", r.Value, err)
	}
}

// Radios that report decibels as text report what is not known as "NaN" or "-inf".
func TestSNMPTextsThatAreNoNumbers(t *testing.T) {
	for _, text := range []string{"NaN", "-inf", "+Inf", "1e400", "", "12 dB"} {
		x, err := snmpNumber(&gosnmp.SnmpPDU{Type: gosnmp.OctetString, Value: []byte(text)})
		if err == nil {
			_, err = (&Value{Name: "snr", Scale: 1}).reading(x)
		}
		if err == nil {
			t.Errorf("%q is taken as a number", text)
		}
	}
}
