package images

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// service is what a compose file gives to a container.
type service struct {
	Command     []string          `yaml:"command"`
	Volumes     []string          `yaml:"volumes"`
	Environment map[string]string `yaml:"environment"`
}

func services(t *testing.T, file string) map[string]service {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", file))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Services map[string]service `yaml:"services"`
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c.Services
}

// An agent that is taken over enrols as no other node: the volume that it mounts has its
// own token alone.
func TestEachNodeSeesItsOwnTokenAlone(t *testing.T) {
	tls := services(t, "docker-compose.tls.yml")
	nodes := []string{"client", "relay", "server"}
	volumes := map[string]string{} // whose volume of tokens it is
	for _, node := range nodes {
		for _, mount := range tls[node].Volumes {
			volume, at, _ := strings.Cut(mount, ":")
			if at != "/tokens:ro" {
				continue
			}
			if other, ok := volumes[volume]; ok {
				t.Errorf("%s and %s mount the same tokens, %s", other, node, volume)
			}
			volumes[volume] = node
			if want := volume + ":/tokens/" + node; !slices.Contains(tls["orchestrator"].Volumes, want) {
				t.Errorf("the orchestrator does not mount %s: %q", want, tls["orchestrator"].Volumes)
			}
		}
	}
	if len(volumes) != len(nodes) {
		t.Errorf("volumes of tokens: %v", volumes)
	}
	if !slices.Contains(tls["orchestrator"].Command, "--issue-tokens-to=/tokens/{node}") {
		t.Errorf("orchestrator: %q", tls["orchestrator"].Command)
	}
	// A new volume gets the owner of the folder below it, which must therefore be in the image.
	build, err := os.ReadFile("build")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(build), `/rootfs/tokens"/{client,relay,server}`) {
		t.Error("images/build makes no folder for each node's token")
	}
}

// A command line is read by every user of the machine (/proc/PID/cmdline), an environment
// by the process's own user and root.
func TestNoSecretOnACommandLine(t *testing.T) {
	for _, file := range []string{"docker-compose.yml", "docker-compose.tls.yml"} {
		for name, s := range services(t, file) {
			for _, word := range s.Command {
				if strings.Contains(word, "PASSWORD") || strings.Contains(word, "LINKTRIAL_TOKEN") {
					t.Errorf("%s: %s has a secret on its command line", file, name)
				}
			}
		}
	}
	if url := services(t, "docker-compose.yml")["orchestrator"].Environment["LINKTRIAL_DATABASE"]; !strings.Contains(url, "PASSWORD") {
		t.Errorf("LINKTRIAL_DATABASE is %q", url)
	}
}
