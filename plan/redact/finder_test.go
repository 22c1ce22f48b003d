package redact

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestFinder compares with looking for each text at each place.
func TestFinder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(most int) string {
		b := make([]byte, 1+rng.IntN(most))
		for i := range b {
			b[i] = "abc"[rng.IntN(3)]
		}
		return string(b)
	}
	for range 3000 {
		texts := make([]string, rng.IntN(12))
		for i := range texts {
			texts[i] = random(6)
		}
		s := random(40)
		var want strings.Builder
		done := 0
		for i := range len(s) {
			longest := 0
			for _, text := range texts {
				if strings.HasPrefix(s[i:], text) {
					longest = max(longest, len(text))
				}
			}
			if longest > 0 && i >= done {
				want.WriteString(s[done:i] + "*")
			}
			if longest > 0 {
				done = max(done, i+longest)
			}
		}
		want.WriteString(s[done:])
		f := newFinder(texts)
		if got := f.replace(s, "*"); got != want.String() || f.foundIn(s) != (done > 0) {
			t.Fatalf("%q in %q: got %q, want %q", texts, s, got, &want)
		}
	}
}

// TestManySecrets: no number of secrets is too large, and no message shows one
// of them, or a part of two that overlap.
func TestManySecrets(t *testing.T) {
	var s Secrets
	for i := range 50_000 {
		s.Add(fmt.Sprintf("arn:of:a:secret:%d", i))
	}
	for in, want := range map[string]string{
		"arn:of:a:secret:49999 and arn:of:a:secret:7": "(sensitive value) and (sensitive value)",
		"arn:of:a:secret: alone":                      "arn:of:a:secret: alone",
	} {
		if got := s.Redact(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	if got := SecretsOf([]string{"abcdef", "defghi"}).Redact("xabcdefghix"); got != "x(sensitive value)x" {
		t.Errorf("of two that overlap is left %q", got)
	}
}

// BenchmarkRedact is one message beside so many secrets.
func BenchmarkRedact(b *testing.B) {
	message := strings.Repeat("the request to arn:of:a:secret:17 was refused; ", 20)
	for _, n := range []int{1, 100, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var s Secrets
			for i := range n {
				s.Add(fmt.Sprintf("arn:of:a:secret:%d", i))
			}
			s.Redact("")
			b.SetBytes(int64(len(message)))
			for b.Loop() {
				s.Redact(message)
			}
		})
	}
}
