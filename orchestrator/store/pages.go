package store

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Page is records of a journal that follow one another, as they were delivered: all of
// them with samples, or none.
type Page struct {
	First, Last int64 // numbers of records
	Samples     bool
	Content     []byte // of journal_pages
}

const (
	// pageBytes is how long a page becomes before the next one begins, in bytes of
	// records: a page is what a reader holds.
	pageBytes = 1 << 20
	// maxPage bounds what a page is decompressed to. A record has at most 4 MiB.
	maxPage = 16 << 20
)

// Both may be used by any number of goroutines, and start none.
var (
	pageEncoder = sync.OnceValue(func() *zstd.Encoder {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)),
			zstd.WithEncoderCRC(false), zstd.WithWindowSize(pageBytes), zstd.WithLowerEncoderMem(true))
		if err != nil {
			panic(err) // options that exist
		}
		return e
	})
	pageDecoder = sync.OnceValue(func() *zstd.Decoder {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithDecoderMaxMemory(maxPage))
		if err != nil {
			panic(err) // options that exist
		}
		return d
	})
)

// PageWriter makes pages. The zero value is ready; it is of one goroutine.
type PageWriter struct {
	pages []Page
	open  Page
	plain *[]byte // of the open page; nil: none is open
}

var plainPages = sync.Pool{New: func() any { return new([]byte) }}

// Add takes the next record, as it was delivered.
func (w *PageWriter) Add(seq int64, record []byte, samples bool) {
	if w.plain != nil && (samples != w.open.Samples || len(*w.plain) >= pageBytes) {
		w.close()
	}
	if w.plain == nil {
		w.open, w.plain = Page{First: seq, Samples: samples}, plainPages.Get().(*[]byte)
	}
	w.open.Last = seq
	b := binary.AppendUvarint(*w.plain, uint64(len(record)))
	*w.plain = append(b, record...)
}

func (w *PageWriter) close() {
	w.open.Content = pageEncoder().EncodeAll(*w.plain, nil)
	w.pages = append(w.pages, w.open)
	if *w.plain = (*w.plain)[:0]; cap(*w.plain) <= 2*pageBytes {
		plainPages.Put(w.plain)
	}
	w.plain = nil
}

// Pages returns the pages of all records that were added.
func (w *PageWriter) Pages() []Page {
	if w.plain != nil {
		w.close()
	}
	return w.pages
}

// records returns a page's records. The error says what is wrong with the page.
func (p *Page) records() ([][]byte, error) {
	b, err := pageDecoder().DecodeAll(p.Content, nil)
	if err != nil {
		return nil, fmt.Errorf("it cannot be decompressed: %w", err)
	}
	var out [][]byte
	for len(b) > 0 {
		n, width := binary.Uvarint(b)
		if width <= 0 || n > uint64(len(b)-width) {
			return nil, fmt.Errorf("its record %d is cut short", p.First+int64(len(out)))
		}
		b = b[width:]
		out, b = append(out, b[:n:n]), b[n:]
	}
	if want := p.Last - p.First + 1; int64(len(out)) != want {
		return nil, fmt.Errorf("it has %d records, expected %d", len(out), want)
	}
	return out, nil
}
