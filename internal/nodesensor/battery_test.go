package nodesensor

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

func TestReadBattery(t *testing.T) {
	type supply map[string]string
	for _, c := range []struct {
		name        string
		supplies    map[string]supply
		charge      float64
		discharging bool
		present     bool
	}{
		{name: "none"},
		{name: "mains only", supplies: map[string]supply{"AC": {"type": "Mains", "online": "1"}}},
		{name: "one by capacity", supplies: map[string]supply{"BAT0": {"type": "Battery", "capacity": "42", "status": "Discharging"}}, charge: 0.42, discharging: true, present: true},
		{name: "charging", supplies: map[string]supply{"BAT0": {"type": "Battery", "capacity": "90", "status": "Charging"}}, charge: 0.9, present: true},
		{name: "two of different size", supplies: map[string]supply{
			"BAT0": {"type": "Battery", "energy_full": "30000000", "energy_now": "30000000", "status": "Full"},
			"BAT1": {"type": "Battery", "energy_full": "10000000", "energy_now": "0", "status": "Discharging"}}, charge: 0.75, discharging: true, present: true},
		{name: "by charge", supplies: map[string]supply{"BAT0": {"type": "Battery", "charge_full": "4000000", "charge_now": "1000000"}}, charge: 0.25, present: true},
		{name: "more than full", supplies: map[string]supply{"BAT0": {"type": "Battery", "energy_full": "100", "energy_now": "103"}}, charge: 1, present: true},
		{name: "a mouse", supplies: map[string]supply{"hid": {"type": "Battery", "scope": "Device", "capacity": "3"}}},
		{name: "an empty bay", supplies: map[string]supply{"BAT1": {"type": "Battery", "present": "0", "capacity": "0"}}},
		{name: "nonsense", supplies: map[string]supply{"BAT0": {"type": "Battery", "capacity": "lots", "energy_full": "0", "energy_now": "NaN"}}},
		{name: "out of range", supplies: map[string]supply{"BAT0": {"type": "Battery", "capacity": "NaN"}, "BAT1": {"type": "Battery", "capacity": "101"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for name, s := range c.supplies {
				if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
					t.Fatal(err)
				}
				for k, v := range s {
					if err := os.WriteFile(filepath.Join(root, name, k), []byte(v+"\n"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			got, ok := ReadBattery(root)
			if ok != c.present || math.Abs(got.Charge-c.charge) > 1e-9 || got.Discharging != c.discharging {
				t.Errorf("got %+v, %t, expected %g, discharging %t, %t", got, ok, c.charge, c.discharging, c.present)
			}
		})
	}
	if _, ok := ReadBattery(filepath.Join(t.TempDir(), "none")); ok {
		t.Error("a battery where there is no folder of power supplies")
	}
}
