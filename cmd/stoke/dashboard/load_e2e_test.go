//go:build e2e && linux

package dashboard

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/cmd/programtest"
	"github.com/stokehq/stoke/providers/train/traintest"
)

// TestLoadOfManyRuns prints how long the screens take and how much memory and processor
// time the server needs, with 196 ended and 4 live runs of 32 workers and 10 million
// updates each. It fails for memory and for processor time, not for the time on a clock.
func TestLoadOfManyRuns(t *testing.T) {
	dir := t.TempDir()
	of := traintest.Runs{Ended: 196, Live: 4, Size: traintest.Long, Files: 12}
	began := time.Now()
	ids, err := traintest.Make(t.Context(), dir, of)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("made %d runs in %.0f s", len(ids), time.Since(began).Seconds())
	ctx, cancel := context.WithCancel(t.Context())
	var keeping sync.WaitGroup
	for _, id := range ids[of.Ended:] {
		keeping.Go(func() {
			if err := traintest.Keep(ctx, dir, id, of.Size); err != nil {
				t.Errorf("keep %s: %v", id, err)
			}
		})
	}
	defer keeping.Wait()
	defer cancel()
	s := startDashboard(t, dir)
	ended, live := ids[:of.Ended], ids[of.Ended:]
	compare := url.Values{"run": ended[20:30]}.Encode()
	for _, at := range []struct {
		name  string
		paths []string
	}{
		{"first paint", []string{"/runs"}},
		{"runs", []string{"/runs"}},
		{"run", []string{"/run?run=" + live[0], "/data/series?run=" + live[0], "/data/series?of=roles&run=" + live[0]}},
		{"ended run", []string{"/run?run=" + ended[3], "/data/series?run=" + ended[3], "/data/series?of=roles&run=" + ended[3]}},
		{"workers", []string{"/workers", "/data/workers"}},
		{"worker", []string{"/worker?role=worker-7&run=" + live[1], "/data/series?role=worker-7&run=" + live[1]}},
		{"compare", append([]string{"/compare?" + compare}, seriesOf(ended[20:30])...)},
		{"cluster", []string{"/cluster"}},
		{"new", []string{"/new"}},
		{"logs", []string{"/logs.txt?run=" + live[2]}},
	} {
		began, ticks := time.Now(), s.ticks()
		bytes := s.load(at.paths[0])
		page := time.Since(began)
		var rest sync.WaitGroup
		var mu sync.Mutex
		for _, path := range at.paths[1:] {
			rest.Go(func() {
				n := s.load(path)
				mu.Lock()
				defer mu.Unlock()
				bytes += n
			})
		}
		rest.Wait()
		took := time.Since(began)
		spent := 10 * (s.ticks() - ticks) // ms; 100 ticks are a second
		t.Logf("%-12s page %5d ms, all %5d ms, processor %5d ms, %6.2f MB; memory %4d MB", at.name,
			page.Milliseconds(), took.Milliseconds(), spent, float64(bytes)/1e6, s.memory())
		if spent > 6000 {
			t.Errorf("%s takes %d ms of processor time", at.name, spent)
		}
	}
	s.measureLive(ctx, live)
	if peak := s.peak(); peak > 150 {
		t.Errorf("the server took %d MB", peak)
	} else {
		t.Logf("peak %d MB", peak)
	}
}

func seriesOf(ids []string) (paths []string) {
	for _, id := range ids {
		paths = append(paths, "/data/series?run="+id)
	}
	return paths
}

// loaded is a dashboard in a process of its own.
type loaded struct {
	t      *testing.T
	base   string
	client *http.Client
	pid    int
}

func startDashboard(t *testing.T, dir string) *loaded {
	t.Helper()
	cmd := exec.Command(programtest.Path(t, "stoke"), "dashboard", "-no-browser", "-machine", dir)
	cmd.Dir = t.TempDir()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		cmd.Wait()                       //nolint:errcheck // likewise
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at := regexp.MustCompile(`http://\S+`).FindString(lines.Text()); at != "" {
			go io.Copy(io.Discard, out) //nolint:errcheck // nothing more is read
			jar, _ := cookiejar.New(nil)
			s := &loaded{t: t, client: &http.Client{Jar: jar}, pid: cmd.Process.Pid}
			s.base, _, _ = strings.Cut(at, "/login")
			s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			answer, err := s.client.Get(at)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			return s
		}
	}
	t.Fatal("the dashboard prints no link")
	return nil
}

func (s *loaded) load(path string) int64 {
	answer, err := s.client.Get(s.base + path)
	if err != nil {
		s.t.Errorf("%s: %v", path, err)
		return 0
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Errorf("%s: %s, %v", path, answer.Status, err)
	}
	return n
}

// measureLive opens the screens of live runs as browsers do, and measures the processor
// time of 20 seconds.
func (s *loaded) measureLive(ctx context.Context, live []string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	for _, path := range []string{"/live/runs", "/live/workers", "/live/run?run=" + live[0], "/live/run?run=" + live[1]} {
		reading.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+path, nil)
			if err != nil {
				s.t.Error(err)
				return
			}
			answer, err := s.client.Do(r)
			if err != nil {
				s.t.Error(err)
				return
			}
			defer answer.Body.Close()
			io.Copy(io.Discard, answer.Body) //nolint:errcheck // it ends with ctx
		})
	}
	time.Sleep(4 * time.Second)
	from := s.ticks()
	time.Sleep(20 * time.Second)
	percent := float64(s.ticks()-from) / 20 // 100 ticks are a second
	s.t.Logf("live: %.1f %% of a core, memory %d MB", percent, s.memory())
	if percent > 80 {
		s.t.Errorf("four live screens take %.0f %% of a core", percent)
	}
}

func (s *loaded) ticks() (sum int64) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.pid), "stat"))
	if err != nil {
		s.t.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')'):]))
	for _, f := range fields[12:14] {
		n, _ := strconv.ParseInt(f, 10, 64)
		sum += n
	}
	return sum
}

func (s *loaded) memory() int64 { return s.ofStatus("VmRSS") }
func (s *loaded) peak() int64   { return s.ofStatus("VmHWM") }

// ofStatus returns a number of the process in MB.
func (s *loaded) ofStatus(key string) (n int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			fmt.Sscan(rest, &n)
		}
	}
	return n >> 10
}
