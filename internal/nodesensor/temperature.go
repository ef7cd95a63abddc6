package nodesensor

import (
	"path/filepath"
	"strconv"
)

// ThermalZones is where the kernel lists sensors of temperature (thermal sysfs).
const ThermalZones = "/sys/class/thermal"

// ReadTemperature reads the hottest of a node's thermal zones below root, in degrees
// Celsius. False: it has none that tells a temperature one can believe.
func ReadTemperature(root string) (float64, bool) {
	files, err := filepath.Glob(filepath.Join(root, "thermal_zone*"))
	if err != nil {
		return 0, false
	}
	hottest, there := 0.0, false
	for _, dir := range files {
		m, err := strconv.ParseInt(attribute(dir, "temp"), 10, 64) // thousandths
		// Zones of devices that are off report -273200 or the like, broken ones the other end.
		if c := float64(m) / 1000; err == nil && c > -100 && c < 200 && (!there || c > hottest) {
			hottest, there = c, true
		}
	}
	return hottest, there
}
