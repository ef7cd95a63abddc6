package evidence

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the names of files in a bag, in bytes: what all usual file systems take.
const (
	maxName    = 1024
	maxSegment = 255
)

// checkName returns why a file of this name cannot be in a bag: what it leads to has to be in
// the bag's folder, on every system.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty")
	case len(name) > maxName:
		return fmt.Errorf("the name has %d bytes, expected at most %d", len(name), maxName)
	case !utf8.ValidString(name):
		return errors.New("the name is not UTF-8")
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }):
		return errors.New("the name has a control character")
	case strings.HasPrefix(name, "/"):
		return errors.New("the name is absolute, expected one below the bag's folder")
	case len(name) > 1 && name[1] == ':':
		return errors.New("the name begins with a drive letter")
	case strings.ContainsAny(name, `\:`):
		return errors.New("the name has a backslash or a colon")
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "..":
			return errors.New("the name has .. and leads out of the bag")
		case part == "" || part == ".":
			return errors.New("the name has an empty part or a dot alone")
		case len(part) > maxSegment:
			return fmt.Errorf("a part of the name has %d bytes, expected at most %d", len(part), maxSegment)
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
			return errors.New("a part of the name ends in a dot or a space")
		}
	}
	return nil
}

// nameSet finds names that would be the same file on some system.
type nameSet struct {
	files   map[string]string // folded name: as it was given
	folders map[string]string
}

func newNameSet() *nameSet { return &nameSet{map[string]string{}, map[string]string{}} }

// fold makes names the same that differ in their case alone.
func fold(name string) string { return strings.ToLower(strings.ToUpper(name)) }

// add takes a checked name of a file, and returns why it cannot be beside the others.
func (s *nameSet) add(name string) error {
	key := fold(name)
	switch first, twice := s.files[key]; {
	case twice && first == name:
		return errors.New("the name is there twice")
	case twice:
		return fmt.Errorf("the name differs from %s in the case of letters alone", first)
	}
	if s.folders[key] != "" {
		return errors.New("the name is of a file and of a folder")
	}
	s.files[key] = name
	for i := range name {
		if name[i] != '/' {
			continue
		}
		folder := fold(name[:i])
		switch first := s.folders[folder]; {
		case s.files[folder] != "":
			return fmt.Errorf("it is in %s, which is a file", name[:i])
		case first != "" && first != name[:i]:
			return fmt.Errorf("its folder differs from %s in the case of letters alone", first)
		}
		s.folders[folder] = name[:i]
	}
	return nil
}
