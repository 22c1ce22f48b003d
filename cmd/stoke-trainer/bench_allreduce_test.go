package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/certificate"
	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/wire"
)

// holdPort holds a port of this machine until the test ends.
func holdPort(t testing.TB) int {
	t.Helper()
	port, err := program.HoldPort(0)
	if err != nil {
		t.Skip("a port can be held on Linux only:", err)
	}
	t.Cleanup(port.Release)
	return port.Number
}

// reductions returns the members of a benchmark on this machine.
func reductions(t *testing.T, members int, floats ...int) []*reduction {
	t.Helper()
	master := fmt.Sprintf("127.0.0.1:%d", holdPort(t))
	made := must(certificate.Make("bench"))
	all := make([]*reduction, members)
	for rank := range all {
		all[rank] = &reduction{
			rank: rank, members: members, master: master, floats: floats, seconds: 0.01, begun: make(chan int64, 1),
			known: wire.Credentials{Token: "bench", Version: "test", Certificate: &made.Pin, Key: made}, log: slog.New(slog.DiscardHandler),
		}
	}
	return all
}

// Every member makes the same updates: each one checks the values of all versions.
func TestBenchAllReduce(t *testing.T) {
	t.Parallel()
	all := reductions(t, 3, 3, 1000, 70_001)
	ends := make(chan error, len(all))
	var out bytes.Buffer
	for _, m := range all {
		go func() { ends <- m.measure(t.Context(), &out) }()
	}
	for range all {
		if err := <-ends; err != nil {
			t.Fatal(err)
		}
	}
	results := json.NewDecoder(&out)
	for _, n := range all[0].floats {
		var r reduced
		if err := results.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Floats != n || r.Members != 3 || r.Updates < leastUpdates || r.Seconds <= 0 || r.Fastest <= 0 || r.Fastest > r.Seconds {
			t.Errorf("result %+v", r)
		}
		if values := r.Vectors * float64(n); values > float64(3*n+len(all)) { // parameters, contributions and sums
			t.Errorf("%d members hold %v values of a vector of %d", len(all), values, n)
		}
	}
}

// The loss of a member ends the others with an error.
func TestBenchAllReduceWithoutAMember(t *testing.T) {
	t.Parallel()
	all := reductions(t, 3, 1000)
	all[0].seconds = 3600
	gone := errors.New("gone")
	losing, lose := context.WithCancelCause(t.Context())
	ends := make(chan error, len(all))
	for i, m := range all {
		ctx := t.Context()
		if i == 2 {
			ctx = losing
		}
		go func() { ends <- m.measure(ctx, new(bytes.Buffer)) }()
	}
	lose(gone)
	others := 0
	for range all {
		err := <-ends
		switch {
		case err == nil:
			t.Error("a member has ended well")
		case !errors.Is(err, gone):
			others++
		}
		if others == 1 && all[0].seconds > 0 { // rank 0 may still wait for the lost one
			break
		}
	}
}

func TestBenchAllReduceArguments(t *testing.T) {
	for name, value := range map[string]string{"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "STOKE_TOKEN": strings.Repeat("ab", 32)} {
		t.Setenv(name, value)
	}
	for _, c := range []struct {
		variable, value string
		floats          []int
		seconds         float64
		want            string
	}{
		{"RANK", "2", []int{10}, 1, "RANK is 2 of WORLD_SIZE 2"},
		{"RANK", "", []int{10}, 1, `RANK is "": want a number`},
		{"MASTER_PORT", "", []int{10}, 1, "want the address of rank 0"},
		{"RANK", "0", []int{1}, 1, "--floats: length 1 is smaller than the number of workers, 2"},
		{"RANK", "0", []int{10}, 0, "want more than 0"},
	} {
		t.Setenv(c.variable, c.value)
		m := reduction{floats: c.floats, seconds: c.seconds}
		if err := m.read(new(role)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v", c, err)
		}
		t.Setenv("RANK", "0")
		t.Setenv("MASTER_PORT", "1")
	}
}

// More members than the shortest default length measure the longer ones.
func TestBenchAllReduceDefaultLengths(t *testing.T) {
	for name, value := range map[string]string{"RANK": "0", "WORLD_SIZE": "101", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1", "STOKE_TOKEN": strings.Repeat("ab", 32)} {
		t.Setenv(name, value)
	}
	m := reduction{seconds: 1}
	if err := m.read(new(role)); err != nil || !slices.Equal(m.floats, reducedLengths[1:]) {
		t.Errorf("lengths %v, error %v", m.floats, err)
	}
	if all := defaultLengths(100); !slices.Equal(all, reducedLengths) {
		t.Errorf("lengths for 100 members: %v", all)
	}
}
