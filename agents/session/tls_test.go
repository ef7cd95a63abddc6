package session

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A session is resumed with the small key share alone. An orchestrator that has forgotten
// the session gets a handshake with all of them, which is as safe as the first.
func TestKeySharesOfResumedSessions(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	now := time.Now()
	cert, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now, NotAfter: now.Add(time.Hour)}, &x509.Certificate{}, key.Public(), key)
	require.NoError(t, err)
	var mu sync.Mutex
	var offered [][]tls.CurveID
	serve := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}
	serve.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		mu.Lock()
		defer mu.Unlock()
		offered = append(offered, hello.SupportedCurves)
		return nil, nil
	}
	serve.SetSessionTicketKeys([][32]byte{{1}})
	l, err := tls.Listen("tcp", "127.0.0.1:0", serve)
	require.NoError(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte{1}) // after the ticket; fails where the node goes back
			_ = c.Close()
		}
	})
	defer running.Wait()
	defer l.Close()

	var r resumption
	connect := func() (resumed bool, handshakes [][]tls.CurveID) {
		mu.Lock()
		before := len(offered)
		mu.Unlock()
		c, err := r.connect(t.Context(), func() *tls.Config {
			return &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true} //nolint:gosec // what is sent is no secret
		}, func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		})
		require.NoError(t, err)
		defer c.Close()
		_, err = io.ReadFull(c, make([]byte, 1))
		require.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		return c.(*tls.Conn).ConnectionState().DidResume, slices.Clone(offered[before:])
	}
	small := []tls.CurveID{tls.X25519}
	full := func(shares []tls.CurveID) {
		t.Helper()
		require.Contains(t, shares, tls.X25519MLKEM768)
	}
	resumed, hands := connect()
	require.False(t, resumed)
	require.Len(t, hands, 1)
	full(hands[0])
	for range 2 {
		resumed, hands = connect()
		require.True(t, resumed)
		require.Equal(t, [][]tls.CurveID{small}, hands)
	}
	serve.SetSessionTicketKeys([][32]byte{{2}})
	resumed, hands = connect()
	require.False(t, resumed)
	require.Len(t, hands, 2)
	full(hands[1])
	resumed, _ = connect()
	require.True(t, resumed, "the new session")
}
