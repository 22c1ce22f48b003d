package cloud

import (
	"maps"
	"testing"

	"github.com/google/uuid"
)

// TestMarks: a mark is a label or a last line, and is never seen.
func TestMarks(t *testing.T) {
	for _, operation := range []string{"op-1", "01JABCDEF", "with spaces and ÄÖ", "x/y"} {
		mark := MarkOf(operation)
		if !labelValue.MatchString(mark) || mark != MarkOf(operation) {
			t.Errorf("%q is marked %q", operation, mark)
		}
	}
	if one, other := MarkOf(""), MarkOf(""); one == other {
		t.Error("marks of no operation are the same")
	}
	for _, text := range []string{"", "one", "two\nlines", "stoke-operation"} {
		declared, mark := Description(Describe(text, "m"))
		if declared != text || mark != "m" {
			t.Errorf("%q became %q with %q", text, declared, mark)
		}
		if declared, mark := Description(text); declared != text || mark != "" {
			t.Errorf("%q without a mark is %q with %q", text, declared, mark)
		}
	}
	m := WithMark(t.Context(), "m")
	id := Request(m, "insert")
	if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 5 {
		t.Errorf("the id of a request is %q", id)
	}
	if id != Request(m, "insert") || id == Request(m, "delete") || id == Request(WithMark(t.Context(), "n"), "insert") || id == Request(withRefusals(m, 1), "insert") {
		t.Error("request ids are not of operation, call and attempt alone")
	}
	if one, two := Request(t.Context(), "insert"), Request(t.Context(), "insert"); one == two {
		t.Error("calls of no operation have the same id")
	}
	s := Settings{Labels: map[string]string{"env": "ci"}}
	there := s.Marked(map[string]string{"team": "a"}, "m")
	there["goog-gke-x"] = "y"
	if got := s.DeclaredLabels(there, map[string]string{"team": "a"}); !maps.Equal(got, map[string]string{"team": "a"}) {
		t.Errorf("declared are %v", got)
	}
	if got := s.Relabel(there, map[string]string{"team": "b"}); !maps.Equal(got, map[string]string{"team": "b", "env": "ci", Mark: "m", "goog-gke-x": "y"}) {
		t.Errorf("labels become %v", got)
	}
}
