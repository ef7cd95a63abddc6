package telemetrysource

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHostPower(t *testing.T) {
	root := t.TempDir()
	bat := filepath.Join(root, "BAT0")
	for name, text := range map[string]string{"type": "Battery", "present": "1", "status": "Discharging", "capacity": "42", "energy_now": "42", "energy_full": "100"} {
		if err := os.MkdirAll(bat, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bat, name), []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := check(t, Node{PowerSupplies: root, ThermalZones: root}, Source{Name: "power", Kind: KindHost, IntervalNS: 1})
	if got != "power charge=42 % discharging=1 " {
		t.Errorf("got %q", got)
	}
}
