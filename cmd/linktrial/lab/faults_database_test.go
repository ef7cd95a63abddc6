package lab

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What is held is not started until it is released, or nobody wants it any more.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h hold
		require.NoError(t, h.wait(t.Context()))
		h.set(true)
		h.set(true)
		began := time.Now()
		time.AfterFunc(time.Hour, func() { h.set(false) })
		require.NoError(t, h.wait(t.Context()))
		require.Equal(t, time.Hour, time.Since(began))
		h.set(false)
		require.NoError(t, h.wait(t.Context()))

		h.set(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, h.wait(ctx), context.DeadlineExceeded)
	})
}
