package docker

import (
	"archive/tar"
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func archive(t testing.TB, name string, kind byte, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: kind, Mode: 0o644, Size: int64(len(content))}))
	_, err := w.Write(content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// FuzzManifestOf: an image's archive gives a manifest with a name, or an error.
func FuzzManifestOf(f *testing.F) {
	manifest, err := os.ReadFile("../../../protocols/tcp/driver.yaml")
	require.NoError(f, err)
	whole := archive(f, "driver.yaml", tar.TypeReg, manifest)
	f.Add(whole)
	f.Add(whole[:700])
	f.Add(archive(f, "driver.yaml", tar.TypeDir, nil))
	f.Add(archive(f, "driver.yaml", tar.TypeReg, []byte("name: [")))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := manifestOf(bytes.NewReader(b), "image")
		if (m == nil) == (err == nil) {
			t.Fatalf("%+v, %v", m, err)
		}
		if err == nil && m.Name == "" {
			t.Fatal("a manifest without a name")
		}
	})
}

// FuzzParseUser: what is taken of an image's USER is what it says.
func FuzzParseUser(f *testing.F) {
	for _, s := range []string{"", "0", "65534:65534", "1000:", "nobody", "-1", "4294967296", "1:2:3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		uid, gid, err := parseUser(s)
		if err != nil || s == "" {
			require.Zero(t, uid)
			require.Zero(t, gid)
			return
		}
		name, group, has := strings.Cut(s, ":")
		if !has {
			group = name
		}
		u, err := strconv.Atoi(name)
		require.NoError(t, err)
		g, err := strconv.Atoi(group)
		require.NoError(t, err)
		require.Equal(t, [2]int{u, g}, [2]int{int(uid), int(gid)})
	})
}

// FuzzContainerOf: what is found in a list of mounts is an identity of the engine's form.
func FuzzContainerOf(f *testing.F) {
	id := strings.Repeat("0123456789abcdef", 4)
	f.Add("618 611 8:1 /var/lib/docker/containers/" + id + "/hostname /etc/hostname rw,relatime - ext4 /dev/sda1 rw\n")
	f.Add("23 29 0:21 / /sys rw,nosuid - sysfs sysfs rw\n")
	f.Add("618 611 8:1 /x/containers/zz/hosts /etc/hosts")
	f.Fuzz(func(t *testing.T, mounts string) {
		found := containerOf(strings.NewReader(mounts))
		if found != "" && (len(found) != 64 || strings.Trim(found, "0123456789abcdef") != "" || !strings.Contains(mounts, found)) {
			t.Fatalf("%q", found)
		}
	})
}
