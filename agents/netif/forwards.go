package netif

import (
	"os"
	"strings"
)

// Forwards reports whether this node passes on packets of IPv4 that arrive at some interfaces:
// at each one that is connected. Without any, the setting of the node as a whole counts.
func Forwards(interfaces ...string) bool {
	on := func(setting string) (is, known bool) {
		b, err := os.ReadFile("/proc/sys/net/ipv4/" + setting)
		return strings.TrimSpace(string(b)) == "1", err == nil
	}
	all, _ := on("ip_forward")
	named := false
	for _, i := range interfaces {
		is, known := on("conf/" + i + "/forwarding")
		if i == "" || !known {
			continue
		}
		if !is {
			return false
		}
		named = true
	}
	return named || all
}
