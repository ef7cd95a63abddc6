package laptop

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDebianVersion(t *testing.T) {
	versions := map[string]string{
		"v1.2.0": "1.2.0", "1.2.0": "1.2.0", "v1.2.0-rc1": "1.2.0~rc1", "v1.2.0-3-g9d9bc2cc": "1.2.0+3+g9d9bc2cc", "v1.2.0-dirty": "1.2.0+dirty",
		"9d9bc2cc": "0+20260501083000.9d9bc2cc", "abcdef12-dirty": "0+20260501083000.abcdef12.dirty", "unknown": "0+20260501083000.unknown",
	}
	for version, want := range versions {
		got, err := debianVersion(version, committed)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, exec.Command("dpkg", "--validate-version", got).Run(), got)
	}
	for _, order := range [][2]string{{"v1.2.0-rc1", "v1.2.0"}, {"v1.2.0", "v1.2.0-3-g9d9bc2cc"}, {"ffffffff", "v0.0.1"}} {
		require.NoError(t, exec.Command("dpkg", "--compare-versions", versionOf(t, order[0]), "lt", versionOf(t, order[1])).Run(), order)
	}
	for _, bad := range []string{"", "a b", "v1.2.0/3", "x_y"} {
		_, err := debianVersion(bad, committed)
		require.ErrorContains(t, err, "version")
	}
}

func versionOf(t *testing.T, version string) string {
	t.Helper()
	v, err := debianVersion(version, committed)
	require.NoError(t, err)
	return v
}

func TestParseLdd(t *testing.T) {
	got, err := parseLdd("\tlinux-vdso.so.1 (0x00007f7a08e8a000)\n\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f7a08a00000)\n" +
		"\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f7a0881e000)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f7a08e8c000)\n")
	require.NoError(t, err)
	require.Equal(t, []string{"/lib/x86_64-linux-gnu/libz.so.1"}, got)
	got, err = parseLdd("\tstatically linked\n")
	require.NoError(t, err)
	require.Empty(t, got)
	_, err = parseLdd("\tlibpq.so.5 => not found\n")
	require.ErrorContains(t, err, "libpq.so.5 is not found")
}

func TestLibcVersion(t *testing.T) {
	for symbol, want := range map[string][]int{"GLIBC_2.34": {2, 34}, "GLIBC_2.2.5": {2, 2, 5}, "GLIBC_ABI_DT_RELR": {2, 36}, "GLIBC_PRIVATE": nil, "GCC_3.0": nil} {
		require.Equal(t, want, libcVersion(symbol), symbol)
	}
}
