package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/ps"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/worker"
)

// reduction is one member of the benchmark of the all-reduce: it holds the vector and
// contributes as a worker that trains does. The member of rank 0 also sends the
// requests of a coordinator, and measures the time between two updates.
type reduction struct {
	rank, members int
	master        string // address of rank 0, host:port
	floats        []int  // lengths of the vectors that are measured
	seconds       float64
	known         wire.Credentials
	log           *slog.Logger
	begun         chan int64 // terms that all members have begun
	holder        ps.Member  // of this member, once it measures
}

// reduced is the result for one length.
type reduced struct {
	Floats  int     `json:"floats"`
	Members int     `json:"workers"`
	Updates int     `json:"updates"`         // that were measured
	Seconds float64 `json:"seconds"`         // of an update: median of the means of leastUpdates in a row
	Fastest float64 `json:"fastest_seconds"` // the lowest of these means
	Vectors float64 `json:"vectors"`         // in the memory of rank 0, its contribution aside
}

// reducedLengths are the lengths that are measured where none are given.
var reducedLengths = []int{100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000}

func benchReduceCommand() *cobra.Command {
	m, r := reduction{begun: make(chan int64, 1)}, new(role)
	cmd := &cobra.Command{
		Use:   "allreduce",
		Short: "Measure the all-reduce as one member of it; rank 0 prints the results",
		Long: "Measures the exchange of training by all-reduce, as one of its members. RANK, WORLD_SIZE, MASTER_ADDR and\n" +
			"MASTER_PORT in the environment name the members, as for a program that an experiment runs.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := m.read(r)
			if err == nil {
				err = m.measure(cmd.Context(), cmd.OutOrStdout())
			}
			if err != nil {
				return failure(cmd.ErrOrStderr(), "Nothing was measured", err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.tokenFile, "token-file", "", "`FILE` of the members' token; or STOKE_TOKEN")
	f.StringVar(&r.certificateFile, "certificate-file", "",
		"`FILE` (PEM) of the members' certificate, with its key; or STOKE_CERTIFICATE. Without it, connections stay on loopback")
	f.BoolVar(&m.known.Network, "tcp", false, "exchange over TCP between processes of one machine, too, in place of local sockets")
	f.IntSliceVar(&m.floats, "floats", nil, "`LENGTHS` of the vectors; default: 100, 1000 … 10000000, from the number of workers on")
	f.Float64Var(&m.seconds, "seconds", 1, "`SECONDS` for each length")
	return cmd
}

// defaultLengths returns the lengths of which each member has a part.
func defaultLengths(members int) []int {
	return slices.DeleteFunc(slices.Clone(reducedLengths), func(n int) bool { return n < members })
}

// read reads the environment and the files.
func (m *reduction) read(r *role) (err error) {
	for _, v := range []struct {
		name string
		to   *int
	}{{"RANK", &m.rank}, {"WORLD_SIZE", &m.members}} {
		if *v.to, err = strconv.Atoi(os.Getenv(v.name)); err != nil {
			return badUsage("%s is %q: want a number", v.name, os.Getenv(v.name))
		}
	}
	if m.rank < 0 || m.rank >= m.members {
		return badUsage("RANK is %d of WORLD_SIZE %d", m.rank, m.members)
	}
	host, port := os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT")
	if host == "" || port == "" {
		return badUsage("MASTER_ADDR is %q and MASTER_PORT %q: want the address of rank 0", host, port)
	}
	m.master = net.JoinHostPort(host, port)
	if m.floats == nil {
		m.floats = defaultLengths(m.members)
	}
	for _, n := range m.floats {
		switch {
		case n < m.members:
			return badUsage("--floats: length %d is smaller than the number of workers, %d", n, m.members)
		case n > wire.MaxBody:
			return badUsage("--floats: length %d is larger than %d", n, wire.MaxBody)
		}
	}
	if !(m.seconds > 0) {
		return badUsage("--seconds is %v: want more than 0", m.seconds)
	}
	m.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	m.known.Version = version
	if m.known.Token, err = r.readToken(); err != nil {
		return usageError{err}
	}
	if err := r.readCertificate(); err != nil {
		return usageError{err}
	}
	m.known.Certificate, m.known.Key = r.known.Certificate, r.known.Key
	return nil
}

// measure takes part until all lengths are measured. Rank 0 writes the results.
func (m *reduction) measure(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l, err := m.listen(ctx)
	if err != nil {
		return err
	}
	holder := ps.Member{Server: ps.New(m.rank, m.known, nil, nil, m.log)}
	m.holder = holder
	reducer := worker.NewReducer(worker.Options{
		Index: m.rank, Credentials: m.known, Holder: holder, Address: l.Addr().String(), Log: m.log,
	})
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := holder.Serve(ctx, l); err != nil {
			cancel(err)
		}
	}()
	defer func() { <-served }()
	defer cancel(nil)
	for _, do := range []func() error{
		func() error { return reducer.Run(ctx) },
		func() error { return m.contribute(ctx, holder, reducer) },
	} {
		go func() { cancel(do()) }()
	}
	if m.rank > 0 {
		return m.follow(ctx, l.Addr().String())
	}
	all, end, err := m.gather(ctx, l.Addr().String())
	if err != nil {
		return err
	}
	defer end()
	return m.conduct(ctx, all, json.NewEncoder(out).Encode)
}

// listen opens the member's port, at the address of its connections to rank 0.
func (m *reduction) listen(ctx context.Context) (net.Listener, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", m.master) // sends nothing
	if err != nil {
		return nil, fmt.Errorf("find the way to rank 0: %w", err)
	}
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	conn.Close()
	if err != nil {
		return nil, err
	}
	return net.Listen("tcp", net.JoinHostPort(host, "0"))
}

// contribute gives the group a contribution for each update: a vector whose values are
// the rank + 1. A contribution that reaches a member before its term is refused there.
func (m *reduction) contribute(ctx context.Context, holder worker.Holder, reducer *worker.Reducer) error {
	var sums []float32
	for term, version := int64(0), int64(0); ; {
		_, at, changed := holder.Group()
		if at.Term == term && at.Version == version && term > 0 {
			if err := m.contributeTo(at, &sums, holder, reducer); err != nil {
				return err
			}
			version++
			continue
		}
		select {
		case term = <-m.begun:
			version = 0
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// contributeTo checks the values of a version, and contributes to the next one.
func (m *reduction) contributeTo(at wire.Applied, sums *[]float32, holder worker.Holder, reducer *worker.Reducer) error {
	values, release, _, _ := holder.Hold(at.Term, at.Version)
	if release == nil {
		return nil // the next term has begun
	}
	n, first, last := len(values), values[0], values[len(values)-1]
	release()
	if want := m.expected(at.Version); first != want || last != want {
		return fmt.Errorf("the values are %v and %v after %d updates: want %v", first, last, at.Version, want)
	}
	if len(*sums) != n {
		*sums = slices.Repeat([]float32{float32(m.rank + 1)}, n)
	}
	p := wire.Push{ID: m.lease(at.Version, m.rank), Version: at.Version, Exact: true, Weight: 1, Leaves: 1}
	p.Term, p.Worker = at.Term, m.rank
	return reducer.Contribute(p, *sums)
}

// expected returns each value of a version: an update subtracts the mean of the
// contributions, which float32 has without an error.
func (m *reduction) expected(version int64) float32 { return -float32(version*int64(m.members+1)) / 2 }

// lease returns the number of a member's contribution to the update of a version.
func (m *reduction) lease(version int64, rank int) int64 {
	return version*int64(m.members) + int64(rank) + 1
}

// meetTime is the time for all members to connect to rank 0.
const meetTime = 2 * time.Minute

// benchPatience is the longest silence between rank 0 and another member: the machine may have
// many more members than cores.
const benchPatience = time.Minute

// leaveTime is the time for a member to end its connection.
const leaveTime = 2 * time.Second

// follow sends rank 0 the member's address, and obeys rank 0 until the end.
func (m *reduction) follow(ctx context.Context, address string) error {
	known := m.known
	known.Network = true // Dial may greet twice otherwise, and rank 0 counts the members
	c, err := dialMember(ctx, known, m.master, wire.Hello{Role: wire.RoleMember, Index: m.rank, PID: os.Getpid(), Address: address})
	if err != nil {
		return fmt.Errorf("connect to rank 0: %w", err)
	}
	defer c.Close()
	c.SetPatience(benchPatience)
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	return m.obey(ctx, c)
}

// dialMember connects to a member. A member that does not listen yet, or does not answer in
// time, is tried again until meetTime has passed.
func dialMember(ctx context.Context, known wire.Credentials, address string, hello wire.Hello) (*wire.Conn, error) {
	meeting, cancel := context.WithTimeout(ctx, meetTime)
	defer cancel()
	for {
		c, err := known.Dial(meeting, address, hello)
		if err == nil || errors.Is(err, wire.ErrRefused) {
			return c, err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-meeting.Done():
			return nil, err
		}
	}
}

// obey begins the terms that rank 0 names, until it ends the member.
func (m *reduction) obey(ctx context.Context, c *wire.Conn) error {
	for {
		msg, err := c.Receive(0)
		var at wire.Applied
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("rank 0 is lost: %w", err)
		case msg.Type == wire.TypeLeave:
			return nil
		case msg.Type != wire.TypeApplied:
			return fmt.Errorf("rank 0 sent %s", msg.Type)
		}
		if err := msg.Decode(&at); err != nil {
			return err
		}
		select {
		case m.begun <- at.Term:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// peer is another member, connected to rank 0.
type peer struct {
	hello wire.Hello
	conn  *wire.Conn
}

// gather waits for the other members, and returns them by rank; the first one is this
// member, without a connection. end lets the others end.
func (m *reduction) gather(ctx context.Context, own string) (all []peer, end func(), err error) {
	_, port, err := net.SplitHostPort(m.master)
	if err != nil {
		return nil, nil, err
	}
	host, _, err := net.SplitHostPort(own)
	if err != nil {
		return nil, nil, err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, nil, err
	}
	arrived, over, served := make(chan peer), make(chan struct{}), make(chan struct{})
	serving, cancel := context.WithCancel(ctx)
	go func() {
		defer close(served)
		err := m.known.Serve(serving, l, func(c *wire.Conn, h wire.Hello) {
			c.SetPatience(benchPatience)
			select {
			case arrived <- peer{h, c}:
				<-over
			case <-serving.Done():
			}
		}, func(err error) { m.log.Warn("connection refused", "error", err) })
		if err != nil {
			m.log.Error("other members cannot connect", "error", err)
		}
	}()
	end = func() {
		for _, p := range all {
			if p.conn != nil && p.conn.Send(wire.TypeLeave, wire.Leave{}, nil) == nil {
				p.conn.Receive(leaveTime) //nolint:errcheck // the member closes the connection once it has read that
			}
		}
		close(over)
		cancel()
		<-served
	}
	if all, err = m.await(ctx, own, arrived); err != nil {
		end()
	}
	return all, end, err
}

// await takes the other members as they arrive. With an error it returns the members that have arrived.
func (m *reduction) await(ctx context.Context, own string, arrived <-chan peer) ([]peer, error) {
	all := make([]peer, m.members)
	all[0].hello.Address = own
	late := time.NewTimer(meetTime)
	defer late.Stop()
	for missing := m.members - 1; missing > 0; missing-- {
		select {
		case p := <-arrived:
			if i := p.hello.Index; i < 1 || i >= m.members || all[i].conn != nil {
				return all, fmt.Errorf("a member of rank %d has come: want each of 1 to %d once", i, m.members-1)
			}
			all[p.hello.Index] = p
		case <-late.C:
			return all, fmt.Errorf("%d of %d members have not come within %v", missing, m.members, meetTime)
		case <-ctx.Done():
			return all, context.Cause(ctx)
		}
	}
	return all, nil
}
