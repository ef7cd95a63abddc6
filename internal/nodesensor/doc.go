// Package nodesensor reads what the kernel tells of a node's batteries and temperature.
package nodesensor
