package uml

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"linktrial/internal/process"
)

// build is one building of a kernel in a folder of its own.
type build struct {
	BuildConfig
	dir string
}

func (b *build) run(ctx context.Context) (Kernel, error) {
	src, err := b.fetch(ctx)
	if err != nil {
		return Kernel{}, err
	}
	k := Kernel{Version: src.version, Note: src.note}
	tree, out := filepath.Join(b.dir, "tree"), filepath.Join(b.dir, "out")
	if err := b.unpack(ctx, src, tree); err != nil {
		return k, err
	}
	if err := b.patch(ctx, tree); err != nil {
		return k, err
	}
	if err := b.compile(ctx, tree, out); err != nil {
		return k, err
	}
	program := filepath.Join(out, programName)
	b.Progress("check", 0)
	if err := check(ctx, program); err != nil {
		return k, fmt.Errorf("the kernel does not do what the lab needs: %w", err)
	}
	k.Built = time.Now().UTC().Truncate(time.Second)
	b.Progress("check", 1)
	return commit(b.CacheDir, program, k)
}

// neededTools are the programs of a build and the packages they come in.
var neededTools = []struct{ program, pkg string }{
	{"apt-get", "apt"}, {"dpkg-deb", "dpkg"}, {"tar", "tar"}, {"xz", "xz-utils"}, {"patch", "patch"},
	{"make", "make"}, {"gcc", "gcc"}, {"ld", "binutils"}, {"flex", "flex"}, {"bison", "bison"}, {"bc", "bc"}, {"perl", "perl"},
}

func tools() error {
	var missing []string
	for _, t := range neededTools {
		if _, err := exec.LookPath(t.program); err != nil {
			missing = append(missing, fmt.Sprintf("%s (package %s)", t.program, t.pkg))
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("building the guest kernel needs %s: install it with 'scripts/install-deps kernel'", strings.Join(missing, ", "))
	}
	return nil
}

// foreign is the parts of the source tree that no build of the guest reads, which
// is most of it. The Kconfig files and Makefiles are kept because the
// configuration refers to them.
var foreign = []string{
	"*/Documentation/*.rst", "*/Documentation/*.yaml", "*/Documentation/*.txt", "*/tools/testing", "*/tools/perf",
	"*/arch/[!ux]*/*.[chS]", "*/arch/*/*.dts*", "*/drivers/gpu/*.[ch]", "*/drivers/media/*.[ch]", "*/drivers/staging/*.[ch]",
	"*/sound/*.[ch]", "*/drivers/net/ethernet/*.[ch]", "*/drivers/net/wireless/*.[ch]", "*/drivers/infiniband/*.[ch]", "*/drivers/scsi/*.[ch]",
}

func (b *build) unpack(ctx context.Context, src source, tree string) error {
	b.Progress("unpack", 0)
	deb := filepath.Join(b.dir, "package")
	if err := b.command(ctx, b.dir, nil, "dpkg-deb", "-x", src.file, deb); err != nil {
		return err
	}
	if err := os.Remove(src.file); err != nil {
		return err
	}
	b.Progress("unpack", 0.2)
	archives, err := filepath.Glob(filepath.Join(deb, "usr", "src", "linux-source-*.tar.xz"))
	if err != nil {
		return err
	}
	if len(archives) != 1 {
		return fmt.Errorf("package %s has %d archives of sources, expected one", src.pkg, len(archives))
	}
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	args := []string{"-xJf", archives[0], "-C", tree, "--strip-components=1", "--wildcards"}
	for _, f := range foreign {
		args = append(args, "--exclude="+f)
	}
	if err := b.command(ctx, b.dir, nil, "tar", args...); err != nil {
		return err
	}
	b.Progress("unpack", 1)
	return os.RemoveAll(deb)
}

// patch applies the recipe's patches and adds its files.
func (b *build) patch(ctx context.Context, tree string) error {
	patches, err := fs.Glob(recipe, "kernel/patches/*.patch")
	if err != nil {
		return err
	}
	for _, p := range patches {
		text, err := recipe.ReadFile(p)
		if err != nil {
			return err
		}
		if err := b.command(ctx, tree, text, "patch", "-p1", "--force", "--no-backup-if-mismatch"); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(p), err)
		}
	}
	added, err := fs.Sub(recipe, "kernel/tree")
	if err != nil {
		return err
	}
	return fs.WalkDir(added, ".", func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := fs.ReadFile(added, path)
		if err != nil {
			return err
		}
		// O_EXCL: a file of that name in a newer tree is not ours to replace.
		f, err := os.OpenFile(filepath.Join(tree, path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		return errors.Join(err, f.Close())
	})
}

// compileLines is how many lines make prints: for the progress alone.
const compileLines = 1140

func (b *build) compile(ctx context.Context, tree, out string) error {
	b.Progress("configure", 0)
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	makeArgs := func(args ...string) []string { return append([]string{"O=" + out, "ARCH=um"}, args...) }
	if err := b.command(ctx, tree, nil, "make", makeArgs("tinyconfig")...); err != nil {
		return err
	}
	fragment, err := recipe.ReadFile("kernel/config")
	if err != nil {
		return err
	}
	config := filepath.Join(out, ".config")
	f, err := os.OpenFile(config, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(fragment)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := b.command(ctx, tree, nil, "make", makeArgs("olddefconfig")...); err != nil {
		return err
	}
	got, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	if err := checkOptions(fragment, got); err != nil {
		return err
	}
	b.Progress("compile", 0)
	lines := 0
	return b.follow(ctx, tree, func(string) {
		lines++
		b.Progress("compile", min(0.99, float64(lines)/compileLines))
	}, "make", makeArgs(fmt.Sprintf("-j%d", b.Jobs), programName)...)
}

// checkOptions returns an error that names the options of a fragment that a
// configuration does not have.
func checkOptions(fragment, config []byte) error {
	has := map[string]bool{}
	for l := range strings.Lines(string(config)) {
		has[strings.TrimSpace(l)] = true
	}
	var lost []string
	for l := range strings.Lines(string(fragment)) {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "CONFIG_") && !has[l] {
			lost = append(lost, l)
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("this kernel's configuration does not have %s", strings.Join(lost, ", "))
	}
	return nil
}

// environment of a build: nothing of the shell's settings, and nothing that
// differs between two builds of the same source.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive",
		"KBUILD_BUILD_TIMESTAMP=1970-01-01", "KBUILD_BUILD_USER=linktrial", "KBUILD_BUILD_HOST=lab"}
}

func (b *build) command(ctx context.Context, dir string, stdin []byte, name string, args ...string) error {
	_, err := runCommand(ctx, dir, stdin, nil, name, args...)
	return err
}

func (b *build) follow(ctx context.Context, dir string, line func(string), name string, args ...string) error {
	_, err := runCommand(ctx, dir, nil, line, name, args...)
	return err
}

// runCommand runs a program until it ends or ctx does, and then ends its children
// too. The error has the last lines of its output.
func runCommand(ctx context.Context, dir string, stdin []byte, line func(string), name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, environment()
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	err = process.Start(cmd)
	w.Close()
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	end := context.AfterFunc(ctx, func() { killGroup(cmd.Process.Pid) })
	defer end()
	said := readAll(r, line)
	err = cmd.Wait()
	if ctx.Err() != nil {
		return said, ctx.Err()
	}
	if err != nil {
		return said, fmt.Errorf("%s: %w: %s", name, err, lastLines(said, 5))
	}
	return said, nil
}

// outputLimit bounds how much of a program's output is kept, in bytes.
const outputLimit = 1 << 20

func readAll(r io.Reader, line func(string)) string {
	var said strings.Builder
	in := bufio.NewReader(r)
	for {
		text, err := in.ReadString('\n')
		if said.Len() > outputLimit {
			rest := said.String()[said.Len()-outputLimit/2:]
			said.Reset()
			said.WriteString(rest)
		}
		said.WriteString(text)
		if line != nil && text != "" {
			line(strings.TrimRight(text, "\n"))
		}
		if err != nil {
			return said.String()
		}
	}
}

func lastLines(s string, n int) string {
	l := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(l[max(0, len(l)-n):], " | ")
}
