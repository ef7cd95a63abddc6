// Laptop builds the laptop packages of the programs that make build has left: a .deb and a
// tar with gzip (bundle/laptop). In: the folder with program and drivers, the checkout, the
// PostgreSQL of this machine. Out: two files, whose names it prints.
//
//	go run ./tools/laptop -bin bin -out build
//
// The time of every file in them is SOURCE_DATE_EPOCH, or that of the commit, so that one
// commit gives the same bytes each time.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"linktrial/bundle/laptop"
	"linktrial/internal/scratch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	bin := flag.String("bin", "bin", "folder with the program linktrial and the folders drivers and typst")
	handbook := flag.String("handbook", filepath.Join("build", "handbook"), "folder with the documents: html and man")
	out := flag.String("out", "build", "folder of the packages")
	flag.Parse()
	if err := run(ctx, *bin, *handbook, *out); err != nil {
		fmt.Fprintln(os.Stderr, "laptop:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, bin, handbook, out string) error {
	program := filepath.Join(bin, "linktrial")
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%w: make build first", err)
	}
	version, err := versionOf(ctx, program)
	if err != nil {
		return err
	}
	modified, err := sourceDate(ctx)
	if err != nil {
		return err
	}
	database, err := laptop.FindPostgreSQL()
	if err != nil {
		return err
	}
	scrap, err := scratch.New("linktrial-completion-")
	if err != nil {
		return err
	}
	defer func() { _ = scrap.Remove() }() // what stays, the next one removes
	cfg := laptop.Config{Out: out, Version: version, Program: program, Drivers: filepath.Join(bin, "drivers"), PostgreSQL: database, Typst: filepath.Join(bin, "typst"),
		Folders: folders(handbook), Modified: modified,
		Files: map[string]string{
			"lib/systemd/system/linktrial-orchestrator.service": "playbooks/roles/orchestrator/files/linktrial-orchestrator.service",
			"lib/systemd/system/linktrial-agent.service":        "playbooks/roles/agent/files/linktrial-agent.service",
			"share/doc/linktrial/copyright":                     "LICENSE",
		}}
	if err := completions(ctx, program, scrap.Path, cfg.Files); err != nil {
		return err
	}
	p, err := laptop.Build(ctx, cfg)
	if err != nil {
		return err
	}
	for _, file := range p.Files {
		st, err := os.Stat(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %.1f MiB, version %s, for libc %s and newer\n", file, float64(st.Size())/(1<<20), p.Version, p.Libc)
		fmt.Println(file)
	}
	return nil
}

// folders lists what the checkout has for a package, by its place there. Documents are in
// it where they have been made.
func folders(handbook string) map[string]string {
	all := map[string]string{
		"share/linktrial/plans":          "plans",
		"share/linktrial/radio-profiles": "radio-profiles",
		"share/linktrial/topologies":     "topologies",
		"share/linktrial/monitoring":     "monitoring",
		"share/doc/linktrial/licences":   "licences",
	}
	for place, from := range map[string]string{"share/doc/linktrial/html": "html", "share/man": "man"} {
		from = filepath.Join(handbook, from)
		if st, err := os.Stat(from); err == nil && st.IsDir() {
			all[place] = from
		} else {
			fmt.Fprintf(os.Stderr, "the package has no %s: there is no folder %s\n", place, from)
		}
	}
	return all
}

// versionOf asks a program for its version.
func versionOf(ctx context.Context, program string) (string, error) {
	out, err := exec.CommandContext(ctx, program, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", program, err)
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "linktrial version ")
	if !ok {
		return "", fmt.Errorf("%s --version printed %.100q, expected \"linktrial version …\"", program, out)
	}
	return version, nil
}

// sourceDate is SOURCE_DATE_EPOCH or the time of the commit that is checked out.
func sourceDate(ctx context.Context) (time.Time, error) {
	from, text := "SOURCE_DATE_EPOCH", os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("time of the commit: git log: %w; or set SOURCE_DATE_EPOCH", err)
		}
		from, text = "git log", strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s %q, expected seconds since 1970", from, text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// completions has a program write its completions into scrap, and adds these files.
func completions(ctx context.Context, program, scrap string, files map[string]string) error {
	for shell, place := range map[string]string{
		"bash": "share/bash-completion/completions/linktrial",
		"zsh":  "share/zsh/vendor-completions/_linktrial",
		"fish": "share/fish/vendor_completions.d/linktrial.fish",
	} {
		out, err := exec.CommandContext(ctx, program, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("%s completion %s: %w", program, shell, err)
		}
		files[place] = filepath.Join(scrap, shell)
		if err := os.WriteFile(files[place], out, 0o644); err != nil {
			return err
		}
	}
	return nil
}
