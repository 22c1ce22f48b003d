package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/wire"
)

// partitionFile names, in the environment of the test's own program, a file with the
// partition of a run: see partition. Members are then reached through proxies.
const partitionFile = "STOKE_TRAINER_TEST_PARTITION"

// partition is two members of an all-reduce that cannot reach each other.
type partition struct {
	One, Other int
	Hole       bool // what they send is lost; else their connections end
}

// lingering is an engine whose steps take long as long as the file of partitions exists, so
// that a run does not end before its events do.
type lingering struct{ engine.Engine }

func (e lingering) Build(m *model.Model, o engine.Options) (engine.Replica, error) {
	r, err := e.Engine.Build(m, o)
	return lingeringReplica{r}, err
}

type lingeringReplica struct{ engine.Replica }

func (r lingeringReplica) Step(ctx context.Context, s engine.Staged, p engine.Pass) (engine.Result, error) {
	if _, err := os.Stat(os.Getenv(partitionFile)); err == nil {
		time.Sleep(100 * time.Millisecond)
	}
	return r.Replica.Step(ctx, s, p)
}

// separates reports whether a partition is between two members.
func (p *partition) separates(one, other int) bool {
	return p != nil && (p.One == one && p.Other == other || p.One == other && p.Other == one)
}

// write makes the partition of a run; nil: there is none.
func (p *partition) write(path string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// proxy forwards the connections of other processes to a member.
type proxy struct {
	to    string
	index int
	now   atomic.Pointer[partition]
}

// throughProxy returns the address of a proxy of a member's port, which lives as long as
// the process.
func throughProxy(l net.Listener, index int) string {
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	p := &proxy{to: l.Addr().String(), index: index}
	go func() {
		for range time.Tick(5 * time.Millisecond) {
			var now *partition
			if text, err := os.ReadFile(os.Getenv(partitionFile)); err == nil && json.Unmarshal(text, &now) == nil {
				p.now.Store(now)
			}
		}
	}()
	go func() {
		for {
			c, err := in.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return in.Addr().String()
}

// serve forwards one connection. Its first frame has the index of a member.
func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	first, from, err := readHello(c)
	if err != nil {
		return
	}
	member, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer member.Close()
	over := make(chan struct{}, 2)
	forward := func(to, from net.Conn, peer int) {
		defer func() { over <- struct{}{} }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := from.Read(buffer)
			if p.now.Load().separates(peer, p.index) {
				n = 0 // of a cut connection it makes no difference
			}
			if _, writing := to.Write(buffer[:n]); err != nil || writing != nil {
				return
			}
		}
	}
	if p.now.Load().separates(from, p.index) {
		return
	}
	if _, err := member.Write(first); err != nil {
		return
	}
	go forward(member, c, from)
	go forward(c, member, from)
	lost := false // bytes of a frame: the connection is of no more use
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-over:
			tick.Stop()
			return
		case <-tick.C:
		}
		now := p.now.Load()
		separated := now.separates(from, p.index)
		if lost && !separated || separated && !now.Hole {
			tick.Stop()
			return
		}
		lost = lost || separated
	}
}

// readHello reads the first frame of a connection, and returns it with the index of the
// member that has sent it; -1: the coordinator has.
func readHello(c net.Conn) (frame []byte, index int, err error) {
	frame = make([]byte, 16)
	if _, err := io.ReadFull(c, frame); err != nil {
		return nil, 0, err
	}
	head := make([]byte, binary.LittleEndian.Uint32(frame[4:]))
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, 0, err
	}
	var hello wire.Hello
	if err := json.Unmarshal(head, &hello); err != nil {
		return nil, 0, fmt.Errorf("the first frame: %w", err)
	}
	if hello.Role == wire.RoleCoordinator {
		hello.Index = -1
	}
	return append(frame, head...), hello.Index, nil
}
