// Package playbooks carries the Ansible playbooks that turn Debian machines into
// nodes, and the list of packages that they install. Goes out: the files. Read by
// Ansible, and by bundle, which packs them.
//
// Tests with the build tag "converge" run them on containers that systemd
// boots, each with an SSH server of its own: make test-ansible.
package playbooks

import "embed"

// Files holds the playbooks, roles and the example of an inventory.
//
//go:embed *.yml inventories roles
var Files embed.FS
