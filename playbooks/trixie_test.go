//go:build converge

package playbooks

import "testing"

// The same on the next Debian.
func TestNodeOfDebian13(t *testing.T) { becomesNode(t, "trixie") }
