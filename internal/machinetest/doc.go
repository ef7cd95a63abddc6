// Package machinetest boots machines for tests: Debian in an overlay over a base, started by
// systemd-nspawn with a network of its own. Comes in: a test and a root file system. Go out:
// machines on which commands are run. What a killed test leaves, the next removes. All of it
// needs root.
package machinetest
