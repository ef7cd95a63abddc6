// Package telemetry lets an emulated radio tell of itself as a real one does: by
// SNMPv2c, with MIB-II's counters and a few metrics of its own, and as a JSON
// document by HTTP. Comes in: sockets and a function that reads a radio's state.
// Goes out: answers.
package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"linktrial/internal/radio"
)

// State is what a radio tells of itself at one moment.
type State struct {
	Role     radio.Role `json:"role"`
	MTUBytes int        `json:"mtu_bytes"`
	Up       bool       `json:"up"`
	// UptimeSeconds is since the radio was switched on.
	UptimeSeconds float64 `json:"uptime_seconds"`

	// Counters of the interface towards the node, since then: In is what the
	// node handed to the radio.
	InBytes    uint64 `json:"in_bytes"`
	InPackets  uint64 `json:"in_packets"`
	OutBytes   uint64 `json:"out_bytes"`
	OutPackets uint64 `json:"out_packets"`
	// DroppedPackets are those for which the radio's queue had no place.
	DroppedPackets uint64 `json:"dropped_packets"`

	// Of the worst way to a neighbour, the slowest, and all queues together.
	SNR               float64 `json:"snr_db"`
	RateBitsPerSecond float64 `json:"rate_bits_per_second"`
	QueueBytes        int     `json:"queue_bytes"`

	Neighbours []Neighbour `json:"neighbours"` // in the order of the network's links
}

// Neighbour is what the radio knows of its way to another.
type Neighbour struct {
	Role              radio.Role `json:"role"`
	SNR               float64    `json:"snr_db"`
	QueueBytes        int        `json:"queue_bytes"`
	QueuePackets      int        `json:"queue_packets"`
	RateBitsPerSecond float64    `json:"rate_bits_per_second"`
	Loss              float64    `json:"loss"` // probability that a full-sized transmission is lost now
}

// Sum fills in the values that are made of the neighbours'.
func (s *State) Sum() {
	for i, n := range s.Neighbours {
		if i == 0 || n.SNR < s.SNR {
			s.SNR = n.SNR
		}
		if i == 0 || n.RateBitsPerSecond < s.RateBitsPerSecond {
			s.RateBitsPerSecond = n.RateBitsPerSecond
		}
		s.QueueBytes += n.QueueBytes
	}
}

// Server answers for one radio until it is closed.
type Server struct {
	packets net.PacketConn
	http    *http.Server
	running sync.WaitGroup
	log     *slog.Logger
}

// readLimit bounds one look at the radio, and one HTTP exchange.
const readLimit = 2 * time.Second

// Serve answers SNMP on packets and HTTP on pages, both of which it closes in
// the end. read is called for each request, from several goroutines.
func Serve(packets net.PacketConn, pages net.Listener, read func() (*State, error), log *slog.Logger) *Server {
	s := &Server{packets: packets, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+radio.EmulatedHTTPPath, func(w http.ResponseWriter, _ *http.Request) {
		st, err := read()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(st) // the client has closed the connection
	})
	s.http = &http.Server{Handler: mux, ReadTimeout: readLimit, WriteTimeout: readLimit, IdleTimeout: time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	s.running.Go(func() {
		if err := s.http.Serve(pages); !errors.Is(err, http.ErrServerClosed) {
			log.Error("telemetry by HTTP has ended", "error", err)
		}
	})
	s.running.Go(func() { s.answer(read) })
	return s
}

// Close ends the server and waits for what it started.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	_ = s.packets.Close()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	s.running.Wait()
}

// answer answers SNMP requests one after the other.
func (s *Server) answer(read func() (*State, error)) {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := s.packets.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an answer to an earlier request was refused on its way
		}
		out, err := respond(buf[:n], read)
		if err != nil {
			s.log.Debug("SNMP request was passed over", "from", from.String(), "error", err)
			continue
		}
		_, _ = s.packets.WriteTo(out, from) // lost answers are asked for again
	}
}
