package traintest

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/run"
)

// BenchmarkEvents reads the history of a run with 10 million updates.
func BenchmarkEvents(b *testing.B) {
	path := filepath.Join(b.TempDir(), "metrics.jsonl")
	if _, err := WriteHistory(path, Long, time.Now()); err != nil {
		b.Fatal(err)
	}
	for name, want := range map[string]run.EventFilter{
		"run":    {Usage: run.WithoutUsage, Brief: true},
		"roles":  {Usage: run.OnlyUsage, Brief: true},
		"role":   {Usage: run.OnlyUsage, Role: "worker-3", Brief: true},
		"recent": {Usage: run.OnlyUsage, Since: time.Now().Add(-10 * time.Minute), Brief: true},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				events, err := run.OpenEvents(path, want)
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for ok := true; ok; n++ {
					if _, ok, err = events.Next(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(n), "events")
				events.Close()
			}
		})
	}
}
