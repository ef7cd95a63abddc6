package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// checkout writes the smallest tree that has every input and output.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"api/proto/linktrial/v1/a.proto":           "message A {}",
		"api/buf.yaml":                             "version: v2",
		"api/buf.gen.yaml":                         "version: v2",
		"migrations/00001_a.sql":                   "CREATE TABLE a ();",
		"orchestrator/store/queries/a.sql":         "SELECT 1;",
		"orchestrator/rpc/results/queries/a.sql":   "SELECT 1;",
		"orchestrator/rpc/results/resultsdb/a.go":  "package resultsdb",
		"sqlc.yaml":                                "version: 2",
		"scripts/generate":                         "sqlc=v1",
		"tools/package-lock.json":                  "{}",
		"protocols/tcp/bpf/kernel/a.c":             "int a;",
		"protocols/tcp/bpf/objects/a.o":            "ELF",
		"web/package-lock.json":                    `{"packages": {"node_modules/@bufbuild/protoc-gen-es": {"version": "2.0.0", "integrity": "sha512-a"}, "node_modules/vue": {"version": "3.5.0"}}}`,
		"api/gen/linktrial/v1/a.pb.go":             "package v1",
		"orchestrator/store/storedb/a.sql.go":      "package storedb",
		"web/src/gen/linktrial/v1/a_pb.ts":         "export {}",
		"tools/generated/neither-input-nor-output": "",
	} {
		put(t, root, name, content)
	}
	return root
}

func put(t *testing.T, root, name, content string) {
	t.Helper()
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestVerifyNamesWhatChanged(t *testing.T) {
	cases := map[string]struct {
		change func(t *testing.T, root string)
		want   string // "" for no error
	}{
		"nothing":              {func(*testing.T, string) {}, ""},
		"a proto file":         {func(t *testing.T, root string) { put(t, root, "api/proto/linktrial/v1/a.proto", "message B {}") }, "api/proto/linktrial/v1/a.proto changed"},
		"a new proto file":     {func(t *testing.T, root string) { put(t, root, "api/proto/linktrial/v1/b.proto", "") }, "api/proto/linktrial/v1/b.proto is new"},
		"a query":              {func(t *testing.T, root string) { put(t, root, "orchestrator/store/queries/a.sql", "SELECT 2;") }, "orchestrator/store/queries/a.sql changed"},
		"a new migration":      {func(t *testing.T, root string) { put(t, root, "migrations/00002_b.sql", "") }, "migrations/00002_b.sql is new"},
		"a congestion control": {func(t *testing.T, root string) { put(t, root, "protocols/tcp/bpf/kernel/a.c", "int b;") }, "protocols/tcp/bpf/kernel/a.c changed"},
		"a generator":          {func(t *testing.T, root string) { put(t, root, "scripts/generate", "sqlc=v2") }, "scripts/generate changed"},
		"a generated file":     {func(t *testing.T, root string) { put(t, root, "web/src/gen/linktrial/v1/a_pb.ts", "export { a }") }, "web/src/gen/linktrial/v1/a_pb.ts changed"},
		"an unrelated file":    {func(t *testing.T, root string) { put(t, root, "README.md", "new") }, ""},
		"another dependency":   {func(t *testing.T, root string) { edit(t, root, "web/package-lock.json", "3.5.0", "3.6.0") }, ""},
		"protoc-gen-es":        {func(t *testing.T, root string) { edit(t, root, "web/package-lock.json", "2.0.0", "2.1.0") }, "web/package-lock.json#node_modules/@bufbuild/protoc-gen-es changed"},
		"a removed output": {func(t *testing.T, root string) {
			if err := os.Remove(filepath.Join(root, "api/gen/linktrial/v1/a.pb.go")); err != nil {
				t.Fatal(err)
			}
		}, "api/gen/linktrial/v1/a.pb.go was removed"},
		"a broken manifest": {func(t *testing.T, root string) { put(t, root, manifestPath, "<<<<<<< HEAD\n") }, "<<<<<<< HEAD"},
		"no manifest": {func(t *testing.T, root string) {
			if err := os.Remove(filepath.Join(root, manifestPath)); err != nil {
				t.Fatal(err)
			}
		}, "run make generate"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := checkout(t)
			if err := run(os.DirFS(root), root, true); err != nil {
				t.Fatal(err)
			}
			c.change(t, root)
			err := run(os.DirFS(root), root, false)
			if c.want == "" && err != nil {
				t.Errorf("got %v, expected no error", err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, expected an error with %q", err, c.want)
			}
		})
	}
}

func TestMissingInputsAreAnError(t *testing.T) {
	root := checkout(t)
	if err := os.RemoveAll(filepath.Join(root, "orchestrator/store/queries")); err != nil {
		t.Fatal(err)
	}
	if err := run(os.DirFS(root), root, true); err == nil || !strings.Contains(err.Error(), "orchestrator/*/queries/*.sql") {
		t.Errorf("got %v, expected an error that names the missing inputs", err)
	}
}

func edit(t *testing.T, root, name, old, new string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	put(t, root, name, strings.ReplaceAll(string(b), old, new))
}
