package evidence

import (
	"context"
	"encoding/json"
	"io"
	"path"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"linktrial/internal/sshsig"
)

// Bundle is what a bag says of itself beside its files.
type Bundle struct {
	Evidence Evidence
	// Name is the campaign's, as people gave it.
	Name string
	// Sheets says in a few words what each run is of: radio, topology, size.
	Sheets map[string]string
	// Times are when runs began and ended; zero: they have not.
	Times map[string]Times
	// People marked attempts or gave commands, in the order of their names.
	People []string
	// Signers are the keys of nodes, each once.
	Signers []Signer
	// Key is the orchestrator's that signs the bag, Shown the same as 'linktrial signing keys'
	// prints it, and Fingerprint its SHA-256 in hexadecimal; Sign signs bytes as ssh-keygen does,
	// namespace [sshsig.Evidence].
	Key         ssh.PublicKey
	Shown       string
	Fingerprint string
	Sign        func(content []byte) (string, error)
}

// Times are when a run began and ended.
type Times struct{ Began, Ended time.Time }

// Signer is a node with a key that signed journals.
type Signer struct {
	Node string
	Key  ssh.PublicKey
}

// Written is a bag that has been written.
type Written struct {
	Bytes int64 // of the ZIP file
	Files int   // of the payload
}

// Writer writes a bag. The files of a campaign come first, in any order; [Writer.Finish]
// writes what says what they are. The file has its name once it is whole; [Writer.Discard]
// removes one that is not.
type Writer struct{ bag *bag }

// NewWriter begins a bag at a path, whose folder must exist. It ends with the context: each
// call after that returns its error.
func NewWriter(ctx context.Context, at, campaign string, packed time.Time) (*Writer, error) {
	b, err := newBag(ctx, at, Folder(campaign), packed)
	if err != nil {
		return nil, err
	}
	return &Writer{b}, nil
}

// Discard removes what was written where the bag is not finished. It may be called always.
func (w *Writer) Discard() { w.bag.to.Discard() }

// Add writes a file, named as layout.go has it. write may take as long as it wants and hold
// nothing back: the content goes to the disk as it comes. title says what it is, for people;
// empty: the name does. An error of write is returned with the file's name.
func (w *Writer) Add(name, title string, write func(io.Writer) error) error {
	return w.bag.add(name, mediaType(name), title, write)
}

// AddBytes writes a file that is at hand.
func (w *Writer) AddBytes(name, title string, content []byte) error {
	return w.Add(name, title, func(to io.Writer) error {
		_, err := to.Write(content)
		return err
	})
}

// mediaTypes are of the endings of names in bags.
var mediaTypes = map[string]string{
	".json": "application/json", ".jsonl": "application/jsonl", ".yaml": "application/yaml", ".sig": "application/x-ssh-signature", ".pem": "application/x-pem-file",
	".sha256": "text/plain", ".csv": "text/csv", ".md": "text/markdown", ".tex": "application/x-tex", ".svg": "image/svg+xml", ".png": "image/png", ".html": "text/html",
	".pdf": "application/pdf", ".parquet": "application/vnd.apache.parquet", ".kml": "application/vnd.google-earth.kml+xml", ".geojson": "application/geo+json",
}

func mediaType(name string) string {
	if t := mediaTypes[path.Ext(name)]; t != "" {
		return t
	}
	return "text/plain"
}

// Finish writes evidence.json, the metadata, the README and everything that BagIt and the
// signature need, and puts the file in place.
func (w *Writer) Finish(x *Bundle) (Written, error) {
	b := w.bag
	x.Evidence.Format, x.Evidence.Packed = Format, b.packed
	index, err := json.MarshalIndent(&x.Evidence, "", "  ")
	if err != nil {
		return Written{}, err
	}
	if err := w.AddBytes(Index, "What is in the evidence, for programs", append(index, '\n')); err != nil {
		return Written{}, err
	}
	crate, err := crate(x, b.data)
	if err != nil {
		return Written{}, err
	}
	if err := b.addText(Crate, "application/ld+json", "", crate); err != nil {
		return Written{}, err
	}
	if err := b.addText(Signers, "text/plain", "", signers(x)); err != nil {
		return Written{}, err
	}
	if err := b.addText(ReadMe, "text/plain", "", readme(x)); err != nil {
		return Written{}, err
	}
	if err := b.seal(info(x), x.Sign); err != nil {
		return Written{}, err
	}
	bytes, err := b.commit()
	return Written{Bytes: bytes, Files: len(b.data)}, err
}

// info is bag-info.txt without the sum of the payload.
func info(x *Bundle) string {
	e := &x.Evidence
	return infoLine("Bagging-Date", e.Packed.Format(time.DateOnly)) +
		infoLine("External-Identifier", e.Campaign) +
		infoLine("External-Description", "Everything that the results and the report of a Linktrial campaign rest on") +
		infoLine("Internal-Sender-Identifier", e.Campaign) +
		infoLine("Internal-Sender-Description", "Plan "+e.Plan+", campaign "+x.Name) +
		infoLine("Bag-Software-Agent", "Linktrial "+e.Version)
}

// orchestrator is the principal of the bag's signature.
const orchestrator = "orchestrator"

// signers is the file of allowed signers: who may have signed what.
func signers(x *Bundle) string {
	var b strings.Builder
	b.WriteString(sshsig.AllowedSigner(orchestrator, sshsig.Evidence, x.Key))
	for _, s := range x.Signers {
		b.WriteString(sshsig.AllowedSigner(s.Node, sshsig.Journal, s.Key))
	}
	return b.String()
}
