package store

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Fault is what an error of the database means for who asked.
type Fault int

// The faults.
const (
	// NoFault: the error is not the database's.
	NoFault Fault = iota
	// NoRows: what was looked for does not exist.
	NoRows
	// Unavailable: the database cannot be reached, is starting or stopping, or lacks
	// memory, disk or connections. The same call can succeed later.
	Unavailable
	// BadValue: a value cannot be stored; the same call never succeeds.
	BadValue
	// Internal: any other error, which no caller can do anything about.
	Internal
)

// FaultOf classifies an error of a query. Errors of the database are recognised
// wherever they are in the chain; their texts are for the log only, since they
// name tables and columns.
func FaultOf(err error) Fault {
	var refused *pgconn.PgError
	var connecting *pgconn.ConnectError
	switch {
	case err == nil:
		return NoFault
	case errors.Is(err, pgx.ErrNoRows):
		return NoRows
	case errors.As(err, &refused):
		return faultOfState(refused.Code)
	case errors.As(err, &connecting), pgconn.Timeout(err), pgconn.SafeToRetry(err), errors.Is(err, pgconn.ErrConnClosed),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.Is(err, pgx.ErrTxClosed),
		errors.Is(err, context.DeadlineExceeded), isConnectionErrno(err):
		return Unavailable
	}
	return NoFault
}

// faultOfState classifies an SQLSTATE (PostgreSQL documentation, appendix A).
func faultOfState(code string) Fault {
	if len(code) != 5 {
		return Internal
	}
	switch code[:2] {
	case "08", "53", "57", "58": // connection, insufficient resources, operator intervention, system error
		return Unavailable
	case "25": // such as a transaction that the server ended, or a server that only reads
		return Unavailable
	case "40": // a transaction that another one made impossible
		return Unavailable
	case "22", "54": // data exception; a limit of the program, such as of an index entry's size
		return BadValue
	}
	return Internal
}

func isConnectionErrno(err error) bool {
	for _, n := range []syscall.Errno{syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, n) {
			return true
		}
	}
	return false
}
