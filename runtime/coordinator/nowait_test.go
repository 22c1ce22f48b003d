package coordinator

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/ps"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/wire"
)

// The loss of a member whose connections end is known at once, in either order: with
// timers of an hour, the others form a group as fast as with short ones.
func TestLostMemberNeedsNoTimer(t *testing.T) {
	for name, leavesFirst := range map[string]bool{"the worker's connection ends first": true, "the holder's connection ends first": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, reduceSpec(3, 1), linear{})
			a := newAllReduce(b.options)
			a.pause, a.answer = time.Hour, time.Hour
			defer a.close()
			var members []*session.Member
			var ends []func()
			for i := range 3 {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				serving, cancel := context.WithCancel(b.ctx)
				served := make(chan error, 1)
				server := ps.New(i, b.options.Credentials, nil, nil, b.options.Log)
				go func() { served <- server.Serve(serving, l) }()
				ends = append(ends, func() { cancel(); <-served })
				defer cancel()
				m := session.NewMember(nil, wire.Hello{Role: wire.RoleWorker, Index: i, Address: l.Addr().String()})
				members = append(members, m)
				a.enter(m)
			}
			if err := a.connect(b.ctx); err != nil || len(a.links) != 3 {
				t.Fatalf("%d links, %v", len(a.links), err)
			}
			if leavesFirst {
				if !a.leave(members[1]) {
					t.Error("the group does not need one of its members")
				}
				ends[1]()
			} else {
				ends[1]()
				<-a.watch()
			}
			if a.lossReason() == "" {
				t.Error("the loss is not known")
			}
			formed := make(chan error, 1)
			go func() { formed <- a.connect(b.ctx) }()
			if !leavesFirst {
				time.Sleep(20 * time.Millisecond) // it may wait for the closed port by now
				a.leave(members[1])
			}
			if err := <-formed; err != nil || len(a.links) != 2 {
				t.Fatalf("%d links, %v", len(a.links), err)
			}
		})
	}
}
