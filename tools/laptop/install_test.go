package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/checkout"
)

// TestInstall installs the package of the built program in a bare Debian without network,
// uses, removes and purges it, and unpacks its other form.
func TestInstall(t *testing.T) {
	bin := os.Getenv("LINKTRIAL_BIN")
	if bin == "" || os.Geteuid() != 0 {
		t.Skip("needs root, and LINKTRIAL_BIN: the folder with the built programs")
	}
	root, err := checkout.Root()
	require.NoError(t, err)
	t.Chdir(root)
	// In memory, where a room's temporary files are: dpkg syncs every file that it writes.
	dir, err := os.MkdirTemp("", "linktrial-install-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, run(t.Context(), bin, filepath.Join("build", "handbook"), filepath.Join(dir, "out")))
	packages, err := filepath.Glob(filepath.Join(dir, "out", "*.deb"))
	require.NoError(t, err)
	require.Len(t, packages, 1)
	version, err := exec.Command(filepath.Join(bin, "linktrial"), "--version").Output()
	require.NoError(t, err)

	m := newMachine(t, dir)
	before := m.state()
	const reload = "daemon-reload\n"
	restart := "" // at the first time there is nothing that could run
	for _, folder := range []string{"/opt", "/root", "/media/USB STICK"} {
		require.NoError(t, os.MkdirAll(m.path(folder), 0o755))
		at := filepath.Join(folder, filepath.Base(packages[0]))
		require.NoError(t, os.Link(packages[0], m.path(at)))
		m.run("dpkg", "-i", at)
		require.NoError(t, os.Remove(m.path(at)))
		require.Equal(t, reload+restart, m.told())
		restart = "try-restart linktrial-orchestrator.service linktrial-agent.service\n"
		require.Equal(t, string(version), m.run("linktrial", "--version"))
	}
	m.testInstalled()
	m.testRemoved(before)
	m.testUnpacked(filepath.Join(dir, "out"))
}

// testInstalled uses what is installed.
func (m *machine) testInstalled() {
	t := m.t
	drivers, err := os.ReadDir(m.path("/usr/lib/linktrial/drivers"))
	require.NoError(t, err)
	require.Greater(t, len(drivers), 5)
	list := m.run("linktrial", "protocol", "list")
	for _, d := range drivers {
		// The gateway of SCPS-TP is one that users build.
		if d.Name() != "scps" {
			require.Regexp(t, `(?m)^`+d.Name()+` .* yes .*/usr/lib/linktrial/drivers/`+d.Name()+`$`, list)
		}
	}
	require.FileExists(t, m.path("/usr/lib/linktrial/typst/typst/__init__.py"))
	for _, user := range []string{"linktrial", "linktrial-agent", "linktrial-driver"} {
		require.Contains(t, m.run("getent", "passwd", user), "/usr/sbin/nologin")
	}
	links, err := filepath.Glob(m.path("/etc/systemd/system/*.wants/linktrial*"))
	require.NoError(t, err)
	require.Empty(t, links, "a service is enabled")
	for what, credential := range map[string]*syscall.Credential{"root": nil, "its user": m.credential("linktrial")} {
		args := []string{} // root's data are in /var/lib/linktrial
		if credential != nil {
			m.run("install", "-d", "-m", "700", "-o", "linktrial", "-g", "linktrial", "/var/lib/linktrial-orchestrator")
			args = []string{"--data", "/var/lib/linktrial-orchestrator"}
		}
		pages, database := m.serve(credential, "linktrial", args...)
		t.Logf("as %s: pages after %.1f s, database made included", what, pages.Seconds())
		require.Contains(t, database, "/usr/lib/linktrial/postgresql/")
	}
	pages, _ := m.serve(m.credential("linktrial"), "linktrial", "--data", "/var/lib/linktrial-orchestrator")
	t.Logf("again: pages after %.1f s", pages.Seconds())
}

// testRemoved removes what is installed, and then purges it.
func (m *machine) testRemoved(before map[string]string) {
	t := m.t
	require.NoError(t, os.WriteFile(m.path("/etc/linktrial/agent.env"), nil, 0o600))
	m.run("dpkg", "-r", "linktrial")
	require.Equal(t, "disable --now linktrial-agent.service linktrial-orchestrator.service\ndaemon-reload\n", m.told())
	require.NoFileExists(t, m.path("/usr/bin/linktrial"))
	require.NoDirExists(t, m.path("/usr/lib/linktrial"))
	for _, kept := range []string{"/etc/linktrial/agent.env", "/var/lib/linktrial/postgres/PG_VERSION", "/var/lib/linktrial-orchestrator/postgres/PG_VERSION"} {
		require.FileExists(t, m.path(kept))
	}
	m.run("getent", "passwd", "linktrial")

	m.run("dpkg", "-P", "linktrial")
	after := m.state()
	for at, content := range after {
		was, there := before[at]
		if !there {
			t.Errorf("%s is left", at)
		} else if was != content {
			t.Errorf("%s is changed:\n%s", at, content)
		}
	}
	for at := range before {
		if _, there := after[at]; !there {
			t.Errorf("%s is gone, and is not the package's", at)
		}
	}
}

// testUnpacked unpacks the tar in a folder with a blank in its name, and has an ordinary user
// start the orchestrator from there.
func (m *machine) testUnpacked(out string) {
	t := m.t
	archives, err := filepath.Glob(filepath.Join(out, "*.tar.gz"))
	require.NoError(t, err)
	require.Len(t, archives, 1)
	folder := "/media/USB STICK"
	text, err := exec.Command("tar", "-C", m.path(folder), "-xf", archives[0]).CombinedOutput()
	require.NoError(t, err, "%s", text)
	programs, err := filepath.Glob(m.path(folder) + "/linktrial-*/bin/linktrial")
	require.NoError(t, err)
	require.Len(t, programs, 1)
	program := strings.TrimPrefix(programs[0], m.root)
	require.Contains(t, m.run(program, "protocol", "list"), filepath.Join(filepath.Dir(program), "../lib/linktrial/drivers/udt"))
	m.run("useradd", "--create-home", "person")
	pages, database := m.serve(m.credential("person"), program, "--data", "/home/person/trial data")
	t.Logf("unpacked: pages after %.1f s, database made included", pages.Seconds())
	require.Contains(t, database, folder+"/linktrial-")
}
