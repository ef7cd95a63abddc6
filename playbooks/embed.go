// Package playbooks embeds the Ansible playbooks that make Debian machines nodes or
// orchestrator, and the list of packages that they install, for install bundles.
//
// Tests with the build tag "converge" run the playbooks on containers that systemd
// boots, each with Debian, its own SSH server and networks whose only way out is a proxy
// for packages, or none: make test-ansible. They read what became of a machine from the
// machine, not from the playbook. Where systemd-nspawn can boot none, or Ansible cannot be
// installed, they are skipped and say why. They need root, and keep base systems and
// packages in /var/cache/linktrial/targets.
//
//   - Refusal and dry run: Ubuntu, Debian 11 and a Debian without a number are refused in
//     one sentence, and --check goes through on a bare machine; no file changes on any.
//   - Converge: three bare machines become client, relay, and server with orchestrator;
//     the second run changes nothing; they enrol and connect; packets pass the relay;
//     sysctls, MTU, forwarding, chrony's source, the bound of the journal; a preflight and
//     a trial of TCP, SCTP and UDT; removal brings the settings back.
//   - Half-installed and removed: a package that was not configured, a cut-off program and
//     driver, a wrong unit; removal with packages and data.
//   - Air-gapped: half a bundle, none, one not signed, of another key, or changed are
//     refused; a machine without a network becomes orchestrator and node, with Docker and
//     a driver's image.
//   - A node of Debian 13, twice.
//
// Three things cannot be tried in containers: chrony sets no clock, the kernel takes no
// default congestion control, and Docker starts no container where the processor
// controller is in the older hierarchy of control groups (agents/runner/docker tests
// drivers as containers).
//
// Make soak has the smallest of it: one machine becomes a node (from nothing 70 s of
// processor time), and the second run is quiet. Make test runs the orchestrator's role on
// an /etc of its own and compares the flags that systemd makes of its environment. Make
// check runs ansible-lint at its production profile. Test-ansible converges seven
// machines, each at least twice: 39 min as the sum of its tests (load 18), debootstrap
// 271 s and Ansible 50 s of it, each once (load 19).
package playbooks

import "embed"

// Files holds the playbooks, the roles and the example inventory.
//
//go:embed *.yml inventories roles
var Files embed.FS
