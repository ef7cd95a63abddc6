//go:build !converge

package playbooks

// required is whether tests fail, not skip, where machines cannot be made.
const required = false
