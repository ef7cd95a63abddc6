package importrules

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layered packages list their files in doc.go from the top down.
var layered = []string{"agents/agent", "agents/radioset", "executor", "orchestrator/report", "protocols/haul/core"}

// TestFilesCallDownward holds that no file of a layered package uses a function,
// method, type, variable or constant of one that its doc.go lists above it.
func TestFilesCallDownward(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range layered {
		t.Chdir(filepath.Join(root, dir))
		fset := token.NewFileSet()
		files, names := parseFiles(t, fset)
		doc, err := os.ReadFile("doc.go")
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, item := range regexp.MustCompile(`(?m)^//   - ([a-z, ]+):`).FindAllStringSubmatch(string(doc), -1) {
			order = append(order, strings.Split(item[1], ", ")...)
		}
		if want := slices.Sorted(slices.Values(order)); !slices.Equal(want, names) {
			t.Fatalf("%s/doc.go lists %v, and the files are %v", dir, want, names)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		config := types.Config{Importer: importer.ForCompiler(fset, "gc", exported(t))}
		p, err := config.Check(dir, fset, files, info)
		if err != nil {
			t.Fatal(err)
		}
		place := func(at token.Pos) int {
			return slices.Index(order, strings.TrimSuffix(filepath.Base(fset.Position(at).Filename), ".go"))
		}
		for id, o := range info.Uses {
			if v, ok := o.(*types.Var); o.Pkg() != p || ok && v.IsField() {
				continue
			}
			if from, to := place(id.Pos()), place(o.Pos()); to < from {
				t.Errorf("%s uses %s of %s.go, which %s/doc.go lists above it", fset.Position(id.Pos()), o.Name(), order[to], dir)
			}
		}
	}
}

// exported opens what the compiler has exported of the packages that the folder's needs.
func exported(t *testing.T) func(path string) (io.ReadCloser, error) {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}").Output()
	if err != nil {
		t.Fatalf("go list -export: %v", err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

// parseFiles reads the sources of the folder, without tests and doc.go.
func parseFiles(t *testing.T, fset *token.FileSet) (files []*ast.File, names []string) {
	t.Helper()
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if strings.HasSuffix(path, "_test.go") || path == "doc.go" {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files, names = append(files, f), append(names, strings.TrimSuffix(path, ".go"))
	}
	return files, names
}
