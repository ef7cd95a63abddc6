package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"linktrial/internal/inputfile"
)

// maxEnvFile bounds a file of settings, in bytes: one has some hundred.
const maxEnvFile = 1 << 20

// envFile is a file of settings, as systemd reads those of EnvironmentFile=
// (systemd.exec(5)): lines of KEY=VALUE, quotes, comments, and lines that go on after a
// backslash. Of several lines with one key the last counts.
type envFile struct {
	text  string
	lines []assignment
	// open is what the text ends within, so that nothing can be added to it; empty: nothing.
	open string
	// escaped is set where the text ends with a backslash, which takes the next character.
	escaped bool
}

// assignment is KEY=VALUE in a text, from its first byte to after the end of its line.
type assignment struct {
	key, value string
	from, to   int
}

// readEnvFile reads a file; one that does not exist is empty, and there is false.
func readEnvFile(path string) (f envFile, there bool, err error) {
	b, err := inputfile.Read(path, maxEnvFile)
	if errors.Is(err, fs.ErrNotExist) {
		return envFile{}, false, nil
	}
	if err != nil {
		return envFile{}, false, err
	}
	f = parseEnvFile(string(b))
	if f.open != "" {
		return envFile{}, true, fmt.Errorf("%s ends within %s: close it", path, f.open)
	}
	return f, true, nil
}

// The states of [parser], with the names that systemd has for them
// (parse_env_file_internal of src/basic/env-file.c).
type parseState int

const (
	preKey parseState = iota
	inKey
	preValue
	inValue
	valueEscape
	singleQuoted
	doubleQuoted
	doubleQuotedEscape
	inComment
	commentEscape
)

// parser reads a text byte by byte.
type parser struct {
	f          envFile
	state      parseState
	key, value strings.Builder
	from       int // of the line
	kept       int // length of the value without spaces at its end that nothing quotes
}

func parseEnvFile(text string) envFile {
	p := parser{f: envFile{text: text}}
	for i := range len(text) {
		p.next(text[i], i)
	}
	switch p.state {
	case preValue, inValue, valueEscape:
		p.f.escaped = p.state == valueEscape
		p.keep(len(text))
	case singleQuoted, doubleQuoted, doubleQuotedEscape:
		p.f.open = "quotes"
	case commentEscape:
		p.f.escaped = true
	case preKey, inKey, inComment:
	}
	return p.f
}

func lineEnd(c byte) bool { return c == '\n' || c == '\r' }
func blank(c byte) bool   { return c == ' ' || c == '\t' || lineEnd(c) }

// next takes the byte at i.
func (p *parser) next(c byte, i int) {
	switch p.state {
	case preKey:
		switch {
		case c == '#' || c == ';':
			p.state = inComment
		case !blank(c):
			p.state, p.from = inKey, i
			p.key.Reset()
			p.value.Reset()
			p.kept = 0
			p.key.WriteByte(c)
		}
	case inKey:
		switch {
		case lineEnd(c): // no assignment
			p.state = preKey
		case c == '=':
			p.state = preValue
		default:
			p.key.WriteByte(c)
		}
	case inComment:
		switch {
		case c == '\\':
			p.state = commentEscape
		case lineEnd(c):
			p.state = preKey
		}
	case commentEscape:
		p.state = inComment
	default:
		p.nextOfValue(c, i)
	}
}

func (p *parser) nextOfValue(c byte, i int) {
	switch p.state {
	case preValue:
		switch {
		case lineEnd(c):
			p.keep(i + 1)
		case c == '\'':
			p.state = singleQuoted
		case c == '"':
			p.state = doubleQuoted
		case c == '\\':
			p.state = valueEscape
		case !blank(c):
			p.state = inValue
			p.add(c)
		}
	case inValue:
		switch {
		case lineEnd(c):
			p.keep(i + 1)
		case c == '\\':
			p.state = valueEscape
		case blank(c):
			p.value.WriteByte(c)
		default:
			p.add(c)
		}
	case valueEscape:
		p.state = inValue
		if lineEnd(c) { // the line goes on
			p.kept = p.value.Len()
			return
		}
		p.add(c)
	case singleQuoted:
		if c == '\'' {
			p.state = preValue
			return
		}
		p.add(c)
	case doubleQuoted:
		switch c {
		case '"':
			p.state = preValue
		case '\\':
			p.state = doubleQuotedEscape
		default:
			p.add(c)
		}
	default: // doubleQuotedEscape
		p.state = doubleQuoted
		switch {
		case strings.IndexByte("\"\\`$", c) >= 0:
			p.add(c)
		case c != '\n':
			p.add('\\')
			p.add(c)
		}
	}
}

// add adds a byte that stays also where it ends the value.
func (p *parser) add(c byte) {
	p.value.WriteByte(c)
	p.kept = p.value.Len()
}

// keep ends an assignment whose line ends before to.
func (p *parser) keep(to int) {
	p.state = preKey
	p.f.lines = append(p.f.lines, assignment{key: strings.TrimRight(p.key.String(), " \t"), value: p.value.String()[:p.kept], from: p.from, to: to})
}

// get returns the value of a key; ok is false where the file does not have it.
func (f *envFile) get(key string) (value string, ok bool) {
	for i := range f.lines {
		if f.lines[i].key == key {
			value, ok = f.lines[i].value, true
		}
	}
	return value, ok
}

// set gives a key a value, in the place of the line that counts or at the end.
func (f *envFile) set(key, value string) error {
	if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return fmt.Errorf("%s=%.120q: expected text of one line without control characters", key, value)
	}
	line := key + "=" + quoteEnv(value) + "\n"
	for i := len(f.lines) - 1; i >= 0; i-- {
		if a := f.lines[i]; a.key == key {
			*f = parseEnvFile(f.text[:a.from] + line + f.text[a.to:])
			return nil
		}
	}
	*f = parseEnvFile(f.ended() + line)
	return nil
}

// unset removes all lines of a key.
func (f *envFile) unset(key string) {
	for i := len(f.lines) - 1; i >= 0; i-- {
		if a := f.lines[i]; a.key == key {
			*f = parseEnvFile(f.text[:a.from] + f.text[a.to:])
			f.unset(key)
			return
		}
	}
}

// ended is the text with an end of its last line.
func (f *envFile) ended() string {
	switch {
	case f.escaped:
		return f.text + "\n\n"
	case f.text == "" || lineEnd(f.text[len(f.text)-1]):
		return f.text
	}
	return f.text + "\n"
}

// quoteEnv writes a value so that systemd reads it as it is.
func quoteEnv(value string) string {
	plain := func(r rune) bool {
		return r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:@%+,=[]", r))
	}
	if !strings.ContainsFunc(value, func(r rune) bool { return !plain(r) }) {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`).Replace(value) + `"`
}
