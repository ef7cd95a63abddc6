package haul_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/netip"
	"time"

	"linktrial/protocols/haul"
)

// A file or any other long data goes over a stream of bytes.
func Example_bulkStream() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := haul.Listen(netip.MustParseAddrPort("127.0.0.1:0"), haul.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	read := make(chan int64)
	go func() {
		c, err := l.Accept()
		if err != nil {
			log.Fatal(err)
		}
		n, err := io.Copy(io.Discard, c.Stream(1))
		if err != nil {
			log.Fatal(err)
		}
		read <- n
	}()

	c, err := haul.Dial(ctx, netip.AddrPort{}, l.Addr(), haul.Options{})
	if err != nil {
		log.Fatal(err)
	}
	s := c.Stream(1)
	if _, err := s.Write(make([]byte, 1<<20)); err != nil {
		log.Fatal(err)
	}
	if err := s.CloseWrite(); err != nil { // the other end reads io.EOF behind it
		log.Fatal(err)
	}
	fmt.Println(<-read, "bytes")
	if err := c.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: 1048576 bytes
}

// Of a status only the newest matters: a new one replaces what has not been
// delivered of those before it.
func Example_newestStatus() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := haul.Listen(netip.MustParseAddrPort("127.0.0.1:0"), haul.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	c, err := haul.Dial(ctx, netip.AddrPort{}, l.Addr(), haul.Options{})
	if err != nil {
		log.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		log.Fatal(err)
	}

	const position = 7 // the tag
	for i := 1; i <= 100; i++ {
		m := haul.Message{Tag: position, Data: fmt.Appendf(nil, "position %d", i)}
		if err := c.Replace(ctx, m); err != nil {
			log.Fatal(err)
		}
	}
	// Some of the earlier ones may arrive, too, always in order; the last does.
	var m haul.Message
	for string(m.Data) != "position 100" {
		if m, err = server.Receive(ctx); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(string(m.Data))
	if err := c.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: position 100
}

// An urgent message goes before what was queued earlier with a lower priority.
func Example_priorities() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := haul.Listen(netip.MustParseAddrPort("127.0.0.1:0"), haul.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	// On a radio of 400 kbit/s the map below takes four seconds.
	radio := haul.Link{Rate: 50_000, RTT: time.Millisecond}
	c, err := haul.Dial(ctx, netip.AddrPort{}, l.Addr(), haul.Options{Link: radio, Queue: 1 << 20})
	if err != nil {
		log.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		log.Fatal(err)
	}

	for _, m := range []haul.Message{
		{Stream: 1, Priority: 0, Data: make([]byte, 200_000)},
		{Stream: 2, Priority: 7, Data: []byte("alarm")},
		// Late is worse than never: not after half a second.
		{Stream: 3, Priority: 4, Class: haul.UnreliableSequenced, SendWithin: time.Second / 2, Data: []byte("voice")},
	} {
		if err := c.Send(ctx, m); err != nil {
			log.Fatal(err)
		}
	}
	for range 3 {
		m, err := server.Receive(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("stream", m.Stream, len(m.Data), "bytes")
	}
	if err := c.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// stream 2 5 bytes
	// stream 3 5 bytes
	// stream 1 200000 bytes
}
