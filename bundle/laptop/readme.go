package laptop

import (
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"strings"
	"text/template"
)

//go:embed README.txt
var readmeText string

var readmeTemplate = template.Must(template.New("README.txt").Parse(readmeText))

// writeReadme writes what a person reads first. Every file of the package that it names is
// in the package: folder, which takes the place of /usr, begins each name.
func (t tree) writeReadme(to, folder string) error {
	var text strings.Builder
	err := readmeTemplate.Execute(&text, struct {
		Usr       string
		Tar       bool
		HTML, Man bool
	}{folder, folder != "/usr/", t.has("share/doc/linktrial/html"), t.has("share/man")})
	if err != nil {
		return fmt.Errorf("package: README.txt: %w", err)
	}
	for _, name := range placesNamed(text.String()) {
		if !t.has(name) {
			return fmt.Errorf("package: README.txt names %s, which is not in the package", name)
		}
	}
	if err := os.WriteFile(to, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("package: %w", err)
	}
	return nil
}

// place is a file or folder of the package in a text, with or without /usr before it.
var place = regexp.MustCompile(`(?:^|[\s'"(])(?:/usr/)?((?:bin|lib|share)/[A-Za-z0-9._/-]+)`)

// placesNamed returns the places that a text names.
func placesNamed(text string) []string {
	var out []string
	for _, found := range place.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.TrimRight(found[1], "./"))
	}
	return out
}

// has reports whether there is a file or folder at a place.
func (t tree) has(name string) bool {
	for at := range t {
		if at == name || strings.HasPrefix(at, name+"/") {
			return true
		}
	}
	return false
}
