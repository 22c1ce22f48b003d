package probe

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
)

// A trainer that hangs, dies, or prints garbage is a failure of the GPU; one that is
// unable to measure, too old, or interrupted says nothing about it.
func TestMeasure(t *testing.T) {
	for name, c := range map[string]struct{ script, unable, failed string }{
		"unable":  {`echo '{"unable":"no plugin"}'` + "\n", "no plugin", ""},
		"failed":  {`echo '{"failed":"a product is wrong"}'` + "\n", "", "a product is wrong"},
		"too old": {"exit 64\n", "too old", ""},
		"error":   {"exit 2\n", "", "exit status 2"},
		"killed":  {"kill -9 $$\n", "", "signal: killed"},
		"garbage": {"echo oops\n", "", "did not print a measurement"},
		"half":    {`echo '{"upload_bytes_per_second":1}'` + "\n", "", "did not print a measurement"},
		"nothing": {"", "", "did not print a measurement"},
		"endless": {"exec cat /dev/zero\n", "", "does not answer"},
		"silent":  {"exec sleep 1000\n", "", "does not answer"},
	} {
		limit := measureLimit
		if name == "silent" || name == "endless" {
			limit = 20 * time.Millisecond
		}
		m := measureWithin(t.Context(), limit, fake(t, c.script), "GPU-1")
		if m.Validate() != nil || (m.Unable == "") != (c.unable == "") || !strings.Contains(m.Unable, c.unable) || !strings.Contains(m.Failed, c.failed) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	path := fake(t, `[ "$*" = "measure-gpu GPU-1" ] && echo '{"upload_bytes_per_second":1,"download_bytes_per_second":2,"product_flops_per_second":3,"size":16}'`+"\n")
	if m := Measure(t.Context(), path, "GPU-1"); m != (gpu.Measured{Upload: 1, Download: 2, Product: 3, Size: 16}) {
		t.Errorf("%+v", m)
	}
	if m := Measure(t.Context(), path+".missing", "GPU-1"); m.Unable == "" && m.Failed == "" {
		t.Errorf("a program that is missing: %+v", m)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if m := Measure(ended, fake(t, "exec sleep 1000\n"), "GPU-1"); m.Unable == "" {
		t.Errorf("interrupted: %+v", m)
	}
}
