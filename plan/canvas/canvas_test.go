package canvas

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
)

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "äöü": 3, "日本": 4, "e\u0301": 1, "⣿│": 2, "🚀": 2, "a\u200db": 2} {
		if got := Width(text); got != want {
			t.Errorf("Width(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text string
		most int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"äöüß", 4, "äöüß"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"日本語", 6, "日本語"},
		{"abc", 0, ""}, {"abc", 1, "…"}, {"e\u0301e\u0301", 2, "e\u0301e\u0301"},
	} {
		if got := CutText(test.text, test.most); got != test.want {
			t.Errorf("CutText(%q, %d) = %q, want %q", test.text, test.most, got, test.want)
		}
	}
	letters := []rune("aä日🚀e\u0301 …")
	random := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		var b strings.Builder
		for range random.IntN(20) {
			b.WriteRune(letters[random.IntN(len(letters))])
		}
		most := random.IntN(12)
		if got := CutText(b.String(), most); Width(got) > most {
			t.Fatalf("CutText(%q, %d) = %q has %d columns", b.String(), most, got, Width(got))
		}
		if got := Pad(b.String(), most); Width(got) != most {
			t.Fatalf("Pad(%q, %d) = %q has %d columns", b.String(), most, got, Width(got))
		}
	}
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                    "plain",
		"\x1b[31mred\x1b[0m":       "red",
		"\x1b]0;title\x07after":    "after",
		"\x1b]8;;http://a\x1b\\a":  "a",
		"\x1bPq#0;2\x1b\\b":        "b",
		"\x1b[2J\x1b[Hgone":        "gone",
		"open \x1b[38;5":           "open ",
		"a\tb\nc\rd\x00\x07":       "a    b cd",
		"\u202egnp.exe":            "gnp.exe",
		"\u009b31mC1":              "31mC1",
		"bad \xff\xfe utf8":        "bad \ufffd\ufffd utf8",
		"日本 ä":                     "日本 ä",
		"\x1b":                     "",
		"<script>alert()</script>": "<script>alert()</script>",
	} {
		if got := Clean(text); got != want {
			t.Errorf("Clean(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31m\x1b]0;x\x07\xff", 7)
	f.Fuzz(func(t *testing.T, text string, most int) {
		got := Clean(text)
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Errorf("Clean(%q) = %q has %U", text, got, r)
			}
		}
		if most = min(max(most, 0), 1000); Width(CutText(got, most)) > most {
			t.Errorf("CutText(%q, %d) is too wide", got, most)
		}
	})
}

func TestChart(t *testing.T) {
	rising := Curve{Name: "a", X: []float64{0, 10}, Y: []float64{0, 1}}
	falling := Curve{Name: "b", X: []float64{0, 10}, Y: []float64{1, 0}}
	got := strings.Join(Chart([]Curve{rising}, Options{Columns: 12, Rows: 4}), "\n")
	want := "1│      ⢀⡠⠔⠊\n" + " │   ⢀⠤⠒⠁\n" + "0│⡠⠔⠊⠁\n" + " └0       10"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got = strings.Join(Chart([]Curve{rising, falling}, Options{Columns: 12, Rows: 4}), "\n")
	want = "1│BBBB  AAAA\n" + " │   BBBB\n" + "0│AAAA  BBBB\n" + " └0       10"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := Chart([]Curve{rising}, Options{Columns: 12, Rows: 4, Color: true})[0]; got != "1│      \x1b[36m⢀⡠⠔⠊\x1b[0m" {
		t.Errorf("in colours: %q", got)
	}
}

// TestChartIsNeverTooWide draws what a hostile program may report.
func TestChartIsNeverTooWide(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	odd := []float64{0, -1, 1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -1.23456789e-300}
	for range 3000 {
		var curves []Curve
		for range random.IntN(4) {
			var c Curve
			for i := range random.IntN(30) {
				c.X = append(c.X, float64(i))
				c.Y = append(c.Y, odd[random.IntN(len(odd))])
			}
			curves = append(curves, c)
		}
		o := Options{Columns: random.IntN(60), Rows: random.IntN(12)}
		lines := Chart(curves, o)
		if len(lines) != o.Rows {
			t.Fatalf("%d lines, want %d", len(lines), o.Rows)
		}
		for _, line := range lines {
			if Width(line) > o.Columns {
				t.Fatalf("%q has %d columns, want at most %d", line, Width(line), o.Columns)
			}
		}
	}
}
