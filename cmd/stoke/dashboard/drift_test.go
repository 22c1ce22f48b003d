package dashboard

import (
	"errors"
	"strings"
	"testing"
)

func TestDrift(t *testing.T) {
	f := someRuns()
	s := open(t, f)
	for _, test := range []struct {
		is    Drift
		err   error
		wants []string
		not   string
	}{
		{Drift{}, nil, []string{"No drift"}, "changed"},
		{Drift{Warnings: 1, Text: "Warning: not read"}, nil, []string{"No drift found, but not everything could be read", "Warning: not read", `"kind":"waiting"`}, "good"},
		{Drift{Objects: 2, Text: "~ train_dataset.digits\x1b[31m"}, nil, []string{"2 objects changed outside of stoke", "train_dataset.digits", `"kind":"waiting"`}, "\x1b"},
		{Drift{Text: "Error: gone"}, errors.New("the plan failed"), []string{"Not compared: the plan failed.", "Error: gone", `"kind":"bad"`}, "No drift"},
	} {
		f.mu.Lock()
		f.drift, f.undrifted = test.is, test.err
		f.mu.Unlock()
		body := s.get(of("/data/drift", f.runs[2]))
		for _, want := range test.wants {
			if !strings.Contains(body, want) {
				t.Errorf("%+v: no %q in %s", test.is, want, body)
			}
		}
		if strings.Contains(body, test.not) {
			t.Errorf("%+v: %q in %s", test.is, test.not, body)
		}
	}
}
