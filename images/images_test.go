package images

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"linktrial/internal/enginetest"
)

// command runs a program at the top of the checkout.
func command(t *testing.T, environment []string, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), environment...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %q: %w: %s", name, args, err, complaint.String())
	}
	return string(out), err
}

// needsPlugin skips the test where docker lacks a plugin that builds or runs the images.
func needsPlugin(t *testing.T, plugin string) {
	t.Helper()
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("docker is not installed (scripts/install-deps docker)")
	}
	if out, err := exec.Command("docker", plugin, "version").CombinedOutput(); err != nil {
		t.Skipf("docker has no %s (scripts/install-deps docker): %s", plugin, bytes.TrimSpace(out))
	}
}

// The same files give the same image, at any time and from any folder.
func TestDigestsAreReproducible(t *testing.T) {
	needsPlugin(t, "buildx")
	engine := enginetest.Start(t)
	dir := t.TempDir()
	var ids []string
	for i, build := range []struct{ bin, tag string }{{"a", "one"}, {"b", "one"}, {"c", "two"}} {
		driver := filepath.Join(dir, build.bin, "drivers", "tcp")
		if err := os.MkdirAll(driver, 0o700+os.FileMode(i)); err != nil {
			t.Fatal(err)
		}
		// Other times and permissions, as in another clone.
		for name, content := range map[string]string{"tcp": "#!/bin/false\n", "driver.yaml": "name: tcp\n"} {
			file := filepath.Join(driver, name)
			if err := os.WriteFile(file, []byte(content), 0o640+os.FileMode(i)); err != nil {
				t.Fatal(err)
			}
			at := time.Unix(int64(1e9+i*1e6), 0)
			if err := os.Chtimes(file, at, at); err != nil {
				t.Fatal(err)
			}
		}
		out, err := command(t, []string{"DOCKER_HOST=" + engine.Host, "BIN=" + filepath.Join(dir, build.bin), "CONTEXT=" + filepath.Join(dir, "context", build.bin),
			"PREFIX=test/", "TAG=" + build.tag, "NO_CACHE=1", "SOURCE_DATE_EPOCH=1700000000"}, "images/build", "tcp")
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(out)
		if len(fields) != 4 || !strings.HasPrefix(fields[1], "sha256:") {
			t.Fatalf("images/build prints %q", out)
		}
		ids = append(ids, fields[1])
	}
	if ids[0] != ids[1] {
		t.Errorf("the same files gave %s and %s", ids[0], ids[1])
	}
	if ids[0] == ids[2] {
		t.Error("another version gave the same image: the comparison says nothing")
	}
}

// composed is the configuration that docker reads from compose files.
type composed struct {
	Services map[string]struct {
		Image       string   `json:"image"`
		Command     []string `json:"command"`
		CapDrop     []string `json:"cap_drop"`
		CapAdd      []string `json:"cap_add"`
		Privileged  bool     `json:"privileged"`
		NetworkMode string   `json:"network_mode"`
		Ports       []struct {
			HostIP string `json:"host_ip"`
		} `json:"ports"`
		Environment map[string]string `json:"environment"`
	} `json:"services"`
	Networks map[string]struct {
		Internal bool `json:"internal"`
	} `json:"networks"`
}

func compose(t *testing.T, files ...string) composed {
	t.Helper()
	needsPlugin(t, "compose")
	args := []string{"compose"}
	for _, f := range files {
		args = append(args, "--file", f)
	}
	args = append(args, "--profile", "*", "config", "--format", "json")
	if _, err := command(t, []string{"LINKTRIAL_DATABASE_PASSWORD="}, "docker", args...); err == nil || !strings.Contains(err.Error(), "expected the password of the database") {
		t.Errorf("without a password of the database: %v", err)
	}
	out, err := command(t, []string{"LINKTRIAL_DATABASE_PASSWORD=of-this-test"}, "docker", args...)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out, "of-this-test"); n != 2 || strings.Contains(out, "linktrial:linktrial@") {
		t.Errorf("the password is there %d times, expected the database's and the orchestrator's", n)
	}
	var c composed
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestComposeFiles(t *testing.T) {
	const plain, tls = "docker-compose.yml", "docker-compose.tls.yml"
	for name, files := range map[string][]string{"plain": {plain}, "TLS": {plain, tls}} {
		t.Run(name, func(t *testing.T) {
			c := compose(t, files...)
			for _, want := range []string{"database", "orchestrator", "radios", "client", "relay", "server", "approve", "quickstart"} {
				s, ok := c.Services[want]
				if !ok {
					t.Errorf("no service %s", want)
					continue
				}
				image := strings.TrimSuffix(strings.TrimPrefix(s.Image, "linktrial/"), ":latest")
				if _, err := os.Stat(filepath.Join(image, "Dockerfile")); err != nil {
					t.Errorf("%s: image %s: %v", want, s.Image, err)
				}
				if !slices.Equal(s.CapDrop, []string{"ALL"}) || s.Privileged {
					t.Errorf("%s: drops %q, privileged %t", want, s.CapDrop, s.Privileged)
				}
				for _, p := range s.Ports {
					if p.HostIP != "127.0.0.1" {
						t.Errorf("%s is published on %q", want, p.HostIP)
					}
				}
				for _, word := range s.Command {
					if plan, ok := strings.CutPrefix(word, "/plans/"); ok {
						if _, err := os.Stat(filepath.Join("..", "plans", plan)); err != nil {
							t.Errorf("%s: %v", want, err)
						}
					}
				}
				scheme, _, _ := strings.Cut(s.Environment["LINKTRIAL_ORCHESTRATOR"], ":")
				if encrypted := scheme == "https"; scheme != "" && encrypted != (name == "TLS") {
					t.Errorf("%s calls %s", want, s.Environment["LINKTRIAL_ORCHESTRATOR"])
				}
			}
			// Whom the orchestrator takes for a program of its own machine.
			if mode := c.Services["approve"].NetworkMode; mode != "service:orchestrator" {
				t.Errorf("approve is in the network %q", mode)
			}
			if !c.Networks["control"].Internal {
				t.Error("the control network is not closed")
			}
			serve := c.Services["orchestrator"].Command
			if !slices.Contains(serve, "--allow-host=orchestrator") && !slices.Contains(serve, "--tls-name=orchestrator") {
				t.Errorf("the orchestrator does not answer under its service's name: %q", serve)
			}
			if open := slices.Contains(serve, "--open"); open == (name == "TLS") {
				t.Errorf("the orchestrator's --open is %t", open)
			}
			for _, node := range []string{"client", "relay", "server"} {
				if has := slices.Contains(c.Services[node].Command, "--token-file=/tokens/"+node+".token"); has != (name == "TLS") {
					t.Errorf("%s: %q", node, c.Services[node].Command)
				}
			}
		})
	}
}
