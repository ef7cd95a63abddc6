package trial

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/cmd/linktrial/terminal"
)

var verdictWords = map[linktrialv1.InterfaceVerdict]string{
	linktrialv1.InterfaceVerdict_INTERFACE_VERDICT_LIKELY:   "likely",
	linktrialv1.InterfaceVerdict_INTERFACE_VERDICT_POSSIBLE: "possible",
	linktrialv1.InterfaceVerdict_INTERFACE_VERDICT_REFUSED:  "refused",
}

// printInterfaces writes the interfaces of a node, a row each, and below what speaks for and
// against each.
func printInterfaces(nodes []*linktrialv1.Node, name string) error {
	at := slices.IndexFunc(nodes, func(n *linktrialv1.Node) bool { return n.Name == name })
	if at < 0 {
		var names []string
		for _, n := range nodes {
			names = append(names, n.Name)
		}
		return fmt.Errorf("--interfaces %q: there is no such node; there are %s", name, cmp.Or(strings.Join(names, ", "), "none"))
	}
	n := nodes[at]
	if n.Interfaces == nil {
		return fmt.Errorf("%s has not told of its interfaces: it is not connected, is a node of a lab, or has an agent of an earlier version", name)
	}
	if err := terminal.Columns("INTERFACE\tAS RADIO\tKIND\tDRIVER\tMAC\tSTATE\tSPEED\tMTU\tADDRESSES\tRECEIVES", func(w io.Writer) {
		for _, i := range n.Interfaces.Interfaces {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", i.Name, verdictWords[i.Verdict], i.Kind, cmp.Or(i.Driver, "–"), cmp.Or(i.Mac, "–"), linkState(i), speed(i), i.MtuBytes,
				cmp.Or(strings.Join(i.Addresses, " "), "–"), map[bool]string{true: "yes", false: "no"}[i.Receiving])
		}
	}); err != nil {
		return err
	}
	if n.Interfaces.More > 0 {
		fmt.Printf("and %d more\n", n.Interfaces.More)
	}
	for _, i := range n.Interfaces.Interfaces {
		fmt.Printf("\n%s\n", terminal.Printable(i.Name))
		for _, p := range i.Points {
			sign := "+"
			if p.Against {
				sign = "–"
			}
			fmt.Printf("  %s %s\n", sign, terminal.Printable(p.Text))
		}
	}
	for _, r := range n.Radios.GetRadios() {
		fmt.Printf("\nradio  %s, %s with %s\n", r.Role, terminal.Printable(r.Interface), r.Address)
	}
	if text := n.Radios.GetFixed(); text != "" {
		fmt.Printf("\n%s\n", terminal.Printable(text))
	}
	return nil
}

func linkState(i *linktrialv1.NodeInterface) string {
	switch {
	case !i.Up:
		return "down"
	case !i.Carrier:
		return "no carrier"
	}
	return "carrier"
}

func speed(i *linktrialv1.NodeInterface) string {
	if i.SpeedMbit == 0 {
		return "–"
	}
	return fmt.Sprintf("%d Mbit/s", i.SpeedMbit)
}
