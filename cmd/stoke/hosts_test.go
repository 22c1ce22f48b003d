package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

// machines are SSH servers in this process that answer what metal_host asks of
// machines on which nothing but stoke's own record and lock is to be changed.
type machines struct {
	t      testing.TB
	facts  string // what the script that looks at a machine says
	before func(asked sshtest.Asked)
}

// start starts one and returns its block.
func (m *machines) start(i int) string {
	var mu sync.Mutex
	files := map[string]string{}
	facts := strings.NewReplacer("3d1219c7c4c5404aaa1f6d2a48adfda5", fmt.Sprintf("%032x", i+1), "deb12", fmt.Sprintf("deb-%d", i), " init=sh", " init=systemd\n systemd=systemd 252 (252.39-1~deb12u1)",
		"abcbbcdd-0473", fmt.Sprintf("%08x-0473", i), "10.20.0.5", fmt.Sprintf("10.20.0.%d", i+10), "2001:db8::5", fmt.Sprintf("2001:db8::%d", i+10), "ae:b6:d5:45:86:4e", fmt.Sprintf("ae:b6:d5:45:86:%02x", i),
		"82:a3:9a:f3:ff:46", fmt.Sprintf("82:a3:9a:f3:ff:%02x", i), "7e:0b:e0:ef:e7:31", fmt.Sprintf("7e:0b:e0:ef:e7:%02x", i)).Replace(m.facts)
	answer := func(asked sshtest.Asked) (string, int) {
		m.before(asked)
		mu.Lock()
		defer mu.Unlock()
		a := asked.Args
		switch line := strings.Join(a, " "); {
		case line == "true", a[0] == "install":
			return "", 0
		case line == "sh -s":
			io.Copy(io.Discard, asked.Stdin)
			return facts, 0
		case len(a) < 5 || a[0] != "sh":
		case strings.Contains(a[2], "lock.guard"):
			return map[string]string{"free": "free\n\n"}[a[5]] + map[bool]string{true: "held\nme\n"}[a[5] != "free"], 0
		case strings.Contains(a[2], "exec cat --"):
			if content, ok := files[a[4]]; ok {
				return "y" + content, 0
			}
			return "n", 0
		case strings.Contains(a[2], "stoke-XXXXXXXX"):
			content, err := io.ReadAll(asked.Stdin)
			files[a[4]] = string(content)
			return "", map[bool]int{false: 1}[err == nil]
		case strings.Contains(a[2], "dpkg --print-architecture"):
			return "os\tdebian\napt\tamd64\nend\n", 0
		case strings.Contains(a[2], "/var/lib/dpkg/lock-frontend"):
			return "end\n", 0
		case strings.HasPrefix(a[2], "rm -rf --"):
			clear(files)
			return "", 0
		}
		m.t.Logf("not answered: %q", a)
		return "", 127
	}
	s := sshtest.New(m.t, sshtest.Config{Password: "p", Answer: answer})
	host, port := s.Address()
	return fmt.Sprintf("resource \"metal_host\" \"h%d\" {\n  address  = %q\n  port     = %d\n  host_key = %q\n\n  private_address = \"10.20.0.%d\"\n}\n", i, host, port, s.HostKey(), i+10)
}

// hosts writes a configuration of so many.
func hosts(t testing.TB, n int, before func(sshtest.Asked)) (dir string) {
	text, err := os.ReadFile("../../providers/metal/facts/testdata/debian12.txt")
	if err != nil {
		t.Fatal(err)
	}
	m := &machines{t, string(text), before}
	var config strings.Builder
	config.WriteString("terraform {\n  required_providers {\n    metal = { source = \"stokehq/metal\" }\n  }\n}\nprovider \"metal\" {\n  ssh {\n    user     = \"ops\"\n    password = \"p\"\n  }\n}\n")
	for i := range n {
		config.WriteString(m.start(i))
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func stokeIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("stoke") // this binary: see TestMain
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("stoke %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestHostsAtOnce has machines wait for each other while they are looked at,
// and again while they are changed: nobody goes on before all are there.
func TestHostsAtOnce(t *testing.T) {
	t.Parallel()
	n := 32
	if underRace {
		n = 12 // more than the usual ten at once, and few enough for slow handshakes
	}
	var mu sync.Mutex
	there := map[string]int{}
	all := map[string]chan struct{}{}
	dir := hosts(t, n, func(asked sshtest.Asked) {
		step := ""
		switch line := strings.Join(asked.Args, " "); {
		case line == "true":
			step = "looking"
		case strings.HasPrefix(line, "install "):
			step = "changing"
		default:
			return
		}
		mu.Lock()
		if all[step] == nil {
			all[step] = make(chan struct{})
		}
		met := all[step]
		if there[step]++; there[step] == n {
			close(met)
		}
		mu.Unlock()
		select {
		case <-met:
		case <-time.After(10 * time.Minute):
			t.Errorf("%s: not all machines at once", step)
		}
	})
	stokeIn(t, dir, "init")
	if out := stokeIn(t, dir, "apply", "-auto-approve"); !strings.Contains(out, fmt.Sprintf("%d added", n)) {
		t.Errorf("%s", out)
	}
	for _, step := range []string{"looking", "changing"} {
		if there[step] < n {
			t.Errorf("%s: %d machines", step, there[step])
		}
	}
}

// BenchmarkHosts applies to machines each of whose steps takes 200 ms: 32 are to
// take at most 1.5 times as long as one.
func BenchmarkHosts(b *testing.B) {
	took := map[int]time.Duration{}
	for _, n := range []int{1, 32} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				dir := hosts(b, n, func(sshtest.Asked) { time.Sleep(200 * time.Millisecond) })
				stokeIn(b, dir, "init")
				b.StartTimer()
				stokeIn(b, dir, "apply", "-auto-approve")
			}
			took[n] = b.Elapsed() / time.Duration(b.N)
			if one := took[1]; one > 0 {
				b.ReportMetric(float64(took[n])/float64(one), "×one")
			}
		})
	}
}
