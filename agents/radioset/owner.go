package radioset

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// owner names the program that configures an interface, as far as its files below root
// tell, "" for none that is known.
func owner(root, name string, index int) string {
	// systemd-networkd writes the state of each link (sd-network, "ADMIN_STATE").
	if state, ok := value(filepath.Join(root, "run/systemd/netif/links", fmt.Sprint(index)), "ADMIN_STATE"); ok && state != "unmanaged" {
		return "systemd-networkd"
	}
	// NetworkManager writes the connection that is active on a device (NetworkManager, nm-config-data.c).
	device := filepath.Join(root, "run/NetworkManager/devices", fmt.Sprint(index))
	if connection, ok := value(device, "connection-uuid"); ok && connection != "" {
		return "NetworkManager"
	}
	if managed, ok := value(device, "managed"); ok && managed == "true" {
		return "NetworkManager"
	}
	files, _ := filepath.Glob(filepath.Join(root, "etc/network/interfaces.d/*")) // the pattern is well formed
	for _, f := range append(files, filepath.Join(root, "etc/network/interfaces")) {
		if text, err := os.ReadFile(f); err == nil && stanza(text, name) {
			return "ifupdown"
		}
	}
	return ""
}

// value is that of a key in a file of lines KEY=VALUE; ok is false where there is none.
func value(path, key string) (v string, ok bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), key+"="); ok {
			return v, true
		}
	}
	return "", false
}

// stanza reports whether a file of interfaces(5) has ifupdown configure an interface. With
// the method manual it does nothing.
func stanza(text []byte, name string) bool {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		w := strings.Fields(lines.Text())
		if len(w) >= 4 && w[0] == "iface" && w[1] == name && w[3] != "manual" {
			return true
		}
	}
	return false
}

// release says how a program is told to leave an interface alone.
func release(program, name string) string {
	switch program {
	case "NetworkManager":
		return fmt.Sprintf("'nmcli device set %s managed no'", name)
	case "systemd-networkd":
		return fmt.Sprintf("'Unmanaged=yes' below [Link] in a file of /etc/systemd/network that matches %s", name)
	case "ifupdown":
		return fmt.Sprintf("remove 'iface %s' from /etc/network/interfaces, after 'ifdown %[1]s'", name)
	}
	return "end its DHCP client"
}
