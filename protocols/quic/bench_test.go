package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strconv"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"linktrial/internal/namespace"
	"linktrial/internal/payload"
	"linktrial/internal/process"
	"linktrial/protocols/contract"
	"linktrial/protocols/harness"
)

// Parameters of the comparison with a bare transfer.
const (
	benchSize     = 512 << 20 // bytes
	benchPort     = 7003
	benchPatience = 120 * time.Second
	clientIP      = "10.99.1.1"
	serverIP      = "10.99.1.2"
)

// benchKey is the payload's of every client.
var benchKey = payload.NewKey(nil, 1)

// Environment of an end, which is this program once more.
const (
	endVariable     = "LINKTRIAL_QUIC_END"      // name of the end
	profileVariable = "LINKTRIAL_BENCH_PROFILE" // folder for CPU profiles of the ends; set it to get some
)

// ends are what a process of the comparison does. A server writes a line when it
// listens, and ends with the transfer's bytes and time on standard output.
var ends = map[string]func() error{
	"bare-server":            func() error { return bareServer(bareReader{}) },
	"bare-client":            func() error { return bareClient(func([]byte, int) {}) },
	"driver-server":          driverEnd,
	"driver-client":          driverEnd,
	"driver-noevents-server": driverEnd,
	"driver-noevents-client": driverEnd,
}

func TestMain(m *testing.M) {
	name := os.Getenv(endVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	stop := func() {}
	if folder := os.Getenv(profileVariable); folder != "" {
		if f, err := os.Create(folder + "/" + name + ".pprof"); err == nil && pprof.StartCPUProfile(f) == nil {
			stop = pprof.StopCPUProfile
		}
	}
	err := ends[name]()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// driverEnd is the driver as it is.
func driverEnd() error {
	if code := harness.Run(manifest, harness.Driver{Query: query, Listen: listen, Dial: dial}, os.Stdin, os.Stdout, os.Stderr); code != contract.ExitOK {
		return fmt.Errorf("exit code %d", code)
	}
	return nil
}

// bareReader takes what was read, and does nothing with it.
type bareReader struct{}

func (bareReader) Write(b []byte) (int, error) { return len(b), nil }

// bareServer takes one stream and reads it to its end, as a program does that has
// nothing but the library.
func bareServer(to io.Writer) error {
	c, err := certificate()
	if err != nil {
		return err
	}
	l, err := quic.ListenAddr(net.JoinHostPort(serverIP, strconv.Itoa(benchPort)), &tls.Config{Certificates: []tls.Certificate{c}, NextProtos: []string{nextProtocol}}, nil)
	if err != nil {
		return err
	}
	fmt.Println(`{"event":"ready","info":{"implementation":"quic-go"}}`)
	ctx, cancel := context.WithTimeout(context.Background(), benchPatience)
	defer cancel()
	conn, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	s, err := conn.AcceptStream(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	n, err := io.CopyBuffer(to, struct{ io.Reader }{s}, make([]byte, 128<<10))
	took := time.Since(began)
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	<-conn.Context().Done() // the client closes
	fmt.Printf(`{"event":"result","transfer":"000102030405060708090a0b0c0d0e0f","result":{"size_bytes":%d,"elapsed_ns":%d}}`+"\n", n, took.Nanoseconds())
	return nil
}

func bareClient(fill func(b []byte, at int)) error {
	ctx, cancel := context.WithTimeout(context.Background(), benchPatience)
	defer cancel()
	conn, err := quic.DialAddr(ctx, net.JoinHostPort(serverIP, strconv.Itoa(benchPort)), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{nextProtocol}}, nil)
	if err != nil {
		return err
	}
	s, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	b := make([]byte, 32<<10)
	for sent := 0; sent < benchSize; {
		b := b[:min(len(b), benchSize-sent)]
		fill(b, sent)
		n, err := s.Write(b)
		if err != nil {
			return err
		}
		sent += n
	}
	if err := s.Close(); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, s); err != nil {
		return err
	}
	return conn.CloseWithError(0, "")
}

// wire is a pair of network namespaces with a link between them, without delay
// and loss: as fast as the machine.
type wire struct{ client, server string }

func newWire(tb testing.TB) wire {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("network namespaces need root")
	}
	w := wire{fmt.Sprintf("ltquic-%d-c", os.Getpid()), fmt.Sprintf("ltquic-%d-s", os.Getpid())}
	for _, name := range []string{w.client, w.server} {
		if err := namespace.Make(name); err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := namespace.Remove(name); err != nil {
				tb.Error(err)
			}
		})
	}
	err := process.InNamespace(namespace.Path(w.client), func() error {
		there, err := netns.GetFromPath(namespace.Path(w.server))
		if err != nil {
			return err
		}
		defer there.Close()
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "wire0"}, PeerName: "wire0", PeerNamespace: netlink.NsFd(there)})
	})
	if err != nil {
		tb.Fatal(err)
	}
	for name, ip := range map[string]string{w.client: clientIP, w.server: serverIP} {
		err := process.InNamespace(namespace.Path(name), func() error {
			l, err := netlink.LinkByName("wire0")
			if err != nil {
				return err
			}
			a, err := netlink.ParseAddr(ip + "/24")
			if err != nil {
				return err
			}
			return errors.Join(netlink.AddrAdd(l, a), netlink.LinkSetUp(l))
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return w
}

// start starts an end on one processor, ahead of other programs of the machine.
func (w wire) start(tb testing.TB, name, role string, p *contract.Parameters) (*exec.Cmd, <-chan *contract.Event) {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	place, processor := w.client, 0
	if role == "server" {
		place, processor = w.server, runtime.NumCPU()-1
	}
	cmd := exec.Command("chrt", "--rr", "1", "taskset", "--cpu-list", strconv.Itoa(processor), self)
	cmd.Env = append(os.Environ(), endVariable+"="+name+"-"+role, "GOMAXPROCS=1")
	doc, err := json.Marshal(p)
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stdin, cmd.Stderr = payload.Input(doc, sourceOf(p)), os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := process.StartIn(cmd, namespace.Path(place)); err != nil {
		tb.Fatal(err)
	}
	return cmd, hear(out)
}

// await reads an end's events until one of a kind.
func await(tb testing.TB, out <-chan *contract.Event, kind contract.Kind) contract.Event {
	tb.Helper()
	for {
		e := <-out
		if e == nil {
			tb.Fatalf("ended without %s", kind)
		}
		if e.Event == kind {
			return *e
		}
		if e.Event == contract.KindError {
			tb.Fatalf("%s: %s", e.Code, e.Message)
		}
	}
}

// hear reads what an end writes, to its end, and gives its events.
func hear(out io.Reader) <-chan *contract.Event {
	events := make(chan *contract.Event, 1<<12) // more than any test has
	go func() {
		defer close(events)
		for o := contract.NewOutput(out); ; {
			e, _, _, err := o.Next()
			if err != nil {
				return
			}
			if e.Event != contract.KindPayload {
				events <- e
			}
		}
	}()
	return events
}

// transfer is one transfer of a kind; it returns its rate in Gbit/s, by the
// server's clock.
func (w wire) transfer(tb testing.TB, name string) float64 {
	tb.Helper()
	p := &contract.Parameters{Contract: contract.Version, Role: contract.RoleServer, Local: contract.Endpoint{Address: serverIP, Port: benchPort},
		Options: map[string]any{"events": name != "driver-noevents"}, Limits: contract.Limits{ConnectMS: 10_000, TransferMS: benchPatience.Milliseconds()}, SampleIntervalMS: 100}
	server, heard := w.start(tb, name, "server", p)
	defer func() { _ = server.Process.Signal(os.Interrupt); _ = server.Wait() }()
	await(tb, heard, contract.KindReady)
	q := *p
	q.Role, q.Local, q.Remote = contract.RoleClient, contract.Endpoint{Address: clientIP}, p.Local
	q.Transfer = contract.Transfer{ID: "000102030405060708090a0b0c0d0e0f", SizeBytes: benchSize}
	client, _ := w.start(tb, name, "client", &q)
	late := time.AfterFunc(benchPatience, func() { _ = client.Process.Kill(); _ = server.Process.Kill() })
	defer late.Stop()
	r := await(tb, heard, contract.KindResult).Result
	if err := client.Wait(); err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	if r.SizeBytes != benchSize {
		tb.Fatalf("%s: %d bytes of %d", name, r.SizeBytes, benchSize)
	}
	return float64(r.SizeBytes) * 8 / float64(r.ElapsedNS)
}

// BenchmarkDriver is the driver, with the library's events and without, beside a
// bare transfer of the library, in turn over the same link, each end with one
// processor. A driver gets its payload from another process, and hands it over to one.
func BenchmarkDriver(b *testing.B) {
	w := newWire(b)
	names := []string{"bare", "driver", "driver-noevents"}
	rate := map[string]float64{}
	runs := 0
	for b.Loop() {
		runs++
		for _, name := range names {
			r := w.transfer(b, name)
			b.Logf("%-15s %6.3f Gbit/s", name, r)
			rate[name] += r
		}
	}
	for _, name := range names {
		b.ReportMetric(rate[name]/float64(runs), name+"-Gbit/s")
	}
	b.ReportMetric(rate["driver"]/rate["bare"], "driver/bare")
	b.ReportMetric(rate["driver-noevents"]/rate["bare"], "noevents/bare")
	b.ReportMetric(0, "ns/op") // says nothing here
}
