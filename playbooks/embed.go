// Package playbooks embeds the Ansible playbooks that make Debian machines nodes or
// orchestrator, and the list of packages that they install, for install bundles.
//
// Tests with the build tag "converge" run the playbooks on containers that systemd
// boots, each with its own SSH server: make test-ansible.
package playbooks

import "embed"

// Files holds the playbooks, the roles and the example inventory.
//
//go:embed *.yml inventories roles
var Files embed.FS
