// Command handbook writes the documents of a checkout as HTML that is read without a network:
// from a folder, or as the orchestrator serves it at /handbook/.
//
// Every document becomes a page at the same place with the ending .html, a README.md the
// index.html of its folder. The order of the contents is that of the section "Where things
// are" of the README. A link whose target does not exist is an error, and so is raw HTML.
// The same documents give the same bytes.
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	root := flag.String("root", ".", "the checkout")
	out := flag.String("out", "build/handbook/html", "the folder to write; what an earlier handbook left there is removed")
	flag.Parse()
	files, err := handbook(os.DirFS(*root))
	if err == nil {
		err = write(*out, files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "handbook:", err)
		os.Exit(1)
	}
	fmt.Printf("%s: %d files, %d KB\n", *out, len(files), size(files)/1024)
}

// size is the number of bytes of all files together.
func size(files map[string][]byte) (n int) {
	for _, b := range files {
		n += len(b)
	}
	return n
}

// handbook returns the files of the handbook of a checkout, by their names in it.
func handbook(checkout fs.FS) (map[string][]byte, error) {
	all, err := readDocuments(checkout)
	if err != nil {
		return nil, err
	}
	b := &book{checkout: checkout, documents: all, copied: map[string]bool{}}
	if err := b.resolve(); err != nil {
		return nil, err
	}
	files, err := b.pages()
	if err != nil {
		return nil, err
	}
	for name := range b.copied {
		if files[name], err = fs.ReadFile(checkout, name); err != nil {
			return nil, err
		}
	}
	return files, addAssets(checkout, files)
}

// firstPage is the page of the checkout's README.
const firstPage = "index.html"

// keep is a file of the checkout that keeps the folder of the embedded handbook.
const keep = ".keep"

// write makes dir hold the files and nothing else. It refuses a folder with anything in it
// that is no handbook.
func write(dir string, files map[string][]byte) error {
	there, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	there = slices.DeleteFunc(there, func(e os.DirEntry) bool { return e.Name() == keep })
	if len(there) > 0 {
		if _, err := os.Stat(filepath.Join(dir, styleSheet)); err != nil {
			return fmt.Errorf("%s is not empty, and it is no handbook: it has no %s. Expected an empty folder, or an older handbook", dir, styleSheet)
		}
	}
	for _, e := range there {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	// make looks at the first page: it is there when all others are.
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(name string) bool { return name == firstPage })
	for _, name := range append(names, firstPage) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
