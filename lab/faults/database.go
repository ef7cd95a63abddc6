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

// goneSetting is none that PostgreSQL knows, so it does not start with it. One that runs
// keeps what it has read before.
const goneSetting = "injected_by_a_fault_campaign = on\n"

// CampaignVariable is in the environment of an orchestrator that a fault campaign has
// started: such a one leaves the settings in the database that the campaign puts there.
const CampaignVariable = "LINKTRIAL_FAULT_CAMPAIGN"

// settingsFile is that file, within the folder of a database; maxSettings bounds it.
const (
	settingsFile = "postgresql.auto.conf"
	maxSettings  = 1 << 20
)

// readOnly has the database take no changes.
func (l *Lab) readOnly(ctx context.Context, i Injection) (Injected, error) {
	out, err := l.reload(ctx, i)
	out.End = func() error {
		// The database may be down just now: then the next one reads the file.
		if _, err := writeSetting(l.Database, ""); err != nil {
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

func (l *Lab) reload(ctx context.Context, i Injection) (Injected, error) {
	id, what, err := l.await(ctx, i)
	if err != nil {
		return Injected{}, err
	}
	if _, err := writeSetting(l.Database, readOnlySetting); err != nil {
		return Injected{}, err
	}
	return Injected{Detail: what}, id.Signal(syscall.SIGHUP)
}

// holdDatabase has a database that ended not start again, until it is called with false.
func (l *Lab) holdDatabase(on bool) error {
	setting := ""
	if on {
		setting = goneSetting
	}
	_, err := writeSetting(l.Database, setting)
	return err
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

// RestoreDatabase takes the settings out of a database that a killed fault campaign may
// have left in it, and reports whether there was one. A database that does not exist is
// no error.
func RestoreDatabase(dir string) (restored bool, err error) {
	restored, err = writeSetting(dir, "")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return restored, err
}

// writeSetting puts a setting of this package in the place of others; empty: takes them
// out. It reports whether the file is another one now.
func writeSetting(dir, setting string) (changed bool, err error) {
	path := filepath.Join(dir, settingsFile)
	before, err := inputfile.Read(path, maxSettings)
	if err != nil {
		return false, fmt.Errorf("settings of the database: %w", err)
	}
	after := before
	for _, s := range []string{readOnlySetting, goneSetting} {
		after = bytes.ReplaceAll(after, []byte(s), nil)
	}
	after = append(bytes.Clone(after), setting...)
	if bytes.Equal(before, after) {
		return false, nil
	}
	// Written in place: the file stays its owner's.
	if err := os.WriteFile(path, after, 0o600); err != nil {
		return false, fmt.Errorf("settings of the database: %w", err)
	}
	return true, nil
}
