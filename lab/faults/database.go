package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"linktrial/internal/faultdisk"
	"linktrial/internal/inputfile"
)

// readOnlySetting makes every transaction one that changes nothing. PostgreSQL reads
// it from the file that ALTER SYSTEM writes, at each start and at SIGHUP.
const readOnlySetting = "default_transaction_read_only = on # injected by a fault campaign\n"

// settingsFile is that file, within the folder of a database; maxSettings bounds it.
const (
	settingsFile = "postgresql.auto.conf"
	maxSettings  = 1 << 20
)

// readOnly has the database take no changes.
func (l *Lab) readOnly(ctx context.Context, i Injection) (Injected, error) {
	out, err := l.reload(ctx, i, true)
	out.End = func() error {
		// The database may be down just now: then the next one reads the file.
		if err := writeReadOnly(l.Database, false); err != nil {
			return err
		}
		if id, _, err := l.find(i); err == nil {
			_ = id.Signal(syscall.SIGHUP)
		}
		return nil
	}
	out.Working = l.Answers
	return out, err
}

func (l *Lab) reload(ctx context.Context, i Injection, on bool) (Injected, error) {
	id, what, err := l.await(ctx, i)
	if err != nil {
		return Injected{}, err
	}
	if err := writeReadOnly(l.Database, on); err != nil {
		return Injected{}, err
	}
	return Injected{Detail: what}, id.Signal(syscall.SIGHUP)
}

// databaseFull takes the room on the disk of the database.
func (l *Lab) databaseFull(i Injection) (Injected, error) {
	d := l.DatabaseDisk()
	if d == nil {
		return Injected{}, errors.New("the database is not on a disk that can be full")
	}
	room := int64(i.Pick % maxRoom)
	detail := fmt.Sprintf("room for %d bytes more", room)
	if i.CopyOnWrite {
		detail += "; overwriting takes room, too"
	}
	d.Fail(faultdisk.Failure{Full: true, RoomBytes: room, CopyOnWrite: i.CopyOnWrite})
	return Injected{Touches: l.touches(i), Detail: detail, Working: l.Answers, End: func() error {
		d.Fail(faultdisk.Failure{})
		return nil
	}}, nil
}

// RestoreDatabase takes a setting out of a database that a killed fault campaign may
// have left in it. A database that does not exist is no error.
func RestoreDatabase(dir string) error {
	if err := writeReadOnly(dir, false); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func writeReadOnly(dir string, on bool) error {
	path := filepath.Join(dir, settingsFile)
	before, err := inputfile.Read(path, maxSettings)
	if err != nil {
		return fmt.Errorf("settings of the database: %w", err)
	}
	after := bytes.ReplaceAll(before, []byte(readOnlySetting), nil)
	if on {
		after = append(after, readOnlySetting...)
	}
	if bytes.Equal(before, after) {
		return nil
	}
	// Written in place: the file stays its owner's.
	if err := os.WriteFile(path, after, 0o600); err != nil {
		return fmt.Errorf("settings of the database: %w", err)
	}
	return nil
}
