package gpu

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the tables of docs/gpu-health.md again")

// page has the tables for people.
const page = "../../docs/gpu-health.md"

// tables returns the tables of the page by the mark that each one follows.
func tables() map[string]string {
	var readings, reasons, rules, xids, speeds strings.Builder
	readings.WriteString("| name | unit | NVML | |\n|---|---|---|---|\n")
	for _, r := range Table() {
		name := "`" + r.Key + "`"
		if !r.Series {
			name = "*" + name + "*"
		}
		fmt.Fprintf(&readings, "| %s | %s | `%s` | %s |\n", name, r.Unit, r.NVML, r.About)
	}
	reasons.WriteString("| reason | NVML | | rule |\n|---|---|---|---|\n")
	for _, r := range Reasons() {
		fmt.Fprintf(&reasons, "| `%s` | `nvmlClocks%s` | %s | %s |\n", r.Name, r.NVML, r.About, r.Rule)
	}
	rules.WriteString("| rule | severity | proof | source |\n|---|---|---|---|\n")
	for _, r := range Rules() {
		fmt.Fprintf(&rules, "| `%s` | %s | %s | [NVIDIA](%s) |\n", r.ID, r.Severity, r.Proof, r.Source)
	}
	xids.WriteString("| XID | severity | |\n|---|---|---|\n")
	for _, x := range XIDs() {
		fmt.Fprintf(&xids, "| %d | %s | %s |\n", x.Number, x.Severity, x.About)
	}
	speeds.WriteString("| model | bfloat16, TFLOP/s | PCIe, GB/s in one direction | source |\n|---|---|---|---|\n")
	for _, s := range Speeds() {
		fmt.Fprintf(&speeds, "| %s | %.0f | %.0f | [NVIDIA](%s) |\n", s.Name, s.Product/1e12, s.Link/1e9, s.Source)
	}
	return map[string]string{"speeds": speeds.String(), "readings": readings.String(), "reasons": reasons.String(), "rules": rules.String(), "xids": xids.String()}
}

// TestPage compares the tables of the page with those of this package.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	for mark, table := range tables() {
		place := regexp.MustCompile(`(<!-- ` + mark + `[^\n]*-->\n)\n?(\|[^\n]*\n)*`)
		if !place.MatchString(got) {
			t.Errorf("the page has no mark %s", mark)
		}
		got = place.ReplaceAllStringFunc(got, func(found string) string { return strings.SplitAfter(found, "\n")[0] + "\n" + table })
	}
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(text), got); d != "" {
		t.Errorf("run this test with -update: %s", d)
	}
}
