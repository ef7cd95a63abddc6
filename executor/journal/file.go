package journal

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"linktrial/internal/notify"
	"linktrial/internal/radio"
)

// Limits of a journal file.
const (
	// MaxRecord is the longest JSON of one record, in bytes. It leaves room for
	// a record of any length in one delivery of a mebibyte.
	MaxRecord = 960 << 10
	// flushAt is how many buffered bytes are written without waiting for a sync.
	flushAt = 256 << 10
	// DefaultReserve is held back on the disk so that the last records of a run
	// can be written when the disk is full.
	DefaultReserve = 4 << 20
)

var (
	// ErrDiskFull reports that the disk is full or has less than the floor left.
	// The journal still takes the few records that end a run.
	ErrDiskFull = errors.New("disk full")
	// ErrTooLarge reports a record over [MaxRecord].
	ErrTooLarge = fmt.Errorf("record larger than %d bytes", MaxRecord)
)

// Identity is what every record of a file carries.
type Identity struct {
	Run  string
	Node string
	Role radio.Role
}

// Options of [Open]; the zero value is usable.
type Options struct {
	Now func() time.Time // the node's clock, where Clock is nil; nil is time.Now
	// Clock is the node's clock, whose steps are recorded ([ClockStepped]); nil: they are
	// not.
	Clock Clock
	// Boot is the identity of the start of the node within which Clock's steady times are
	// comparable; empty: not known, a step between two starts of the agent is not found.
	Boot string
	// ReserveBytes is held back for the last records; 0 is [DefaultReserve], negative none.
	ReserveBytes int64
	// FloorBytes is the free space below which [File.CheckSpace] reports a full disk.
	FloorBytes int64
	Logger     *slog.Logger // nil: none
}

// File is the journal of one run on one node. Its methods may be called from
// several goroutines.
type File struct {
	id   Identity
	opts Options
	path string

	mu      sync.Mutex
	steps   steps
	f       *os.File
	pending []byte  // records that were appended and not yet written
	ends    []int64 // ends[i] is where record i+1 ends, in the file or after the pending bytes are written
	written int64   // length of the file
	durable int64   // number of records that a crash cannot take away
	full    bool
	broken  error         // a write failed in a way that leaves the file's state unknown
	failed  chan struct{} // closed when full or broken is set for the first time
	changed notify.Notifier

	syncing sync.Mutex // one fsync at a time, outside mu
}

// Open opens or makes a journal and reads it through. A tail that is no whole
// record, as a crash leaves it, is cut off; damage before the last whole
// record is refused with a [DamageError]. A file of another run or node is refused.
func Open(path string, id Identity, opts Options) (*File, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.ReserveBytes == 0 {
		opts.ReserveBytes = DefaultReserve
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	j := &File{id: id, opts: opts, path: path, f: f, failed: make(chan struct{}), steps: steps{clock: opts.Clock, boot: opts.Boot}}
	if err := j.recover(); err != nil {
		f.Close()
		return nil, err
	}
	if err := j.makeReserve(); err != nil && !errors.Is(err, unix.ENOSPC) {
		f.Close()
		return nil, err
	}
	return j, nil
}

func (j *File) recover() error {
	// What the kernel has of the file and could not write, as after an error of the
	// disk, must not be read: only what the disk has is there after a crash.
	if err := j.f.Sync(); err != nil {
		return fmt.Errorf("journal: sync: %w", err)
	}
	_ = unix.Fadvise(int(j.f.Fd()), 0, 0, unix.FADV_DONTNEED) // some file systems keep nothing to drop
	var mismatch error
	good, err := Scan(j.f, func(r Record, end int64) error {
		if r.Run != j.id.Run || r.Node != j.id.Node || r.Role != j.id.Role {
			mismatch = fmt.Errorf("journal %s is of run %s, node %s, role %s; expected run %s, node %s, role %s",
				j.path, r.Run, r.Node, r.Role, j.id.Run, j.id.Node, j.id.Role)
			return mismatch
		}
		j.ends = append(j.ends, end)
		j.steps.recovered(&r)
		return nil
	})
	if mismatch != nil {
		return mismatch
	}
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.path, err)
	}
	info, err := j.f.Stat()
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if info.Size() > good {
		if j.opts.Logger != nil {
			j.opts.Logger.Warn("journal had an unfinished end, which is cut off", "path", j.path, "offset", good, "bytes", info.Size()-good)
		}
		if err := j.f.Truncate(good); err != nil {
			return fmt.Errorf("journal: cut off unfinished end: %w", err)
		}
		if err := j.f.Sync(); err != nil {
			return fmt.Errorf("journal: sync: %w", err)
		}
	}
	if _, err := j.f.Seek(good, io.SeekStart); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if err := syncDir(filepath.Dir(j.path)); err != nil {
		return err
	}
	j.written, j.durable = good, int64(len(j.ends))
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	defer d.Close()
	// Some file systems cannot sync a folder; the file itself is synced.
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return fmt.Errorf("journal: sync folder: %w", err)
	}
	return nil
}

func (j *File) reservePath() string { return j.path + ".reserve" }

// makeReserve writes real bytes: a sparse file holds no space back.
func (j *File) makeReserve() error {
	n := j.opts.ReserveBytes
	if n < 0 {
		return nil
	}
	if info, err := os.Stat(j.reservePath()); err == nil && info.Size() >= n {
		return nil
	}
	f, err := os.Create(j.reservePath())
	if err != nil {
		return fmt.Errorf("journal reserve: %w", err)
	}
	defer f.Close()
	chunk := make([]byte, 64<<10)
	for n > 0 {
		k, err := f.Write(chunk[:min(n, int64(len(chunk)))])
		if err != nil {
			return fmt.Errorf("journal reserve: %w", err)
		}
		n -= int64(k)
	}
	return nil
}

// DropReserve gives the reserved space back, once a run has ended.
func (j *File) DropReserve() error {
	if err := os.Remove(j.reservePath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("journal reserve: %w", err)
	}
	return nil
}

// Append adds a record to the journal's memory and returns its sequence
// number; [File.Sync] makes it durable. Where the node's clock has stepped since the
// record before, another one comes first that says so. On a full disk it keeps taking all
// records but samples and telemetry, which it refuses with [ErrDiskFull].
func (j *File) Append(t Type, body any) (int64, error) {
	var encoded []byte
	if !timed(body) {
		var err error
		if encoded, err = encode(t, body); err != nil {
			return 0, err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return 0, j.broken
	}
	if j.full && (t == TypeSamples || t == TypeTelemetry) {
		return 0, ErrDiskFull
	}
	line, err := j.stamped(t, body, encoded)
	if err != nil {
		return 0, err
	}
	j.appendPending(line)
	if len(j.pending) >= flushAt {
		if err := j.flush(); err != nil && !errors.Is(err, ErrDiskFull) {
			return 0, err
		}
	}
	j.changed.Notify()
	return int64(len(j.ends)), nil
}

// flush writes what is pending. On a full disk the reserve is given up and the
// write repeated; ErrDiskFull then means that this happened, or, when the disk
// was full before, that there was no room even so.
func (j *File) flush() error {
	if j.broken != nil {
		return j.broken
	}
	if len(j.pending) == 0 {
		return nil
	}
	err := j.write()
	if err == nil || !errors.Is(err, ErrDiskFull) || j.full {
		return err
	}
	j.full = true
	j.fail()
	if err := j.DropReserve(); err != nil {
		return err
	}
	if err := j.write(); err != nil {
		return err
	}
	return ErrDiskFull
}

func (j *File) write() error {
	_, err := j.f.WriteAt(j.pending, j.written)
	if err == nil {
		j.written += int64(len(j.pending))
		j.pending = j.pending[:0]
		return nil
	}
	full := errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
	if terr := j.f.Truncate(j.written); terr != nil || !full {
		j.broken = fmt.Errorf("journal: write: %w", errors.Join(err, terr))
		j.fail()
		return j.broken
	}
	return fmt.Errorf("journal: write: %w (%w)", ErrDiskFull, err)
}

// fail closes failed, once.
func (j *File) fail() {
	select {
	case <-j.failed:
	default:
		close(j.failed)
	}
}

// Failed is closed when the disk did not take a record: it is full, or returned an
// error. The file is then to be closed, and opened again when the disk works.
func (j *File) Failed() <-chan struct{} { return j.failed }

// Failure is why [File.Failed] is closed; nil where it is not.
func (j *File) Failure() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.broken != nil:
		return j.broken
	case j.full:
		return ErrDiskFull
	}
	return nil
}

// Sync writes and fsyncs all records appended so far. [ErrDiskFull] means that
// the reserve was used for it or that [File.CheckSpace] will report a full disk;
// the records are durable all the same, up to [File.Durable].
func (j *File) Sync() error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	ferr := j.flush()
	if ferr != nil && !errors.Is(ferr, ErrDiskFull) {
		j.mu.Unlock()
		return ferr
	}
	upTo := int64(len(j.ends))
	if len(j.pending) > 0 {
		j.mu.Unlock()
		return ferr
	}
	f := j.f
	if upTo == j.durable {
		j.mu.Unlock()
		return ferr
	}
	j.mu.Unlock()

	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		// The kernel forgets failed pages after reporting them once, so a
		// second fsync proves nothing.
		j.mu.Lock()
		j.broken = fmt.Errorf("journal: sync: %w", err)
		j.fail()
		j.mu.Unlock()
		return j.broken
	}
	j.mu.Lock()
	j.durable = max(j.durable, upTo)
	j.changed.Notify()
	j.mu.Unlock()
	return ferr
}

// CheckSpace returns [ErrDiskFull] when a write met a full disk since the journal
// was opened, or when the disk has less than the floor left.
func (j *File) CheckSpace() error {
	j.mu.Lock()
	full := j.full
	j.mu.Unlock()
	if full {
		return ErrDiskFull
	}
	if j.opts.FloorBytes <= 0 {
		return nil
	}
	free, err := FreeBytes(filepath.Dir(j.path))
	if err != nil {
		return err
	}
	if free < j.opts.FloorBytes {
		return fmt.Errorf("%w: %d bytes are left, %d are wanted", ErrDiskFull, free, j.opts.FloorBytes)
	}
	return nil
}

// FreeBytes is the space left for this user on the file system of a path.
func FreeBytes(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", path, err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// Durable is the sequence number up to which records outlive any crash.
func (j *File) Durable() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.durable
}

// Last is the sequence number of the newest record, durable or not.
func (j *File) Last() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return int64(len(j.ends))
}

// Changed is closed at the next Append or Sync.
func (j *File) Changed() <-chan struct{} {
	return j.changed.Changed()
}

// Entry is one durable record as the file has it.
type Entry struct {
	Seq  int64
	JSON []byte
}

// Read returns durable records from seq on, in order, at least one if there is
// one and otherwise as many as fit in maxBytes of JSON. A record that could
// still be lost in a crash is never returned: after the crash its number would
// go to another one.
func (j *File) Read(from int64, maxBytes int) ([]Entry, error) {
	if from < 1 {
		from = 1
	}
	j.mu.Lock()
	if from > j.durable {
		j.mu.Unlock()
		return nil, nil
	}
	start, last := j.startOf(from), from
	for last < j.durable && j.ends[last]-start <= int64(maxBytes) {
		last++
	}
	b := make([]byte, j.ends[last-1]-start)
	f := j.f
	j.mu.Unlock()
	if _, err := f.ReadAt(b, start); err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	out := make([]Entry, 0, last-from+1)
	for seq := from; seq <= last; seq++ {
		line, rest, err := cutLine(b)
		if err != nil {
			return nil, fmt.Errorf("read journal record %d: %w", seq, err)
		}
		out, b = append(out, Entry{Seq: seq, JSON: line}), rest
	}
	return out, nil
}

func (j *File) startOf(seq int64) int64 {
	if seq == 1 {
		return 0
	}
	return j.ends[seq-2]
}

// Records calls f for every record that was written, in order.
func (j *File) Records(f func(Record) error) error {
	j.mu.Lock()
	if err := j.flush(); err != nil && !errors.Is(err, ErrDiskFull) {
		j.mu.Unlock()
		return err
	}
	r := io.NewSectionReader(j.f, 0, j.written)
	j.mu.Unlock()
	_, err := Scan(r, func(rec Record, _ int64) error { return f(rec) })
	return err
}

// Close syncs and closes the file.
func (j *File) Close() error {
	err := j.Sync()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken == nil {
		j.broken = os.ErrClosed
	}
	return errors.Join(err, j.f.Close())
}
