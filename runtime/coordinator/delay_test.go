package coordinator

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// distant is a listener whose connections deliver everything that they send
// after a delay, in its order.
type distant struct {
	net.Listener
	delay time.Duration
}

type distantConn struct {
	net.Conn
	delay time.Duration
	once  sync.Once
	queue chan parcel
	done  chan struct{} // closed by Close
}

type parcel struct {
	bytes []byte
	due   time.Time
}

func (l *distant) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	d := &distantConn{Conn: c, delay: l.delay, queue: make(chan parcel, 1<<12), done: make(chan struct{})}
	go d.deliver()
	return d, nil
}

// deliver writes what was sent, also before a Close.
func (c *distantConn) deliver() {
	defer c.Conn.Close()
	for {
		var p parcel
		select {
		case p = <-c.queue:
		default:
			select {
			case p = <-c.queue:
			case <-c.done:
				return
			}
		}
		time.Sleep(time.Until(p.due))
		if _, err := c.Conn.Write(p.bytes); err != nil {
			return // the reader of the connection hears of it
		}
	}
}

func (c *distantConn) Write(p []byte) (int, error) {
	select {
	case <-c.done:
		return 0, net.ErrClosed
	case c.queue <- parcel{slices.Clone(p), time.Now().Add(c.delay)}:
		return len(p), nil
	}
}

func (c *distantConn) Close() error {
	c.once.Do(func() { close(c.done) })
	return c.Conn.SetReadDeadline(time.Now())
}

// An update costs at most two pushes for each worker, and at most three round
// trips that follow one another. These are counted as delays that fit between
// two commits, in the fastest update. A slow machine makes them longer: where there
// seem to be too many, they are counted again with a delay beside which its own is small.
func TestRoundTripsOfAnUpdate(t *testing.T) {
	for _, servers := range []int{1, 2} {
		for _, batch := range []int{64, 1024, 4096} {
			t.Run(fmt.Sprintf("%d servers, batch %d", servers, batch), func(t *testing.T) {
				t.Parallel()
				trips := 0
				for _, try := range []struct {
					delay time.Duration
					steps int
				}{{20 * time.Millisecond, 25}, {200 * time.Millisecond, 12}, {2 * time.Second, 5}} {
					fastest := fastestUpdate(t, servers, batch, try.steps, try.delay)
					trips = int(fastest / try.delay)
					t.Logf("%d round trips, %v with a delay of %v", trips, fastest, try.delay)
					if trips <= 3 {
						break
					}
				}
				if trips < 1 || trips > 3 {
					t.Errorf("%d round trips follow one another in an update", trips)
				}
			})
		}
	}
}

// fastestUpdate returns the shortest time of an update in a run of two workers whose
// messages arrive after a delay.
func fastestUpdate(t *testing.T, servers, batch, steps int, delay time.Duration) time.Duration {
	t.Helper()
	const workers = 2
	s := pointsSpec()
	s.Worker.Replicas, s.ParameterServer.Replicas, s.BatchSize, s.MicroBatch = workers, servers, batch, 32
	s.Epochs, s.MaxSteps, s.LearningRate = 1000, steps, 0.1
	b := unserved(t, s, linear{size: 100})
	b.options.Workload.Train = points{1 << 14}
	server := newTap()
	b.tapped, b.delay = server, delay
	coordinator := newTap()
	b.options.Workers = &distant{&tapped{b.options.Workers, coordinator}, delay}
	b.serve()
	if st := b.run(); st.Phase != spec.Succeeded || st.Step != int64(steps) {
		t.Fatalf("status %+v", st)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	coordinator.mu.Lock()
	defer coordinator.mu.Unlock()
	// A lease that is taken from a slow worker may be pushed by both workers.
	most := int64(2*workers*steps) + coordinator.sent[wire.TypeRevoke].frames
	if n := server.received[wire.TypePush].frames; n < int64(steps*servers) || n > most*int64(servers) {
		t.Errorf("%d pushes to %d servers in %d updates of %d workers", n, servers, steps, workers)
	}
	fastest := time.Hour
	for i := 1; i < len(server.prepared); i++ {
		if i%servers == 0 && i >= 2*servers { // the first update waits for all to connect
			fastest = min(fastest, server.prepared[i].Sub(server.prepared[i-servers]))
		}
	}
	return fastest
}
