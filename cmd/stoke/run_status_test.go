package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers"
)

// standing is a run of a cluster whose names of nodes are long.
func standing(now time.Time) providers.RunStatus {
	const node = "gke-training-europe-west4-accelerators-5d41402a-"
	return providers.RunStatus{Trains: true, Phase: "running", Progress: "step 3", Checkpoint: -1, Roles: []providers.RunRole{
		{Name: "coordinator-0", Phase: "running", Since: now.Add(-50 * time.Hour), Node: node + "abcd", Usage: &providers.RunUsage{At: now, CPU: 0.014, Memory: 31 << 20}},
		{Name: "ps-0", Phase: "running", Since: now.Add(-50 * time.Hour), Node: node + "efgh", Usage: &providers.RunUsage{CPU: 12.345, Memory: 1536 << 20}},
		{Name: "worker-0", Phase: "running", Restarts: 117, Since: now.Add(-59 * time.Second), Node: node + "ijkl", Usage: &providers.RunUsage{CPU: 191.9, Memory: 800 << 30}},
		{Name: "worker-1", Phase: "waiting", Reason: "0/7 nodes are available: 3 Insufficient nvidia.com/gpu, 4 node(s) had untolerated taint {spot}"},
		{Name: "worker-10", Phase: "given up", Restarts: 2, Since: now.Add(-time.Minute), Node: "near", Reason: "short"},
	}}
}

// A status has what each role takes. On a terminal no row is wider than that, and
// nothing but the beginnings of long names is left out.
func TestStatusFitsTheTerminal(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	is := standing(now)
	want := `train_experiment.a: running
  run
  progress    step 3
  checkpoint  none

  ROLE           STATE     RESTARTS  SINCE  CPU     MEMORY   NODE
  coordinator-0  running   0         2d2h   0.01    31 MiB   …s-5d41402a-abcd
  ps-0           running   0         2d2h   12.35   1.5 GiB  …s-5d41402a-efgh
  worker-0       running   117       59s    191.90  800 GiB  …s-5d41402a-ijkl
  worker-1       waiting   0         -      -       -
      0/7 nodes are available: 3 Insufficient nvidia.com/gpu, 4 node(s) had
      untolerated taint {spot}
  worker-10      given up  2         1m0s   -       -        near
      short
`
	got := statusText("train_experiment.a", is, now, 77)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("want (-), got (+): %s", d)
	}
	for width := 74; width < 240; width++ { // what the columns before the node need with its least
		for line := range strings.Lines(statusText("train_experiment.a", is, now, width)) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Fatalf("on %d columns a line has %d: %s", width, n, line)
			}
		}
	}
	wide := statusText("train_experiment.a", is, now, 0)
	for _, text := range []string{"NODE" + strings.Repeat(" ", 50) + "REASON\n", is.Roles[0].Node + "\n", is.Roles[3].Reason + "\n"} {
		if !strings.Contains(wide, text) {
			t.Errorf("without a terminal %q is not in\n%s", text, wide)
		}
	}
}

// Columns that mean nothing are left out.
func TestStatusWithoutUsage(t *testing.T) {
	is := providers.RunStatus{Phase: "running", Roles: []providers.RunRole{{Name: "web-1", Phase: "running", Ready: "2/2", Node: "a"}}}
	want := "  ROLE   STATE    READY  RESTARTS  SINCE  NODE  REASON\n  web-1  running  2/2    0         -      a\n"
	if got := statusText("kube_manifest.web", is, time.Now(), 80); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s", got)
	}
}

func TestUsageAsJSON(t *testing.T) {
	is := standing(time.Unix(0, 0).UTC())
	is.Roles = is.Roles[:1]
	is.Roles[0].Usage.Read = 1.5
	text, err := json.Marshal(statusJSON("train_experiment.a", is))
	if err != nil {
		t.Fatal(err)
	}
	want := `"usage":{"at":"1970-01-01T00:00:00Z","cpu":0.014,"memory_bytes":32505856,"memory_limit_bytes":0,"received_per_second":0,` +
		`"sent_per_second":0,"read_per_second":1.5,"written_per_second":0,"network_counted":false,"processes":0}`
	if !strings.Contains(string(text), want) {
		t.Errorf("got %s", text)
	}
}

func TestSizes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 KiB", 1<<20 - 1: "1023 KiB", 1 << 20: "1 MiB", 1<<30 - 1: "1023 MiB", 3 << 29: "1.5 GiB", 100<<30 - 1: "100.0 GiB", 800 << 30: "800 GiB"} {
		if got := size(n); got != want {
			t.Errorf("%d bytes are %s, want %s", n, got, want)
		}
	}
}
