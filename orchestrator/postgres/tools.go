package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// RunningURL is how to connect to the private server of a data folder that
// another process runs; false where none does.
func RunningURL(ctx context.Context, dir string) (string, bool, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", false, fmt.Errorf("data folder: %w", err)
	}
	// The fifth line is the folder of the socket (PostgreSQL's documentation, Database File
	// Layout), which is not the one in the data folder where that one's path is too long.
	b, err := os.ReadFile(filepath.Join(abs, "postgres", "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	} else if err != nil {
		return "", false, fmt.Errorf("the private database: %w", err)
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 5 {
		return "", false, nil // it is just starting
	}
	u := socketURL(lines[4], database, superuser)
	conn, err := pgx.Connect(ctx, u)
	if err != nil {
		return "", false, nil // the socket of a server that was killed
	}
	return u, true, conn.Close(ctx)
}
