package laptops

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/checkout"
	"linktrial/internal/testkind"
)

var welcomes = regexp.MustCompile(`https://\S+/welcome\S*`)

// TestWalk is the hour of somebody who has docs/first-hour.md: three commands, and a browser on
// the control network for all the rest, by the names that the pages show. The log is a
// stopwatch; LINKTRIAL_SHOTS is a folder for pictures of each page.
func TestWalk(t *testing.T) {
	testkind.OfTest(t, testkind.Soak, "a person's hour in real time")
	p := newPair(t)
	began := time.Now()
	p.a.On(install)
	p.b.On(install)
	said := p.a.On("linktrial start")
	link, join := welcomes.FindString(said), joins.FindStringSubmatch(said)
	require.NotEmpty(t, link, said)
	require.NotNil(t, join, said)
	p.b.On(join[1])
	t.Logf("%6.1f s  three commands: installed, started, joined", time.Since(began).Seconds())

	source, err := checkout.Root()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "ip", "netns", "exec", p.Namespace(), "node", filepath.Join(source, "e2e", "laptops", "walk.mjs"), link)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(source, "web"), os.Stdout, os.Stderr
	require.NoError(t, cmd.Run())
}
