package node

import (
	"strings"
	"testing"

	"linktrial/agents/agent"
	"linktrial/cmd/linktrial/setting"
	"linktrial/internal/radio"
)

func TestRadioFlags(t *testing.T) {
	for _, c := range []struct {
		args   string
		device string // that the agent has
		want   string // of the error; empty: none
	}{
		{"--role client --radio-address 10.78.0.1", "radio0", ""},
		{"--role client --radio-address 10.78.0.1 --device eth1", "eth1", ""},
		{"--name alpha", "", ""},
		{"--role server", "", ""},
		// As the unit of the agent has variables that are not set.
		{"--name=alpha --role= --radio-address= --device=", "", ""},
		{"--name=alpha --role=client --radio-address= --device=", "", ""},
		{"", "", `--role "", expected client`},
		{"--name alpha --role captain", "", `--role "captain", expected client`},
		{"--name alpha --radio-address 10.78.0.1", "", `--role "", expected client`},
		{"--role client --device eth1", "", "--device is given, and --radio-address is missing"},
		{"--role client --radio mpu5", "", "--radio is given, and --radio-address is missing"},
		{"--role client --more-radio eth1=10.0.0.1", "", "--more-radio is given, and --radio-address is missing"},
		{"--role client --radio-control /run/x", "", "--radio-address is missing: name this node's IP address on the emulated"},
	} {
		cmd := newAgent(&setting.Settings{})
		f := cmd.Flags()
		if err := f.Parse(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		var cfg agent.Config
		cfg.Name, _ = f.GetString("name")
		role, _ := f.GetString("role")
		cfg.Role = radio.Role(role)
		cfg.RadioAddress, _ = f.GetString("radio-address")
		cfg.RadioControl, _ = f.GetString("radio-control")
		cfg.Device, _ = f.GetString("device")
		err := checkRadioFlags(f, &cfg)
		switch {
		case c.want == "" && (err != nil || cfg.Device != c.device):
			t.Errorf("%s: device %q, %v", c.args, cfg.Device, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%s: %v, expected %s", c.args, err, c.want)
		}
	}
}
