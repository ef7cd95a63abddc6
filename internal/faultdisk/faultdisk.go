// Package faultdisk lays a file system over a folder whose disk can be made to fail:
// it is full, returns errors, or is slow, for who reads and writes there as the kernel
// reports such a disk.
//
// Comes in: a folder, and what its disk is to do. Goes out: the same folder, with its
// files, through FUSE; without failures it is as before.
package faultdisk

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Failure is what a disk does.
type Failure struct {
	// Full: there is room for RoomBytes more, and for what is given back; a write that
	// needs more is cut short, and the next one fails with ENOSPC.
	Full      bool
	RoomBytes int64
	// CopyOnWrite: on a full disk, overwriting what a file has takes room as well, as on
	// Btrfs or a thin volume; otherwise only what makes a file longer does, as on ext4.
	CopyOnWrite bool
	// Error: reading, writing, syncing, opening and removing fail with EIO.
	Error bool
	// Delay is what each of these takes longer.
	Delay time.Duration
}

// Disk is the file system over one folder.
type Disk struct {
	path   string
	under  *os.File // the folder itself, below the mount
	server *fuse.Server

	mu   sync.Mutex
	does Failure
}

// fsType is what the kernel lists such a mount as, after "fuse.".
const fsType = "linktrial"

// Mount lays a file system over a folder; [Disk.Unmount] removes it. The files stay in
// the folder.
func Mount(path string) (*Disk, error) {
	under, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("disk that can fail: %w", err)
	}
	// Through the descriptor, the folder is reached although the mount covers it.
	root, err := fs.NewLoopbackRoot("/proc/self/fd/" + strconv.Itoa(int(under.Fd())))
	if err != nil {
		_ = under.Close() // nothing was read
		return nil, fmt.Errorf("disk that can fail: %w", err)
	}
	d := &Disk{path: path, under: under}
	no := time.Duration(0)
	raw := fs.NewNodeFS(root, &fs.Options{EntryTimeout: &no, AttrTimeout: &no})
	d.server, err = serve(&layer{raw, d}, path, &fuse.MountOptions{
		DirectMountStrict: true, FsName: path, Name: fsType, DisableXAttrs: true, MaxBackground: 64,
		// Whoever may use the folder still may, such as PostgreSQL's user.
		AllowOther: true, Options: []string{"default_permissions"},
	})
	if err != nil {
		_ = under.Close() // nothing was read
		return nil, fmt.Errorf("disk that can fail: mount over %s: %w", path, err)
	}
	go d.server.Serve()
	if err := d.server.WaitMount(); err != nil {
		return nil, errors.Join(fmt.Errorf("disk that can fail: mount over %s: %w", path, err), d.Unmount())
	}
	return d, nil
}

// serve is [fuse.NewServer] without a child that inherits the descriptor of /dev/fuse:
// the library opens it without O_CLOEXEC where it mounts by itself. A child that uses the
// disk and holds the descriptor would wait for ever once this process is killed, since the
// kernel would take the child for the disk's server.
func serve(layer fuse.RawFileSystem, path string, options *fuse.MountOptions) (*fuse.Server, error) {
	syscall.ForkLock.RLock() // no child is started meanwhile
	server, err := fuse.NewServer(layer, path, options)
	if err != nil {
		syscall.ForkLock.RUnlock()
		return nil, err
	}
	err = closeOnExec("/dev/fuse")
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, errors.Join(err, server.Unmount())
	}
	return server, nil
}

// closeOnExec has children started from now on not inherit what this process has open of a
// file.
func closeOnExec(file string) error {
	const own = "/proc/self/fd/"
	names, err := os.ReadDir(own)
	for _, n := range names {
		fd, number := strconv.Atoi(n.Name())
		// The one that listed the folder has gone.
		if to, gone := os.Readlink(own + n.Name()); number == nil && gone == nil && to == file {
			syscall.CloseOnExec(fd)
		}
	}
	return err
}

// Fail makes the disk do as stated, until the next call.
func (d *Disk) Fail(f Failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.does = f
}

// Unmount removes the file system, also while files of it are open.
func (d *Disk) Unmount() error {
	d.Fail(Failure{})
	if err := Remove(d.path); err != nil {
		return err
	}
	return d.under.Close()
}

// Remove removes the mount of a process that was killed; a folder without one is no
// error.
func Remove(path string) error {
	var st unix.Statfs_t
	err := unix.Statfs(path, &st)
	const fuseMagic = 0x65735546 // linux/magic.h
	if errors.Is(err, unix.ENOENT) || err == nil && st.Type != fuseMagic {
		return nil
	}
	// ENOTCONN: nobody serves it any more.
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	return nil
}

// begin is called before each use of the disk.
func (d *Disk) begin() fuse.Status {
	d.mu.Lock()
	does := d.does
	d.mu.Unlock()
	time.Sleep(does.Delay)
	if does.Error {
		return fuse.EIO
	}
	return fuse.OK
}

// take takes up to n bytes of the room that is left.
func (d *Disk) take(n int) (int, fuse.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.does.Full || n == 0 {
		return n, fuse.OK
	}
	n = int(min(int64(n), d.does.RoomBytes))
	if n == 0 {
		return 0, fuse.Status(syscall.ENOSPC)
	}
	d.does.RoomBytes -= int64(n)
	return n, fuse.OK
}

// full reports whether a use of the disk may find no room.
func (d *Disk) full() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.does.Full
}

// room is how many bytes a write of n bytes takes, to a file that it makes longer by
// more bytes.
func (d *Disk) room(n, more int64) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.does.CopyOnWrite {
		return int(n)
	}
	return int(more)
}

// give gives room back.
func (d *Disk) give(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.does.RoomBytes += n
}

// layer fails what it is asked for as its disk is told to, and passes on the rest.
type layer struct {
	fuse.RawFileSystem
	d *Disk
}

// Init implements [fuse.RawFileSystem]. The layer below does not get the server: it
// would have the kernel read and write the files by itself, past this layer.
func (l *layer) Init(*fuse.Server) {}

func (l *layer) Open(c <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	return l.RawFileSystem.Open(c, in, out)
}

func (l *layer) OpenDir(c <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	return l.RawFileSystem.OpenDir(c, in, out)
}

func (l *layer) Create(c <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	return l.RawFileSystem.Create(c, in, name, out)
}

func (l *layer) Mkdir(c <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	if _, s := l.d.take(1); s != fuse.OK {
		return s
	}
	return l.RawFileSystem.Mkdir(c, in, name, out)
}

func (l *layer) Rename(c <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	replaced := l.named(c, &fuse.InHeader{NodeId: in.Newdir, Caller: in.Caller, Unique: in.Unique}, to)
	s := l.RawFileSystem.Rename(c, in, from, to)
	if s == fuse.OK {
		l.d.give(replaced)
	}
	return s
}

func (l *layer) Unlink(c <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	removed := l.named(c, in, name)
	s := l.RawFileSystem.Unlink(c, in, name)
	if s == fuse.OK {
		l.d.give(removed)
	}
	return s
}

// named returns the bytes that become free when the file of a name loses that name.
func (l *layer) named(c <-chan struct{}, in *fuse.InHeader, name string) int64 {
	var out fuse.EntryOut
	if s := l.Lookup(c, in, name, &out); s != fuse.OK {
		return 0
	}
	l.Forget(out.NodeId, 1)
	if out.Nlink > 1 || out.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return 0
	}
	return int64(out.Size)
}

// longer returns by how much a write makes a file longer.
func (l *layer) longer(c <-chan struct{}, in *fuse.InHeader, fh, offset, n uint64) (int64, fuse.Status) {
	var out fuse.AttrOut
	s := l.GetAttr(c, &fuse.GetAttrIn{InHeader: *in, Flags_: fuse.FUSE_GETATTR_FH, Fh_: fh}, &out)
	end := offset + n
	return int64(end - min(end, max(out.Size, offset))), s
}

func (l *layer) SetAttr(c <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	before := fuse.AttrOut{}
	size, cut := in.GetSize()
	if cut {
		get := &fuse.GetAttrIn{InHeader: in.InHeader}
		if fh, ok := in.GetFh(); ok {
			get.Flags_, get.Fh_ = fuse.FUSE_GETATTR_FH, fh
		}
		if s := l.GetAttr(c, get, &before); s != fuse.OK {
			return s
		}
	}
	s := l.RawFileSystem.SetAttr(c, in, out)
	if s == fuse.OK && before.Size > size {
		l.d.give(int64(before.Size - size))
	}
	return s
}

func (l *layer) Read(c <-chan struct{}, in *fuse.ReadIn, b []byte) (fuse.ReadResult, fuse.Status) {
	if s := l.d.begin(); s != fuse.OK {
		return nil, s
	}
	return l.RawFileSystem.Read(c, in, b)
}

// Writev has each write come to Write.
func (l *layer) Writev(<-chan struct{}, *fuse.WriteIn, [][]byte) (uint32, fuse.Status) {
	return 0, fuse.ENOSYS
}

func (l *layer) Write(c <-chan struct{}, in *fuse.WriteIn, b []byte) (uint32, fuse.Status) {
	if s := l.d.begin(); s != fuse.OK {
		return 0, s
	}
	if !l.d.full() {
		return l.RawFileSystem.Write(c, in, b)
	}
	more, s := l.longer(c, &in.InHeader, in.Fh, in.Offset, uint64(len(b)))
	if s != fuse.OK {
		return 0, s
	}
	needs := l.d.room(int64(len(b)), more)
	got, s := l.d.take(needs)
	if n := len(b) - needs + got; n > 0 { // what there is room for
		cut := *in
		cut.Size = uint32(n)
		return l.RawFileSystem.Write(c, &cut, b[:n])
	}
	return 0, s
}

// CopyFileRange is not offered: the kernel then reads and writes.
func (l *layer) CopyFileRange(<-chan struct{}, *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	return 0, fuse.ENOSYS
}

func (l *layer) Fallocate(c <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	if l.d.full() {
		more, s := l.longer(c, &in.InHeader, in.Fh, in.Offset, in.Length)
		if s != fuse.OK {
			return s
		}
		if n, s := l.d.take(int(more)); s != fuse.OK || n < int(more) {
			l.d.give(int64(n))
			return fuse.Status(syscall.ENOSPC)
		}
	}
	return l.RawFileSystem.Fallocate(c, in)
}

func (l *layer) Fsync(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	return l.RawFileSystem.Fsync(c, in)
}

func (l *layer) FsyncDir(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	return l.RawFileSystem.FsyncDir(c, in)
}

// StatFs reports the room that is left.
func (l *layer) StatFs(c <-chan struct{}, in *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	s := l.RawFileSystem.StatFs(c, in, out)
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	if s == fuse.OK && l.d.does.Full {
		left := uint64(l.d.does.RoomBytes) / uint64(max(out.Bsize, 1))
		out.Bfree, out.Bavail = min(out.Bfree, left), min(out.Bavail, left)
	}
	return s
}
