package nodesensor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// PowerSupplies is where the kernel lists batteries (power_supply_class).
const PowerSupplies = "/sys/class/power_supply"

// Battery is the state of a node's batteries together.
type Battery struct {
	Charge      float64 // 0…1, weighted by what each holds where the kernel reports it
	Discharging bool    // one of them is
}

// ReadBattery reads the batteries that supply the node, below root. False: it
// has none, or none that reports its charge. Batteries of mice and headsets
// (scope "Device") do not count.
func ReadBattery(root string) (Battery, bool) {
	dirs, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil {
		return Battery{}, false
	}
	var b Battery
	var charge, weight float64
	for _, dir := range dirs {
		if !strings.EqualFold(attribute(dir, "type"), "battery") || strings.EqualFold(attribute(dir, "scope"), "device") || attribute(dir, "present") == "0" {
			continue
		}
		c, w, ok := chargeOf(dir)
		if !ok {
			continue
		}
		charge += c * w
		weight += w
		b.Discharging = b.Discharging || strings.EqualFold(attribute(dir, "status"), "discharging")
	}
	if weight == 0 {
		return Battery{}, false
	}
	b.Charge = charge / weight
	return b, true
}

// chargeOf is a battery's charge, 0…1, and its weight among several: its
// capacity when full, in the unit that its driver has.
func chargeOf(dir string) (charge, weight float64, ok bool) {
	for _, kind := range []string{"energy", "charge"} {
		full, err1 := strconv.ParseFloat(attribute(dir, kind+"_full"), 64)
		now, err2 := strconv.ParseFloat(attribute(dir, kind+"_now"), 64)
		if err1 == nil && err2 == nil && full > 0 && now >= 0 {
			return min(1, now/full), full, true
		}
	}
	percent, err := strconv.ParseFloat(attribute(dir, "capacity"), 64)
	if err != nil || !(percent >= 0 && percent <= 100) {
		return 0, 0, false
	}
	return percent / 100, 1, true
}

func attribute(dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
