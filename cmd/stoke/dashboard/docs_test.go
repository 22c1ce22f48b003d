package dashboard

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTableOfTests checks that each row of the documentation's table names tests, and that
// these exist, with their parts.
func TestTableOfTests(t *testing.T) {
	page, err := os.ReadFile("../../../docs/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "../dashboard_test.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	var rows []string
	for line := range strings.Lines(string(page)) {
		row := regexp.MustCompile(`^\| D(\d) `).FindStringSubmatch(line)
		if row == nil {
			continue
		}
		rows = append(rows, row[1])
		cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), "|"), "|")
		found := regexp.MustCompile("`(Test\\w+)(?:/(\\w+))?`").FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(found) == 0 && row[1] != "9" {
			t.Errorf("no test in %s", line)
		}
		for _, test := range found {
			if !strings.Contains(tests.String(), "func "+test[1]+"(t *testing.T)") {
				t.Errorf("there is no %s", test[1])
			}
			if test[2] != "" && !strings.Contains(tests.String(), `t.Run("`+test[2]+`"`) {
				t.Errorf("%s has no part %s", test[1], test[2])
			}
		}
	}
	for _, n := range strings.Split("12345678", "") {
		if !slices.Contains(rows, n) {
			t.Errorf("the table has no row D%s", n)
		}
	}
}
