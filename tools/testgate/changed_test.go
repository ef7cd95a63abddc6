package main

import (
	"slices"
	"testing"
)

func TestReached(t *testing.T) {
	var all []goPackage
	for _, name := range []string{"a", "b", "b/deep", "c"} {
		p := goPackage{ImportPath: "m/" + name}
		p.Module.Path = "m"
		all = append(all, p)
	}
	deps := []imports{
		{ImportPath: "m/a"}, {ImportPath: "m/b", Deps: []string{"m/a"}}, {ImportPath: "m/b/deep"}, {ImportPath: "m/c"},
		{ImportPath: "m/c [m/c.test]", ForTest: "m/c", Deps: []string{"fmt", "m/b/deep"}},
		{ImportPath: "m/c.test", Deps: []string{"m/c [m/c.test]", "m/b/deep"}},
	}
	for name, c := range map[string]struct {
		files, want []string
	}{
		"nothing":                       {nil, nil},
		"a package and who imports it":  {[]string{"a/a.go"}, []string{"m/a", "m/b"}},
		"through the tests of another":  {[]string{"b/deep/d.go"}, []string{"m/b/deep", "m/c"}},
		"data below a package's folder": {[]string{"c/testdata/x/y.txt"}, []string{"m/c"}},
		"no package":                    {[]string{"README.md", "docs/x.md"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range reached(all, deps, c.files) {
				got = append(got, p.ImportPath)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, expected %v", got, c.want)
			}
		})
	}
}
