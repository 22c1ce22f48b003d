package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stokehq/stoke/runtime/certificate"
)

// bareExchange is the variable of a process that exchanges bytes over bare connections,
// to compare the all-reduce with: the file of the certificate, or plain.
const bareExchange = "STOKE_TEST_BARE"

// comparedLengths are the lengths for which the all-reduce is compared.
var comparedLengths = []int{10_000, 100_000, 1_000_000, 10_000_000}

// comparedSeconds is the time for each length, in each of comparedRounds rounds. The lowest
// median of the rounds counts: on a machine that does other work the others measure that work.
const (
	comparedSeconds = 1.0
	comparedRounds  = 3
)

// compared is what rank 0 prints. Gloo's members print the time of an all-reduce with
// the update, too, which is part of stoke's.
type compared struct {
	reduced
	Update float64 `json:"update"` // median
}

// BenchmarkAllReduce compares the all-reduce of processes on this machine, over TCP
// with and without TLS, with the same bytes over bare connections and with
// torch.distributed's Gloo, where Debian's python3-torch is installed.
func BenchmarkAllReduce(b *testing.B) {
	for _, members := range []int{2, 4} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			for b.Loop() {
				compareReductions(b, members)
			}
		})
	}
}

// BenchmarkAllReduceOf32 measures 32 members with 10 million parameters, which need 6 GiB
// of memory: each has a core's time in turn. The memory of a member has at most 4 vectors.
func BenchmarkAllReduceOf32(b *testing.B) {
	if free := availableMemory(); free < 8<<30 {
		b.Skipf("%d MiB of memory are available: want 8 GiB", free>>20)
	}
	for b.Loop() {
		r := runMembers(b, 32, []string{trainer, "bench", "allreduce", "--floats", "10000000"}, "GOMAXPROCS=1", 1)[0]
		if r.Vectors > 4 {
			b.Errorf("%.2f vectors in the memory of a member", r.Vectors)
		}
		b.Logf("32 members, %d floats: %.2f s for an update, %.2f vectors in the memory of a member", r.Floats, r.Seconds, r.Vectors)
		b.ReportMetric(r.Seconds, "s/update")
		b.ReportMetric(r.Vectors, "vectors")
	}
}

// availableMemory returns the bytes that new processes can use, or 0.
func availableMemory() int64 {
	data, _ := os.ReadFile("/proc/meminfo") // of Linux
	_, rest, _ := strings.Cut(string(data), "MemAvailable:")
	var kib int64
	_, _ = fmt.Sscan(rest, &kib)
	return kib << 10
}

// compareReductions measures each way in turn, several times, and prints the ratios.
func compareReductions(b *testing.B, members int) {
	b.Helper()
	made := must(certificate.Make("bench"))
	file := filepath.Join(b.TempDir(), "certificate.pem")
	if err := os.WriteFile(file, must(made.PEM()), 0o600); err != nil {
		b.Fatal(err)
	}
	var lengths []string
	for _, n := range comparedLengths {
		lengths = append(lengths, fmt.Sprint(n))
	}
	seconds := fmt.Sprint(comparedSeconds)
	own := []string{trainer, "bench", "allreduce", "--tcp", "--seconds", seconds, "--floats", strings.Join(lengths, ",")}
	bare := append([]string{os.Args[0], seconds}, lengths...)
	type way struct {
		name    string
		command []string
		env     string
	}
	ways := []way{
		{"tcp", own, ""},
		{"bare tcp", bare, bareExchange + "=plain"},
		{"tls", append(slices.Clone(own), "--certificate-file", file), ""},
		{"bare tls", bare, bareExchange + "=" + file},
	}
	if python := torchPython(); python != "" {
		ways = append(ways, way{"gloo", append([]string{python, filepath.Join("testdata", "gloo.py"), seconds}, lengths...), ""})
	} else {
		b.Log("no comparison with Gloo: Debian's python3-torch is not installed")
	}
	lowest := make(map[string][]float64)
	keep := func(name string, i int, seconds float64) {
		if len(lowest[name]) <= i {
			lowest[name] = append(lowest[name], seconds)
		}
		lowest[name][i] = min(lowest[name][i], seconds)
	}
	for range comparedRounds {
		for _, w := range ways {
			for i, r := range runMembers(b, members, w.command, w.env, len(comparedLengths)) {
				keep(w.name, i, r.Seconds)
				if r.Update > 0 {
					keep(w.name+" and update", i, r.Update)
				}
			}
		}
	}
	for i, n := range comparedLengths {
		line := fmt.Sprintf("%d members, %8d floats:", members, n)
		for _, w := range ways {
			line += fmt.Sprintf("  %s %s", w.name, time.Duration(lowest[w.name][i]*float64(time.Second)).Round(time.Microsecond))
		}
		for _, pair := range [][2]string{{"bare tcp", "tcp"}, {"bare tls", "tls"}, {"gloo", "tcp"}, {"gloo and update", "tcp"}} {
			if lowest[pair[0]] != nil {
				ratio := lowest[pair[0]][i] / lowest[pair[1]][i]
				line += fmt.Sprintf("  %s/%s %.2f", pair[1], pair[0], ratio)
				b.ReportMetric(ratio, fmt.Sprintf("%s-%d", strings.ReplaceAll(pair[0], " ", "-"), n))
			}
		}
		b.Log(line)
	}
}

// torchPython returns the interpreter that has torch.distributed; "": none has.
func torchPython() string {
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(name, "-c", "import torch.distributed as d; assert d.is_available()").Run() == nil {
			return name
		}
	}
	return ""
}

// runMembers runs the members of an exchange, and returns what rank 0 printed.
func runMembers(b *testing.B, members int, command []string, env string, results int) (all []compared) {
	b.Helper()
	port := fmt.Sprint(holdPort(b))
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	running, ctx := errgroup.WithContext(ctx)
	var out bytes.Buffer
	for rank := range members {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Env = append(os.Environ(), "STOKE_TOKEN="+strings.Repeat("ab", 32), "MASTER_ADDR=127.0.0.1", "MASTER_PORT="+port, env,
			fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("WORLD_SIZE=%d", members))
		if rank == 0 {
			cmd.Stdout = &out
		}
		var said bytes.Buffer
		cmd.Stderr = &said
		running.Go(func() error {
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%v, rank %d: %w: %s", command, rank, err, said.String())
			}
			return nil
		})
	}
	if err := running.Wait(); err != nil {
		b.Fatal(err)
	}
	for d := json.NewDecoder(&out); ; {
		var r compared
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			b.Fatal(err)
		}
		all = append(all, r)
	}
	if len(all) != results {
		b.Fatalf("%v printed %d results", command, len(all))
	}
	return all
}

// exchangeBare sends each other member the bytes that an all-reduce sends it, twice its
// share of a vector, and receives as many. Arguments: seconds for each length, then the
// lengths; bareExchange says how.
func exchangeBare(how string) error {
	rank, _ := strconv.Atoi(os.Getenv("RANK"))
	members, _ := strconv.Atoi(os.Getenv("WORLD_SIZE"))
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	links, err := meetBare(rank, members, how)
	if err != nil {
		return err
	}
	for _, text := range os.Args[2:] {
		floats, _ := strconv.Atoi(text)
		size := 2 * 4 * floats / members
		out, in, flag := make([]byte, size), make([][]byte, members), make([]byte, 1)
		for i := range in {
			in[i] = make([]byte, size)
		}
		var took []float64
		for end, more := time.Now().Add(time.Duration(seconds*float64(time.Second))), true; more; {
			more = len(took) < 8 || time.Now().Before(end)
			begin := time.Now()
			for _, c := range links { // rank 0 lets the others begin, so that none is ahead
				if rank == 0 && c != nil {
					if _, err := c.Write([]byte{map[bool]byte{true: 1}[more]}); err != nil {
						return err
					}
				}
			}
			if rank > 0 {
				if _, err := io.ReadFull(links[0], flag); err != nil {
					return err
				}
				more = flag[0] > 0
			}
			var moving errgroup.Group
			for i, c := range links {
				if c != nil {
					moving.Go(func() error { _, err := c.Write(out); return err })
					moving.Go(func() error { _, err := io.ReadFull(c, in[i]); return err })
				}
			}
			if err := moving.Wait(); err != nil {
				return err
			}
			took = append(took, time.Since(begin).Seconds())
		}
		if rank == 0 {
			took = took[3:]
			slices.Sort(took)
			r := reduced{Floats: floats, Members: members, Updates: len(took), Seconds: took[len(took)/2]}
			if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// meetBare connects each member to each other one. Rank 0 listens where the members are
// told, and passes on the addresses of all.
func meetBare(rank, members int, how string) (links []net.Conn, err error) {
	client, server := func(c net.Conn) net.Conn { return c }, func(c net.Conn) net.Conn { return c }
	if how != "plain" {
		made := must(certificate.Read(must(os.ReadFile(how))))
		client = func(c net.Conn) net.Conn { return tls.Client(c, made.Pin.Client()) }
		server = func(c net.Conn) net.Conn { return tls.Server(c, made.Server()) }
	}
	links = make([]net.Conn, members)
	l := must(net.Listen("tcp", net.JoinHostPort("127.0.0.1", map[bool]string{true: os.Getenv("MASTER_PORT"), false: "0"}[rank == 0])))
	defer l.Close()
	type greeting struct {
		Rank    int
		Address string
		All     []string
	}
	dial := func(address string) (net.Conn, error) {
		for late := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			if c, err := net.Dial("tcp", address); err == nil || time.Now().After(late) {
				return client(c), err
			}
		}
	}
	greet := func(c net.Conn, g greeting) error { return json.NewEncoder(c).Encode(g) }
	hear := func(c net.Conn) (g greeting, err error) { // a line, and no byte more
		var line []byte
		for b := make([]byte, 1); err == nil && b[0] != '\n'; line = append(line, b...) {
			_, err = io.ReadFull(c, b)
		}
		return g, errors.Join(err, json.Unmarshal(line, &g))
	}
	addresses := make([]string, members)
	if rank > 0 {
		if links[0], err = dial(net.JoinHostPort("127.0.0.1", os.Getenv("MASTER_PORT"))); err != nil {
			return nil, err
		}
		if err := greet(links[0], greeting{Rank: rank, Address: l.Addr().String()}); err != nil {
			return nil, err
		}
		g, err := hear(links[0])
		if err != nil {
			return nil, err
		}
		addresses = g.All
	}
	for i := 1; i < rank; i++ {
		if links[i], err = dial(addresses[i]); err != nil {
			return nil, err
		}
		if err := greet(links[i], greeting{Rank: rank}); err != nil {
			return nil, err
		}
	}
	for range members - 1 - rank {
		c, err := l.Accept()
		if err != nil {
			return nil, err
		}
		c = server(c)
		g, err := hear(c)
		if err != nil {
			return nil, err
		}
		links[g.Rank], addresses[g.Rank] = c, g.Address
	}
	if rank == 0 {
		for _, c := range links[1:] {
			if err := greet(c, greeting{All: addresses}); err != nil {
				return nil, err
			}
		}
	}
	return links, nil
}
