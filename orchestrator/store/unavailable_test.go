package store_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/store"
)

func TestFaultOf(t *testing.T) {
	state := func(code string) error {
		return fmt.Errorf("read run: %w", &pgconn.PgError{Code: code, Message: "relation \"runs\""})
	}
	for name, c := range map[string]struct {
		err  error
		want store.Fault
	}{
		"none":               {nil, store.NoFault},
		"of somebody else":   {errors.New("no such plan"), store.NoFault},
		"no rows":            {fmt.Errorf("run: %w", pgx.ErrNoRows), store.NoRows},
		"shut down":          {state("57P01"), store.Unavailable},
		"disk full":          {state("53100"), store.Unavailable},
		"serialization":      {state("40001"), store.Unavailable},
		"cut off":            {fmt.Errorf("receive: %w", io.ErrUnexpectedEOF), store.Unavailable},
		"NUL":                {state("22021"), store.BadValue},
		"a broken statement": {state("42P01"), store.Internal},
		"a constraint":       {state("23505"), store.Internal},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, store.FaultOf(c.err)) })
	}
}
