package faults

import (
	"fmt"
	"slices"
	"strings"

	"linktrial/internal/faultlog"
	"linktrial/internal/radio"
)

// virtualChoices is what exists in virtual time, where nodes have neither orchestrator
// nor control link. The table in docs/faults.md is the same.
var virtualChoices = []Choice{
	{faultlog.Kill, faultlog.Agent}, {faultlog.Kill, faultlog.Driver}, {faultlog.Kill, faultlog.Emulator},
	{faultlog.Stop, faultlog.Agent}, {faultlog.Stop, faultlog.Driver}, {faultlog.Stop, faultlog.Emulator},
	{faultlog.Restart, faultlog.Agent}, {faultlog.PowerCut, faultlog.Node},
	{faultlog.RadioDown, faultlog.Radio}, {faultlog.MTU, faultlog.Radio}, {faultlog.Address, faultlog.Radio},
	{faultlog.ClockStep, faultlog.Clock},
}

// Choices returns every kind with every target that it can hit on these nodes.
func (n Nodes) Choices() []Choice {
	return slices.DeleteFunc(Choices(), func(c Choice) bool { return !n.Lab.has(c) })
}

// has reports whether a kind exists there for a target.
func (p Place) has(c Choice) bool {
	switch p {
	case Virtual:
		return slices.Contains(virtualChoices, c)
	case RealPath:
		return c.Target != faultlog.Emulator
	}
	return !shapeOf(c.Kind).plain
}

// String says where something does not exist.
func (p Place) String() string {
	switch p {
	case Virtual:
		return "in virtual time"
	case RealPath:
		return "on the real path"
	}
	return "on emulated radios"
}

// Parse is [ParseChoices] of what exists on these nodes.
func (n Nodes) Parse(list []string) ([]Choice, error) {
	all, err := ParseChoices(list)
	if err != nil {
		return all, err
	}
	for _, text := range list {
		kind, _, one := strings.Cut(text, ":")
		if wrong := n.absent(faultlog.Kind(kind), func(c Choice) bool { return !one || c.String() == text }); wrong != "" {
			return nil, fmt.Errorf("%s %s", text, wrong)
		}
	}
	return slices.DeleteFunc(all, func(c Choice) bool { return !n.Lab.has(c) }), nil
}

// absent says why no choice of a kind that is meant exists on these nodes; empty: one
// does.
func (n Nodes) absent(kind faultlog.Kind, meant func(Choice) bool) string {
	there := n.Choices()
	if slices.ContainsFunc(there, func(c Choice) bool { return c.Kind == kind && meant(c) }) {
		return ""
	}
	all := make([]string, len(there))
	for i, c := range there {
		all[i] = c.String()
	}
	return fmt.Sprintf("does not exist %s; there are %s", n.Lab, strings.Join(all, ", "))
}

// Has reports whether a node has a target.
func (n Nodes) Has(t faultlog.Target, role radio.Role) bool {
	return slices.Contains(n.with(t), role)
}

// On returns the faults of a list that can hit something on these nodes.
func (n Nodes) On(list []Injection) []Injection {
	return slices.DeleteFunc(slices.Clone(list), func(i Injection) bool { return ofNode(i.Target) && !n.Has(i.Target, i.Node) })
}
