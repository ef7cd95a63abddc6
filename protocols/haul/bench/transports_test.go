package bench

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"
	"time"

	"github.com/quic-go/quic-go"

	"linktrial/protocols/haul"
)

// transports are those of the comparison over a fast link.
var transports = []transport{
	{"haul", haulServer(haul.Options{}), haulClient(haul.Options{})},
	{"haul-plain", haulServer(haul.Options{Plain: true}), haulClient(haul.Options{Plain: true})},
	{"quic-go", quicServer, quicClient},
}

// read counts what arrives, from the first byte to the last.
func read(r io.Reader) (o outcome, err error) {
	buffer := make([]byte, 64<<10)
	var first, last time.Time
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			last = time.Now()
			if first.IsZero() {
				first = last
			}
			o.Bytes += int64(n)
		}
		if errors.Is(err, io.EOF) {
			o.Elapsed = last.Sub(first)
			return o, nil
		}
		if err != nil {
			return o, err
		}
	}
}

// write writes for fastFor.
func write(w io.Writer) (o outcome, err error) {
	buffer := make([]byte, 64<<10)
	_, _ = rand.Read(buffer)
	began := time.Now()
	for time.Since(began) < fastFor {
		n, err := w.Write(buffer)
		o.Bytes += int64(n)
		if err != nil {
			return o, err
		}
	}
	o.Elapsed = time.Since(began)
	return o, nil
}

func haulServer(o haul.Options) func() (outcome, error) {
	return func() (outcome, error) {
		l, err := haul.Listen(netip.MustParseAddrPort(fmt.Sprintf("%s:%d", serverIP, fastPort)), o)
		if err != nil {
			return outcome{}, err
		}
		defer l.Close()
		ready()
		c, err := l.Accept()
		if err != nil {
			return outcome{}, err
		}
		got, err := read(c.Stream(0))
		ctx, cancel := context.WithTimeout(context.Background(), fastPatience)
		defer cancel()
		return got, errors.Join(err, c.Close(ctx))
	}
}

func haulClient(o haul.Options) func() (outcome, error) {
	return func() (outcome, error) {
		ctx, cancel := context.WithTimeout(context.Background(), fastPatience)
		defer cancel()
		c, err := haul.Dial(ctx, netip.AddrPort{}, netip.MustParseAddrPort(fmt.Sprintf("%s:%d", serverIP, fastPort)), o)
		if err != nil {
			return outcome{}, err
		}
		s := c.Stream(0)
		sent, err := write(s)
		if err != nil {
			return sent, err
		}
		if err := s.CloseWrite(); err != nil {
			return sent, err
		}
		_, err = s.Read(make([]byte, 1)) // the server closes when it has everything
		t := c.Stats()
		sent.Note = fmt.Sprintf("%d packets sent, %d lost, %d repairs, RTT %v, window %d", t.PacketsSent, t.PacketsLost, t.Repairs, t.RTT, t.Window)
		if err := c.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return sent, err
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return sent, err
	}
}

const quicProtocol = "bench"

// certificate is the server's, which nobody checks: who the other end is, is not
// what is measured.
func certificate() (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: []string{quicProtocol}, MinVersion: tls.VersionTLS13}, nil
}

func quicTrust() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{quicProtocol}, MinVersion: tls.VersionTLS13}
}

func quicServer() (outcome, error) {
	identity, err := certificate()
	if err != nil {
		return outcome{}, err
	}
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(serverIP), Port: fastPort})
	if err != nil {
		return outcome{}, err
	}
	l, err := quic.Listen(conn, identity, nil)
	if err != nil {
		return outcome{}, err
	}
	defer l.Close()
	ready()
	ctx, cancel := context.WithTimeout(context.Background(), fastPatience)
	defer cancel()
	c, err := l.Accept(ctx)
	if err != nil {
		return outcome{}, err
	}
	s, err := c.AcceptStream(ctx)
	if err != nil {
		return outcome{}, err
	}
	o, err := read(s)
	if err := errors.Join(err, s.Close()); err != nil {
		return o, err
	}
	<-c.Context().Done() // the client closes
	return o, nil
}

func quicClient() (outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fastPatience)
	defer cancel()
	c, err := quic.DialAddr(ctx, fmt.Sprintf("%s:%d", serverIP, fastPort), quicTrust(), nil)
	if err != nil {
		return outcome{}, err
	}
	s, err := c.OpenStreamSync(ctx)
	if err != nil {
		return outcome{}, err
	}
	o, err := write(s)
	if err := errors.Join(err, s.Close()); err != nil {
		return o, err
	}
	if _, err := io.Copy(io.Discard, s); err != nil {
		return o, err
	}
	return o, c.CloseWithError(0, "")
}
