package ssh

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

// hostsBehind starts so many servers, half of them behind one bastion.
func hostsBehind(t testing.TB, n int, c sshtest.Config) []Target {
	bastion := hop(serverWith(t, sshtest.Config{}), byPassword)
	targets := make([]Target, n)
	for i := range targets {
		targets[i].Hop = hop(serverWith(t, c), byPassword)
		if i%2 == 1 {
			targets[i].Hops = []Hop{bastion}
		}
	}
	return targets
}

// TestHostsInParallel has 32 hosts wait for each other: nobody gets through
// before a command runs on all of them.
func TestHostsInParallel(t *testing.T) {
	const hosts = 32
	var barrier sync.WaitGroup
	barrier.Add(hosts)
	targets := hostsBehind(t, hosts, sshtest.Config{Before: func(string) { barrier.Done(); barrier.Wait() }})
	p := &Pool{}
	defer p.Close()
	var all sync.WaitGroup
	for i, target := range targets {
		all.Go(func() {
			out, err := p.Run(t.Context(), target, command("echo", fmt.Sprint(i)), false)
			if err != nil || string(out.Stdout) != fmt.Sprintln(i) {
				t.Errorf("host %d: %q %v", i, out.Stdout, err)
			}
		})
	}
	all.Wait()
}

// BenchmarkHosts works on hosts whose five steps take a while: 32 take at most
// 1.5 times as long as one.
func BenchmarkHosts(b *testing.B) {
	took := map[int]time.Duration{}
	for _, hosts := range []int{1, 32} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			targets := hostsBehind(b, hosts, sshtest.Config{Before: func(string) { time.Sleep(400 * time.Millisecond) }})
			for b.Loop() {
				p := &Pool{}
				var all sync.WaitGroup
				for _, target := range targets {
					all.Go(func() {
						for range 5 {
							if _, err := p.Run(b.Context(), target, command("true"), false); err != nil {
								b.Error(err)
							}
						}
					})
				}
				all.Wait()
				p.Close()
			}
			took[hosts] = b.Elapsed() / time.Duration(b.N)
			if one := took[1]; one > 0 {
				b.ReportMetric(float64(took[hosts])/float64(one), "×one")
			}
		})
	}
}
