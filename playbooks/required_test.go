//go:build converge

package playbooks

// required says that machines are what is asked for: without them, nothing is tested.
const required = true
