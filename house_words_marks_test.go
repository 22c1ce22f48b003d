package stoke_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestFenceWordsAreNoticed(t *testing.T) {
	for _, test := range []struct{ sentence, want string }{
		{"What is declared no more is removed.", "W1"},
		{"The plan ends; Whoever reads it waits.", "W1"},
		{"What does the machine do with it?", ""},
		{"The question is: Who has the lock? Then it ends.", ""},
		{"It differs from what was there before.", "W2"},
		{"It is read with what the caller passes.", ""},
		{"The machine is set up by somebody else.", "W3"},
		{"A missing object is no error of the caller.", "W4"},
		{"The objects of the folder are none of ours.", "W4"},
		{"The object is no longer in the state.", ""},
		{"The object is no more than one line.", ""},
		{"It is no longer there and is no error.", "W4"},
		{"State.Locked tells that the state is locked.", "W5"},
		{"The page tells how the state is locked.", ""},
		{"The pool of nodes is made anew.", "W6"},
		{"The lock is the provider's own, always.", "W7"},
		{"The lock is the provider's only lock.", ""},
		{"The provider reads it over HTTP alone.", "W8"},
		{"An object by which the provider is known.", "W9"},
		{"The folder is where it is to be.", "W10"},
		{"The folder is about to end here.", ""},
		{"The flag `alone` and the name `nobody` are code.", ""},
		{"The version is that of the stored object.", "W11"},
		{"It is removed when the object goes away.", "W12"},
		{"The API server is waited for at most once.", "W13"},
		{"Nobody tells the provider about it alone, anyhow.", "W3 W5 W8"},
	} {
		var names []string
		for _, m := range marksOf(test.sentence) {
			names = append(names, m.name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%q hits %q, want %q", test.sentence, got, test.want)
		}
	}
	for i, m := range marks {
		if m.name != fmt.Sprintf("W%d", i+1) || m.instead == "" || len(m.needs) == 0 {
			t.Errorf("%q is not a whole pattern in its place", m.name)
		}
	}
}

const oddFile = `package hall

// Hall returns nil for a caller. Nobody tells
// the provider about it alone;
// it is read in silence by all the callers.
func Hall(caller string) error {
	return fmt.Errorf("the folder %s stays where it " +
		"is to be, for " + caller + fmt.Sprintf("the machine is made anew by %s", caller) + " alone")
}
`

func TestFenceWordsInGo(t *testing.T) {
	hit, comments, users := lint(goProse([]*source{madeUp(t, "plan/hall/hall.go", oddFile)}))
	if comments != (tally{3, 1}) || users != (tally{2, 2}) {
		t.Errorf("comments %v, texts for users %v: %v", comments, users, hit)
	}
	var rejected []string
	for _, s := range hit {
		if s.rejected() {
			rejected = append(rejected, s.text)
		}
	}
	want := []string{"Nobody tells the provider about it alone;", "the folder %s stays where it is to be, for %s%s alone"}
	if !slices.Equal(rejected, want) {
		t.Errorf("rejected %q, want %q", rejected, want)
	}
	advice := hit[0].advice()
	for _, part := range []string{"plan/hall/hall.go:3: ", "W3: name the actor", "W8: write only"} {
		if !strings.Contains(advice, part) {
			t.Errorf("the advice lacks %q: %s", part, advice)
		}
	}
	if again := goProse([]*source{madeUp(t, "plan/hall/hall_test.go", oddFile)}); len(again) > 0 {
		t.Errorf("the words of a test are checked: %v", again)
	}
}

func TestFenceWordsForUsers(t *testing.T) {
	for _, test := range []struct {
		text     string
		comment  bool
		rejected bool
	}{
		{"What is declared is read.", false, true},
		{"What is declared is read.", true, false}, // too short to be checked
		{"What a plan reads", false, false},        // a heading
		{"What is declared is read by stoke.", true, false},
		{"What is declared is read by stoke.", false, true},
		{"Default: the provider's.", false, true},
		{"It is no key.", false, false},
		{"The lock of the state is no error.", false, false},
		{"The lock of the state alone is no error.", false, true},
	} {
		hit, _, _ := lint([]prose{{text: test.text, file: "plan/hall.go", line: 1, comment: test.comment}})
		if got := len(hit) > 0 && hit[0].rejected(); got != test.rejected {
			t.Errorf("%q (comment %t) rejected: %t", test.text, test.comment, got)
		}
	}
}

const oddPage = "# Halls\nA hall has\ntwo doors.\n- one\n  item\n2. another\n\n```sh\nnobody reads this\n```\n| a | b c |\n|---|---|\n"

func TestFenceWordsInPages(t *testing.T) {
	var got []string
	for _, p := range paragraphs("docs/hall.md", oddPage) {
		if text := strings.Trim(p.text, " -"); text != "" {
			got = append(got, fmt.Sprintf("%d %s", p.line, text))
		}
	}
	want := []string{"1 Halls", "2 A hall has two doors.", "4 one item", "6 another", "11 a", "11 b c"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
