package tun

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"linktrial/emulator/link"
	"linktrial/emulator/pcapng"
	"linktrial/internal/radio"
	"linktrial/internal/radiocontrol"
)

const (
	captureChunkBytes = 256 << 10
	captureChunks     = 64 // so much may wait for the disk
)

// capture is a packet log under way. The loop fills chunks, a goroutine of
// its own writes them, and when the disk does not keep up packets are left out
// of the log and counted, never delayed.
type capture struct {
	path string
	file *os.File

	chunk    []byte
	made     int // chunks made so far
	full     chan []byte
	free     chan []byte
	unixNano uint64 // of the trial's start
	missing  int64  // packets left out

	written chan struct{} // closed when the goroutine has ended
	err     error         // of the writing, after written
}

// newCapture creates the file and its header.
func newCapture(path, trial string, hops []radiocontrol.Hop, n *radio.Network) (*capture, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("packet log: %w", err)
	}
	c := &capture{path: path, file: f, made: 1, full: make(chan []byte, captureChunks), free: make(chan []byte, captureChunks), written: make(chan struct{})}
	var ifaces []pcapng.Interface
	for _, h := range hops {
		i := pcapng.Interface{Name: fmt.Sprintf("%s-%s", h.From, h.To), Description: fmt.Sprintf("trial %s, radio of %s to radio of %s", trial, h.From, h.To)}
		links := n.Links
		if h.Second && n.Second != nil {
			i.Name, i.Description, links = i.Name+"-second", i.Description+" (second radios)", n.Second.Links
		}
		for _, k := range links {
			if k.A == h.From && k.B == h.To || k.B == h.From && k.A == h.To {
				i.BitsPerSecond = uint64(k.RateBitsPerSecond)
			}
		}
		ifaces = append(ifaces, i)
	}
	c.chunk = pcapng.AppendHeader(make([]byte, 0, captureChunkBytes), "linktrial emulator", ifaces)
	go c.write()
	return c, nil
}

// begin sets the clock; packets follow by add.
func (c *capture) begin(at time.Time) { c.unixNano = uint64(at.UnixNano()) }

// add logs one packet at one hop, on the loop's thread.
func (c *capture) add(e link.Event, data []byte) {
	const overhead = 128 // of a block and its options, at most
	if len(c.chunk)+len(data)+overhead > cap(c.chunk) && !c.turnOver() {
		c.missing++
		return
	}
	flags, comment := pcapng.FlagOutbound, ""
	switch e.Outcome {
	case link.Lost:
		flags, comment = flags|pcapng.FlagCRCError, "lost by the channel"
	case link.Dropped:
		comment = "dropped by the queue"
	}
	if e.Marked {
		comment = strings.TrimPrefix(comment+", marked: congestion experienced", ", ")
	}
	c.chunk = pcapng.AppendPacket(c.chunk, e.Hop, c.unixNano+uint64(e.At), data, flags, comment)
}

// turnOver hands the chunk to the disk and takes an empty one; false when
// there is none.
func (c *capture) turnOver() bool {
	var next []byte
	select {
	case next = <-c.free:
	default:
		if c.made == captureChunks {
			return false
		}
		c.made++
		next = make([]byte, 0, captureChunkBytes)
	}
	c.full <- c.chunk // has room for every chunk there is
	c.chunk = next
	return true
}

func (c *capture) write() {
	defer close(c.written)
	for b := range c.full {
		if c.err == nil {
			_, c.err = c.file.Write(b)
		}
		c.free <- b[:0]
	}
}

// finish writes the rest and closes the file. The loop must have let go of the
// capture before.
func (c *capture) finish() error {
	c.full <- c.chunk
	close(c.full)
	<-c.written
	err := errors.Join(c.err, c.file.Close())
	if err == nil && c.missing > 0 {
		err = fmt.Errorf("%d packets are missing: the disk was too slow", c.missing)
	}
	if err != nil {
		return fmt.Errorf("packet log %s: %w", c.path, err)
	}
	return nil
}
