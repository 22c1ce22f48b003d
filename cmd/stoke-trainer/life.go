package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// beatTime is between two beats.
const beatTime = 2 * time.Second

// life is the evidence that the process lives: the process itself, and its loop,
// if it has one.
type life struct {
	turned atomic.Pointer[time.Time] // nil: there is no loop
}

// turn notes that the loop has got on.
func (l *life) turn() { l.turned.Store(new(time.Now())) }

// idle is for how long the loop has not got on.
func (l *life) idle() time.Duration {
	if at := l.turned.Load(); at != nil {
		return time.Since(*at)
	}
	return 0
}

// beat reports to the supervisor again and again that the process lives, until a
// report fails.
func (l *life) beat(control io.Writer) {
	for {
		b := spec.Beat{Idle: l.idle().Seconds()}
		if json.NewEncoder(control).Encode(spec.Control{Beat: &b}) != nil {
			return
		}
		time.Sleep(beatTime)
	}
}

// serve answers probes at an address until the process ends; "" is no address.
func (l *life) serve(address string, log *slog.Logger) error {
	if address == "" {
		return nil
	}
	at, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	log.Info("listening", "for", "probes", "address", at.Addr().String())
	server := &http.Server{Handler: l, ReadTimeout: probeTime, WriteTimeout: probeTime, IdleTimeout: probeTime, MaxHeaderBytes: 4 << 10}
	go func() { log.Error("the listener for probes ended", "error", server.Serve(at)) }()
	return nil
}

// probeTime bounds what a probe may take.
const probeTime = 10 * time.Second

// ServeHTTP answers a probe, whatever it asks for.
func (l *life) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if idle := l.idle(); idle > spec.StuckTime {
		http.Error(w, fmt.Sprintf("the loop has not got on for %v", idle.Round(time.Second)), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// line is the way to the supervisor. Several goroutines write to it, and each
// write arrives whole.
type line struct {
	mu sync.Mutex
	to io.Writer
}

func (l *line) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(data)
}
