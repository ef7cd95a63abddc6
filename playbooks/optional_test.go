//go:build !converge

package playbooks

// required says that machines are what is asked for; among all tests, they are not.
const required = false
