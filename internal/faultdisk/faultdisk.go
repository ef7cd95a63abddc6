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
	d.server, err = fuse.NewServer(&layer{raw, d}, path, &fuse.MountOptions{
		DirectMountStrict: true, FsName: path, Name: fsType, DisableXAttrs: true, MaxBackground: 64,
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
	return l.RawFileSystem.Rename(c, in, from, to)
}

func (l *layer) Unlink(c <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	var out fuse.EntryOut
	if s := l.Lookup(c, in, name, &out); s == fuse.OK {
		l.Forget(out.NodeId, 1)
	}
	s := l.RawFileSystem.Unlink(c, in, name)
	if s == fuse.OK {
		l.d.give(int64(out.Size))
	}
	return s
}

func (l *layer) SetAttr(c <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	return l.RawFileSystem.SetAttr(c, in, out)
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
	n, s := l.d.take(len(b))
	if s != fuse.OK {
		return 0, s
	}
	cut := *in
	cut.Size = uint32(n)
	return l.RawFileSystem.Write(c, &cut, b[:n])
}

// CopyFileRange is not offered: the kernel then reads and writes.
func (l *layer) CopyFileRange(<-chan struct{}, *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	return 0, fuse.ENOSYS
}

func (l *layer) Fallocate(c <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	if s := l.d.begin(); s != fuse.OK {
		return s
	}
	if n, s := l.d.take(int(in.Length)); s != fuse.OK || n < int(in.Length) {
		return fuse.Status(syscall.ENOSPC)
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
