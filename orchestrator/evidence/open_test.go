package evidence

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// entryMade is an entry of an archive that no bag has.
type entryMade struct {
	name    string
	content []byte
	mode    fs.FileMode
	flags   uint16
	method  uint16 // 99: none that anybody knows
}

// archiveOf is a ZIP of these entries.
func archiveOf(t testing.TB, entries ...entryMade) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	w.RegisterCompressor(99, func(w io.Writer) (io.WriteCloser, error) { return nopCloser{w}, nil })
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: e.method, Flags: e.flags}
		if h.Method == zip.Store {
			h.Method = zip.Deflate
		}
		if e.mode != 0 {
			h.SetMode(e.mode)
		}
		f, err := w.CreateHeader(h)
		require.NoError(t, err)
		if !strings.HasSuffix(e.name, "/") {
			_, err = f.Write(e.content)
			require.NoError(t, err)
		}
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// inBag is an entry of the folder that a bag has.
func inBag(name string) string { return Folder(madeCampaign) + "/" + name }

var small = Limits{Files: 100, File: 64 << 20, Total: 100 << 20, Ratio: 100}

// An archive that is no bag is refused, with the file that shows it.
func TestRefusedArchive(t *testing.T) {
	m := newMade(t)
	m.seal()
	good := m.zip()
	zeros := make([]byte, 32<<20)
	one := func(name string) []byte { return archiveOf(t, entryMade{name: name}) }
	many := make([]entryMade, 100_000)
	for i := range many {
		many[i].name = inBag(fmt.Sprintf("data/%d", i))
	}
	long := make([]entryMade, 20_000)
	for i := range long {
		long[i].name = inBag(fmt.Sprintf("data/%s%d", strings.Repeat("x", 900), i))
	}
	for name, c := range map[string]struct {
		archive []byte
		limits  Limits
		want    string
	}{
		"nothing":                  {nil, small, "trial.zip: it is no whole ZIP: zip: not a valid zip file"},
		"cut off":                  {good[:len(good)/2], small, "trial.zip: it is no whole ZIP: zip: not a valid zip file"},
		"no files":                 {archiveOf(t), small, "trial.zip: it has no files"},
		"out of the folder":        {one(inBag("../../etc/passwd")), small, `trial.zip: "linktrial-abcd2345/../../etc/passwd": the name has .. and leads out of the bag`},
		"absolute":                 {one("/etc/passwd"), small, `trial.zip: "/etc/passwd": the name is absolute, expected one below the bag's folder`},
		"drive letter":             {one("C:/x/y"), small, `trial.zip: "C:/x/y": the name begins with a drive letter`},
		"backslash":                {one(inBag(`..\x`)), small, `trial.zip: "linktrial-abcd2345/..\\x": the name has a backslash or a colon`},
		"stream of another system": {one(inBag("a:b")), small, `trial.zip: "linktrial-abcd2345/a:b": the name has a backslash or a colon`},
		"NUL":                      {one(inBag("a\x00b")), small, `trial.zip: "linktrial-abcd2345/a\x00b": the name has a control character`},
		"line break":               {one(inBag("a\nb")), small, `trial.zip: "linktrial-abcd2345/a\nb": the name has a control character`},
		"direction of writing":     {one(inBag("a\u202eb")), small, `trial.zip: "linktrial-abcd2345/a\u202eb": the name has a control character`},
		"not UTF-8":                {one(inBag("a\xff")), small, `trial.zip: "linktrial-abcd2345/a\xff": the name is not UTF-8`},
		"no name":                  {one(""), small, `trial.zip: "": the name is empty`},
		"dot":                      {one(inBag("./a")), small, `trial.zip: "linktrial-abcd2345/./a": the name has an empty part or a dot alone`},
		"dot at the end":           {one(inBag("a.")), small, `trial.zip: "linktrial-abcd2345/a.": a part of the name ends in a dot or a space`},
		"long name":                {one(inBag(strings.Repeat("a/", 600) + "a")), small, "the name has 1220 bytes, expected at most 1024"},
		"long part":                {one(inBag(strings.Repeat("a", 300))), small, "a part of the name has 300 bytes, expected at most 255"},
		"two folders":              {archiveOf(t, entryMade{name: "a/b"}, entryMade{name: "c/d"}), small, "trial.zip: c/d: it is not in the folder a, expected one folder in the archive"},
		"no folder":                {one("a"), small, "trial.zip: a: it is in no folder, expected one folder with all files"},
		"link":                     {archiveOf(t, entryMade{name: inBag("data/x"), mode: fs.ModeSymlink | 0o777, content: []byte("/etc/passwd")}), small, "trial.zip: linktrial-abcd2345/data/x: it is a link or a device, expected a file"},
		"device":                   {archiveOf(t, entryMade{name: inBag("data/x"), mode: fs.ModeDevice | 0o666}), small, "trial.zip: linktrial-abcd2345/data/x: it is a link or a device, expected a file"},
		"twice":                    {archiveOf(t, entryMade{name: inBag("a")}, entryMade{name: inBag("a")}), small, "trial.zip: linktrial-abcd2345/a: the name is there twice"},
		"twice in another case":    {archiveOf(t, entryMade{name: inBag("a")}, entryMade{name: inBag("A")}), small, "trial.zip: linktrial-abcd2345/A: the name differs from linktrial-abcd2345/a in the case of letters alone"},
		"folder in another case":   {archiveOf(t, entryMade{name: inBag("a/x")}, entryMade{name: inBag("A/y")}), small, "trial.zip: linktrial-abcd2345/A/y: its folder differs from linktrial-abcd2345/a in the case of letters alone"},
		"file and folder":          {archiveOf(t, entryMade{name: inBag("a")}, entryMade{name: inBag("a/b")}), small, "trial.zip: linktrial-abcd2345/a/b: it is in linktrial-abcd2345/a, which is a file"},
		"folder and file":          {archiveOf(t, entryMade{name: inBag("a/b")}, entryMade{name: inBag("a")}), small, "trial.zip: linktrial-abcd2345/a: the name is of a file and of a folder"},
		"encrypted":                {archiveOf(t, entryMade{name: inBag("a"), flags: 1}), small, "trial.zip: linktrial-abcd2345/a: it is encrypted"},
		"method":                   {archiveOf(t, entryMade{name: inBag("a"), method: 99}), small, "trial.zip: linktrial-abcd2345/a: it is compressed by method 99, expected stored or deflated"},
		"bomb":                     {archiveOf(t, entryMade{name: inBag("a"), content: zeros}), small, "bytes in the archive become 33554432, expected at most 100 times as many"},
		"large file":               {archiveOf(t, entryMade{name: inBag("a"), content: zeros}), Limits{Files: 1, File: 1 << 20, Total: 1 << 30, Ratio: 2000}, "trial.zip: linktrial-abcd2345/a: it has 33554432 bytes, expected at most 1048576"},
		"large in all": {archiveOf(t, entryMade{name: inBag("a"), content: zeros}, entryMade{name: inBag("b"), content: zeros}), Limits{Files: 2, File: 40 << 20, Total: 50 << 20, Ratio: 2000},
			"trial.zip: linktrial-abcd2345/b: with it the files have 67108864 bytes, expected at most 52428800"},
		"many files":         {archiveOf(t, many...), DefaultLimits(), "trial.zip: it has 100000 files, expected at most 50000"},
		"large directory":    {archiveOf(t, long...), DefaultLimits(), "trial.zip: its directory has more than 16777216 bytes, expected at most 50000 files"},
		"something before":   {append([]byte("#!/bin/sh\n#################################################\n"), good...), small, "trial.zip: linktrial-abcd2345/README.txt: the header before its content is not where it has to be"},
		"another local name": {bytes.Replace(good, []byte("README.txt"), []byte("README.exe"), 1), small, "the header before its content has another name or method than the archive's directory"},
		"no bag":             {one(inBag("data/x")), small, "trial.zip: manifest-sha256.txt: the bag does not have the file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openBytes(c.archive, c.limits)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// directoryAt is where the directory of a small archive has the entry of a file.
func directoryAt(t *testing.T, archive []byte, name string) []byte {
	t.Helper()
	i := bytes.LastIndex(archive, []byte(name))
	require.Greater(t, i, 46)
	entry := archive[i-46:]
	require.Equal(t, uint32(0x02014b50), binary.LittleEndian.Uint32(entry))
	return entry
}

// A size that is not the one of the content is found, before or as it is read.
func TestDeclaredSize(t *testing.T) {
	m := newMade(t)
	m.files[Plan] = bytes.Repeat([]byte("# a comment\n"), 100)
	m.seal()
	for size, want := range map[uint32]string{
		1:       "trial.zip: data/plan.yaml: it ",
		1 << 20: "trial.zip: data/plan.yaml: it cannot be read to its end",
	} {
		archive := m.zip()
		binary.LittleEndian.PutUint32(directoryAt(t, archive, inBag(Plan))[24:], size)
		bag, err := openBytes(archive, DefaultLimits())
		require.NoError(t, err)
		_, err = bag.Read(Plan, 2<<20)
		require.ErrorContains(t, err, want)
		v, err := Verify(t.Context(), bag, Known{}, nil)
		require.NoError(t, err)
		requireFinding(t, v, CheckDigests, Plan, "it ")
	}
}

// Two files of one content, as in a bomb that overlaps its files, are refused.
func TestOverlap(t *testing.T) {
	m := newMade(t)
	m.seal()
	archive := m.zip()
	plan, info := directoryAt(t, archive, inBag(Plan)), directoryAt(t, archive, inBag(Info))
	copy(plan[42:46], info[42:46]) // where its header is
	_, err := openBytes(archive, DefaultLimits())
	require.ErrorContains(t, err, "overlaps another file's")
}

// What manifests and index have is bounded and checked as a bag is opened.
func TestRefusedBag(t *testing.T) {
	sum := strings.Repeat("0", 64)
	index := func(change func(*Evidence)) func(*made) {
		return func(m *made) { change(&m.index) }
	}
	text := func(file, content string) func(*made) {
		return func(m *made) { m.files[file] = []byte(content) }
	}
	for name, c := range map[string]struct {
		before, after func(*made)
		want          string
	}{
		"no manifest":               {after: func(m *made) { delete(m.files, Manifest) }, want: "trial.zip: manifest-sha256.txt: the bag does not have the file"},
		"no tag manifest":           {after: func(m *made) { delete(m.files, TagManifest) }, want: "trial.zip: tagmanifest-sha256.txt: the bag does not have the file"},
		"empty manifest":            {after: text(Manifest, ""), want: "trial.zip: manifest-sha256.txt: it is empty"},
		"nonsense manifest":         {after: text(Manifest, "nonsense\n"), want: `trial.zip: manifest-sha256.txt: line 1: it begins with "nonsense", expected a SHA-256`},
		"huge manifest":             {after: text(Manifest, strings.Repeat("x", maxManifest+1)), want: "trial.zip: manifest-sha256.txt: it has 16777217 bytes, expected at most 16777216"},
		"manifest that leaves":      {after: text(Manifest, sum+"  data/../../x\n"), want: `trial.zip: manifest-sha256.txt: line 1: "data/../../x": the name has .. and leads out of the bag`},
		"manifest with it twice":    {after: text(Manifest, sum+"  data/x\n"+sum+"  data/x\n"), want: "trial.zip: manifest-sha256.txt: line 2: the name is there twice"},
		"manifest of tag files":     {after: text(Manifest, sum+"  README.txt\n"), want: "trial.zip: manifest-sha256.txt: line 1: README.txt: expected a file below data"},
		"tag manifest of payload":   {after: text(TagManifest, sum+"  data/x\n"), want: "trial.zip: tagmanifest-sha256.txt: line 1: data/x: files below data are in manifest-sha256.txt"},
		"no index":                  {before: func(m *made) { m.files[Index] = []byte("{}") }, after: func(m *made) { delete(m.files, Index) }, want: "trial.zip: data/evidence.json: the bag does not have the file"},
		"index not in the manifest": {after: text(Manifest, sum+"  data/x\n"), want: "trial.zip: data/evidence.json: no manifest has the file's SHA-256"},
		"changed index":             {after: text(Index, "{}"), want: "trial.zip: data/evidence.json: it was changed: its SHA-256 is 44136fa3"},
		"huge index":                {before: text(Index, strings.Repeat(" ", maxIndex+1)), want: "trial.zip: data/evidence.json: it has 16777217 bytes"},
		"no JSON":                   {before: text(Index, "nonsense"), want: "trial.zip: data/evidence.json: it is no index of a bag"},
		"a later format":            {before: text(Index, `{"format": 2, "more": 1}`), want: "trial.zip: data/evidence.json: format 2, this program reads 1"},
		"unknown key":               {before: text(Index, `{"format": 1, "more": 1}`), want: `unknown field "more"`},
		"other type":                {before: text(Index, `{"format": 1, "runs": "x"}`), want: "it is no index of a bag: json: cannot unmarshal"},
		"campaign":                  {before: index(func(e *Evidence) { e.Campaign = "../x" }), want: `trial.zip: data/evidence.json: campaign "../x", expected an identity`},
		"no time":                   {before: text(Index, `{"format": 1, "campaign": "abcd2345"}`), want: "packed: the time is missing"},
		"run of another campaign":   {before: index(func(e *Evidence) { e.Runs[0].ID = "x-1" }), want: `run "x-1", expected one of campaign abcd2345`},
		"run that leaves":           {before: index(func(e *Evidence) { e.Runs[0].ID += "/../x" }), want: `run "abcd2345-1/../x", expected`},
		"run twice":                 {before: index(func(e *Evidence) { e.Runs[1].ID = e.Runs[0].ID }), want: "run abcd2345-1 is there twice"},
		"many runs":                 {before: index(func(e *Evidence) { e.Runs = make([]Run, maxRuns+1) }), want: "it has 10001 runs, expected at most 10000"},
		"many exports":              {before: index(func(e *Evidence) { e.Exports = make([]Export, maxExports+1) }), want: "it has 20001 exported files"},
		"many tables":               {before: index(func(e *Evidence) { e.Tables = make([]string, maxTables+1) }), want: "it has 201 tables"},
		"much missing":              {before: index(func(e *Evidence) { e.Missing = make([]string, maxMissing+1) }), want: "it has 20001 sentences"},
		"long sentence":             {before: index(func(e *Evidence) { e.Missing = []string{strings.Repeat("x", maxText+1)} }), want: "missing, sentence 1: 4097 bytes, expected at most 4096"},
		"escape sequence":           {before: index(func(e *Evidence) { e.Plan = "\x1b[2J" }), want: `plan: "\x1b[2J" has a control character`},
		"hash of a sheet":           {before: index(func(e *Evidence) { e.Runs[0].SheetHash = "x" }), want: `run abcd2345-1: sheet_hash "x", expected`},
		"key of a sheet":            {before: index(func(e *Evidence) { e.Runs[0].SheetKey = "x" }), want: `run abcd2345-1: sheet_key "x", expected`},
		"state":                     {before: index(func(e *Evidence) { e.Runs[0].State = strings.Repeat("x", 99) }), want: "run abcd2345-1: state"},
		"many nodes":                {before: index(func(e *Evidence) { e.Runs[0].Nodes = make([]Node, 9) }), want: "run abcd2345-1 has 9 nodes, expected at most 8"},
		"node that leaves":          {before: index(func(e *Evidence) { e.Runs[0].Nodes[0].Name = "../x" }), want: `run abcd2345-1: name "../x" of a node`},
		"role":                      {before: index(func(e *Evidence) { e.Runs[0].Nodes[0].Role = "x" }), want: `run abcd2345-1: node alpha: role "x"`},
		"node twice":                {before: index(func(e *Evidence) { e.Runs[0].Nodes[1].Name = "alpha" }), want: "node alpha or its role server is there twice"},
		"records":                   {before: index(func(e *Evidence) { e.Runs[0].Nodes[0].Records = -1 }), want: "node alpha: -1 records"},
		"end":                       {before: index(func(e *Evidence) { e.Runs[0].Nodes[0].Ended = "x" }), want: `node alpha: ended "x", expected`},
		"reason":                    {before: index(func(e *Evidence) { e.Runs[0].Nodes[0].Unsigned = "a\nb" }), want: "node alpha: unsigned:"},
		"export that leaves":        {before: index(func(e *Evidence) { e.Exports[0].File = "../x" }), want: `exported file "../x": the name has .. and leads out of the bag`},
		"export twice":              {before: index(func(e *Evidence) { e.Exports = append(e.Exports, e.Exports[0]) }), want: `exported file "results.json": the name is there twice`},
		"export of no run":          {before: index(func(e *Evidence) { e.Exports[0].Run = "x" }), want: `exported file results.json is of run "x", which is not in the index`},
		"format of an export":       {before: index(func(e *Evidence) { e.Exports[0].Format = "\x00" }), want: "has a control character"},
		"table":                     {before: index(func(e *Evidence) { e.Tables[0] = "x;DROP" }), want: `table "x;DROP", expected`},
		"table twice":               {before: index(func(e *Evidence) { e.Tables = []string{"runs", "runs"} }), want: `table "runs", expected`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMade(t)
			if c.before != nil {
				c.before(m)
			}
			m.seal()
			if c.after != nil {
				c.after(m)
			}
			limits := DefaultLimits()
			limits.Ratio = 1 << 20
			_, err := openBytes(m.zip(), limits)
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "trial.zip: "), err.Error())
		})
	}
	m := newMade(t)
	m.files[Index] = append(m.json(m.index), m.json(m.index)...)
	m.seal()
	_, err := openBytes(m.zip(), DefaultLimits())
	require.ErrorContains(t, err, "trial.zip: data/evidence.json: it is no index of a bag")
}

// A bag is opened by its path, and its files are read as often as somebody wants.
func TestOpen(t *testing.T) {
	m := newMade(t)
	m.seal()
	path := filepath.Join(t.TempDir(), "trial.zip")
	writeFile(t, path, m.zip())
	bag, err := Open(path, DefaultLimits())
	require.NoError(t, err)
	require.Equal(t, "trial.zip", bag.Name())
	require.Equal(t, madeCampaign, bag.Index.Campaign)
	require.Contains(t, bag.Names(), JournalFile(madeRun, "alpha"))
	for range 2 {
		text, err := bag.Read(Plan, 100)
		require.NoError(t, err)
		require.Equal(t, m.files[Plan], text)
	}
	_, err = bag.Read(Plan, 3)
	require.EqualError(t, err, "trial.zip: data/plan.yaml: it has 18 bytes, expected at most 3")
	_, err = bag.Open("data/none")
	require.EqualError(t, err, "trial.zip: data/none: the bag does not have the file")
	require.NoError(t, bag.Close())

	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink("/dev/null", path))
	_, err = Open(path, DefaultLimits())
	require.EqualError(t, err, "trial.zip: it is no regular file, expected a ZIP or a folder")
}

// A manifest is what RFC 8493 makes it: names have escapes, digests either case.
func TestManifest(t *testing.T) {
	sum := fmt.Sprintf("%X", sha256.Sum256(nil))
	list, err := parseManifest([]byte(sum+" \tdata/100%25\r\n"+sum+"  data/x"), true)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"data/100%": strings.ToLower(sum), "data/x": strings.ToLower(sum)}, list)
	_, err = parseManifest([]byte(sum+"  data/a%0Ab\n"), true)
	require.ErrorContains(t, err, "control character")
}

// Whatever the bytes are, a bag that opens can be checked, and every file that it has is below
// its folder.
func FuzzOpen(f *testing.F) {
	f.Add(archiveOf(f, entryMade{name: inBag("data/x")}))
	f.Add(archiveOf(f, entryMade{name: inBag("../x")}, entryMade{name: inBag("x"), mode: fs.ModeSymlink | 0o777}))
	f.Add(fuzzSeed(f))
	limits := Limits{Files: 100, File: 1 << 20, Total: 4 << 20, Ratio: 100}
	f.Fuzz(func(t *testing.T, b []byte) {
		bag, err := openBytes(b, limits)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "trial.zip: ") {
				t.Fatalf("%q is no sentence on the bag", err)
			}
			return
		}
		for _, name := range bag.Names() {
			if !fs.ValidPath(name) {
				t.Fatalf("%q is a file of the bag", name)
			}
		}
		if _, err := Verify(t.Context(), bag, Known{}, nil); err != nil {
			t.Fatal(err)
		}
	})
}

func fuzzSeed(f *testing.F) []byte {
	f.Helper()
	m := newMade(f)
	m.seal()
	return m.zip()
}

func FuzzDecodeIndex(f *testing.F) {
	f.Add([]byte(`{"format":1,"campaign":"abcd2345","plan":"p","packed":"2026-05-01T12:00:00Z","version":"v1","schema":"47","complete":true,"runs":[{"id":"abcd2345-1","state":"completed","sheet_hash":"` + strings.Repeat("0", 64) + `","nodes":[{"name":"a","role":"client","records":1}]}],"exports":[{"file":"results.json","format":"json"}],"tables":["runs"]}`))
	f.Add([]byte(`{"format":1,"campaign":"../x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeIndex(b)
		if err != nil {
			return
		}
		names := []string{Folder(e.Campaign)}
		for _, r := range e.Runs {
			names = append(names, SheetFile(r.ID))
			for _, n := range r.Nodes {
				names = append(names, JournalFile(r.ID, n.Name))
			}
		}
		for _, x := range e.Exports {
			names = append(names, Results+"/"+x.File)
		}
		for _, t := range e.Tables {
			names = append(names, Rows+"/"+t)
		}
		for _, name := range names {
			if checkName(name) != nil {
				t.Fatalf("%q would be a file of the bag", name)
			}
		}
	})
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(strings.Repeat("0", 64)+"  data/x\n"), true)
	f.Add([]byte(strings.Repeat("0", 64)+"  README.txt\n"), false)
	f.Fuzz(func(t *testing.T, b []byte, payload bool) {
		list, err := parseManifest(b, payload)
		if err != nil {
			return
		}
		for name, digest := range list {
			if checkName(name) != nil || !isSHA256(digest) || strings.HasPrefix(name, Payload+"/") != payload {
				t.Fatalf("%q has %q", name, digest)
			}
		}
	})
}
