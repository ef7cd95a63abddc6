package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"linktrial/internal/namespace"
	"linktrial/internal/process"
)

// Parameters of the comparison over a fast link.
const (
	fastMTU      = 1500 // Ethernet's
	fastPort     = 7002
	fastFor      = 3 * time.Second // of writing
	fastPatience = 60 * time.Second
	clientIP     = "10.99.0.1"
	serverIP     = "10.99.0.2"
)

// Environment of an end, which is this program once more.
const (
	endVariable     = "LINKTRIAL_BENCH_END"     // transport and role, as "haul client"
	profileVariable = "LINKTRIAL_BENCH_PROFILE" // folder for CPU profiles of the ends; set it to get some
)

// outcome is what an end reports of a transfer.
type outcome struct {
	Bytes   int64         `json:"bytes"`
	Elapsed time.Duration `json:"elapsed"`
	CPU     time.Duration `json:"cpu"`
	PeakRSS int64         `json:"peak_rss"` // bytes
	Note    string        `json:"note"`
}

func (o outcome) gbps() float64 { return float64(o.Bytes) * 8 / o.Elapsed.Seconds() / 1e9 }

// transport has the two ends of a bulk transfer.
type transport struct {
	name   string
	server func() (outcome, error) // calls ready, takes one connection, reads it to its end
	client func() (outcome, error) // writes for fastFor, and waits until all has arrived
}

func TestMain(m *testing.M) {
	name, role, ok := strings.Cut(os.Getenv(endVariable), " ")
	if !ok {
		os.Exit(m.Run())
	}
	if err := end(name, role); err != nil {
		fmt.Fprintln(os.Stderr, name, role+":", err)
		os.Exit(1)
	}
}

// end is one end of a transfer, in a process of its own.
func end(name, role string) error {
	for _, t := range transports {
		if t.name != name {
			continue
		}
		f := t.server
		if role == "client" {
			f = t.client
		}
		stop, err := profile(name + "-" + role)
		if err != nil {
			return err
		}
		o, err := f()
		if err := errors.Join(err, stop()); err != nil {
			return err
		}
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			return err
		}
		o.CPU = time.Duration(u.Utime.Nano() + u.Stime.Nano())
		o.PeakRSS = u.Maxrss << 10
		return json.NewEncoder(os.Stdout).Encode(o)
	}
	return fmt.Errorf("no transport %q", name)
}

func profile(name string) (stop func() error, err error) {
	folder := os.Getenv(profileVariable)
	if folder == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(filepath.Join(folder, name+".pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error { pprof.StopCPUProfile(); return f.Close() }, nil
}

// ready tells the benchmark that the server listens.
func ready() { fmt.Fprintln(os.Stderr, "ready") }

// wire is a pair of network namespaces with a link between them, without delay
// and loss: as fast as the machine.
type wire struct{ client, server string }

func newWire(tb testing.TB) wire {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("network namespaces need root")
	}
	w := wire{fmt.Sprintf("lthaul-%d-c", os.Getpid()), fmt.Sprintf("lthaul-%d-s", os.Getpid())}
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
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "wire0", MTU: fastMTU}, PeerName: "wire0", PeerNamespace: netlink.NsFd(there), PeerMTU: fastMTU})
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

// start starts an end on one processor, in its namespace.
func (w wire) start(tb testing.TB, name, role string) (cmd *exec.Cmd, out, complaint *output) {
	tb.Helper()
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	place, processor := w.client, 0
	if role == "server" {
		place, processor = w.server, runtime.NumCPU()-1
	}
	// Ahead of other programs of the machine, which would decide the result.
	cmd = exec.Command("chrt", "--rr", "1", "taskset", "--cpu-list", strconv.Itoa(processor), self)
	cmd.Env = append(os.Environ(), endVariable+"="+name+" "+role, "GOMAXPROCS=1")
	out, complaint = &output{}, &output{ready: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, complaint
	if err := process.StartIn(cmd, namespace.Path(place)); err != nil {
		tb.Fatal(err)
	}
	return cmd, out, complaint
}

// output keeps what an end writes, and notes when it is ready.
type output struct {
	text  []byte
	ready chan struct{}
	told  bool
}

func (o *output) Write(b []byte) (int, error) {
	o.text = append(o.text, b...)
	if o.ready != nil && !o.told && bytes.HasPrefix(o.text, []byte("ready\n")) {
		o.told = true
		close(o.ready)
	}
	return len(b), nil
}

// transfer is one transfer with a transport.
func (w wire) transfer(tb testing.TB, name string) (sent, got outcome) {
	tb.Helper()
	server, serverOut, serverErr := w.start(tb, name, "server")
	select {
	case <-serverErr.ready:
	case <-time.After(fastPatience):
		_ = server.Process.Kill()
		_ = server.Wait()
		tb.Fatalf("%s: the server does not listen: %s", name, serverErr.text)
	}
	client, clientOut, clientErr := w.start(tb, name, "client")
	late := time.AfterFunc(fastPatience, func() { _ = client.Process.Kill(); _ = server.Process.Kill() })
	defer late.Stop()
	if err := errors.Join(client.Wait(), server.Wait()); err != nil {
		tb.Fatalf("%s: %v\n%s%s", name, err, clientErr.text, serverErr.text)
	}
	if err := errors.Join(json.Unmarshal(clientOut.text, &sent), json.Unmarshal(serverOut.text, &got)); err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	if got.Bytes != sent.Bytes {
		tb.Fatalf("%s: %d bytes sent, %d received", name, sent.Bytes, got.Bytes)
	}
	return sent, got
}

// BenchmarkFastLink is haul beside quic-go over a link that is as fast as the
// machine, each end with one processor, both encrypting with AES-GCM.
func BenchmarkFastLink(b *testing.B) {
	w := newWire(b)
	rate := map[string]float64{}
	peak := map[string]float64{}
	runs := 0
	for b.Loop() {
		runs++
		for _, t := range transports {
			sent, got := w.transfer(b, t.name)
			b.Logf("%-10s %6.3f Gbit/s, %4.0f MB in %.2f s; processor: sender %.2f ns/B, receiver %.2f ns/B; peak memory: sender %.1f MB, receiver %.1f MB; %s", t.name, got.gbps(),
				float64(got.Bytes)/1e6, got.Elapsed.Seconds(), float64(sent.CPU)/float64(sent.Bytes), float64(got.CPU)/float64(got.Bytes), float64(sent.PeakRSS)/1e6, float64(got.PeakRSS)/1e6, sent.Note)
			rate[t.name] += got.gbps()
			peak[t.name+"-sender"] = max(peak[t.name+"-sender"], float64(sent.PeakRSS)/1e6)
			peak[t.name+"-receiver"] = max(peak[t.name+"-receiver"], float64(got.PeakRSS)/1e6)
		}
	}
	for _, t := range transports {
		b.ReportMetric(rate[t.name]/float64(runs), t.name+"-Gbit/s")
	}
	b.ReportMetric(rate["haul"]/rate["quic-go"], "haul/quic-go")
	b.ReportMetric(peak["haul-sender"], "haul-sender-MB")
	b.ReportMetric(peak["haul-receiver"], "haul-receiver-MB")
	b.ReportMetric(0, "ns/op") // says nothing here
}
