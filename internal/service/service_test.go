package service_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/internal/service"
)

func TestGoStopsItsLoopsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int32
		loop := func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended.Add(1)
		}
		stop := service.Go(t.Context(), loop, loop)
		go stop()
		stop()
		require.EqualValues(t, 2, ended.Load())
		stop()
	})
}

func TestGoEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		stop := service.Go(ctx, func(ctx context.Context) { <-ctx.Done(); ended = true })
		cancel()
		synctest.Wait()
		require.True(t, ended)
		stop()
	})
}

func TestGroupStopsInReverseOrderOnce(t *testing.T) {
	var g service.Group
	var stopped []string
	first, third := errors.New("first failed"), errors.New("third failed")
	note := func(name string, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			require.Error(t, ctx.Err(), "the caller's context")
			stopped = append(stopped, name)
			return err
		}
	}
	g.AddContext("first", note("first", first))
	g.Add("second", func() { stopped = append(stopped, "second") })
	g.AddContext("third", note("third", third))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		err := g.Stop(ctx)
		require.ErrorIs(t, err, first)
		require.ErrorIs(t, err, third)
		require.Equal(t, []string{"third", "second", "first"}, stopped)
	}
}

// It is not in a bubble of synctest, which takes a wait for a [sync.Once] for work.
func TestAnotherStopWaitsForTheFirst(t *testing.T) {
	var g service.Group
	begun, stopped := make(chan struct{}), false
	g.Add("slow", func() {
		close(begun)
		time.Sleep(20 * time.Millisecond)
		stopped = true
	})
	go func() { _ = g.Stop(t.Context()) }()
	<-begun
	require.NoError(t, g.Stop(t.Context()))
	require.True(t, stopped)
}

// Of three services one takes longer than the bound: it is named, and waited for.
func TestGroupNamesTheServiceThatDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g := service.Group{Logger: slog.New(slog.NewTextHandler(&log, nil)), Slow: 5 * time.Second}
		g.Add("store", func() { time.Sleep(4 * time.Second) })
		g.Add("engine", func() { time.Sleep(6 * time.Second) })
		g.Add("library", func() {})
		began := time.Now()
		require.NoError(t, g.Stop(t.Context()))
		require.Equal(t, 10*time.Second, time.Since(began))
		synctest.Wait()
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), `msg="a service has not stopped yet" service=engine after=5s`)
	})
}

func TestAnEmptyGroupStops(t *testing.T) {
	var g service.Group
	require.NoError(t, g.Stop(t.Context()))
}
