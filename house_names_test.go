package stoke_test

import (
	"go/ast"
	"go/token"
	"path"
	"strings"
	"testing"
)

// emptyNames say nothing about a function or a type when they are its whole
// name: prepositions and adverbs, participles and adjectives without their noun,
// and verbs of speech for acts that have a verb of their own.
var emptyNames = wordSet(`
	about above after again ahead alike alone among anew apart as at away back
	because before behind below beside between beyond by each earlier early either
	elsewhere else exactly except few from in inside instead into later near now
	nowhere of off on once only or others out over own partly rather same several
	since so some still straight such there those through together twice under
	until up when where wholly who whole why with within without

	asked awaited been began begun broken brought built called came cut
	damaged declared departed done doomed drawn due ended explained fit fitted
	found furnished given going gone got had handed has heard held homed is kept
	known laid lasting left looked lost made making may meant mended met must
	named needed noted noticed numbered offered parted passed placed ran reached
	refused rested sabotaged said saved saw seen served settled shared shown
	stayed taken tamed told touched tried turned unbegun undone unfit unmade
	unread unseen unsure untold wanted was watched went written

	dead hopeless odd patient plain quiet scarce sound steady strange stranger
	trouble tidy vacant veil

	gives goes hear hears heed know knows mend proclaim retell say says speak
	stand stands tell tells

	anybody everybody everything nobody nothing somebody something gkes kubes
`)

func wordSet(words string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

var nameFence = fence{list: "names.txt", fault: "times",
	rule: "Functions, methods and types whose name says nothing, each after its folder; tests and test doubles are not counted.",
	fix: "name a function by a verb and its noun (readState, needsReplacement), a type by a noun (Deferral), " +
		"each with the field's term: see \"Words\" in CONTRIBUTING.md",
	group: path.Base}

// namesThatSayNothing returns the places of such names by folder and name.
func namesThatSayNothing(all []*source) map[string][]string {
	places := make(map[string][]string)
	for _, s := range all {
		if !s.production() {
			continue
		}
		add := func(name *ast.Ident) {
			if word := strings.ToLower(name.Name); emptyNames[word] {
				key := s.folder() + "/" + name.Name
				places[key] = append(places[key], s.place(name))
			}
		}
		for _, decl := range s.tree.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if !wellKnown(d) {
					add(d.Name)
				}
			case *ast.GenDecl:
				if d.Tok != token.TYPE {
					continue
				}
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						add(spec.Name)
					}
				}
			}
		}
	}
	return places
}

func TestFenceNames(t *testing.T) {
	places := namesThatSayNothing(sources(t))
	nameFence.check(t, lengths(places), func(key string) string {
		return "it is at " + strings.Join(places[key], ", ")
	})
}

func TestFenceNamesAreNoticed(t *testing.T) {
	for _, test := range []struct{ decl, want string }{
		{"func named() {}", "plan/hall/named: 1 time,"},
		{"func (h *hall) Told() {}", "plan/hall/Told: 1 time,"},
		{"type whole struct{}", "plan/hall/whole: 1 time,"},
		{"func namedValues() {}", ""},
		{"func (h *hall) Is(error) bool { return false }", ""},
		{"var known = 1", ""},
		{"type hall struct{ left, at int }", ""},
	} {
		found := namesThatSayNothing([]*source{madeUp(t, "plan/hall/hall.go", "package hall\n\n"+test.decl+"\n")})
		advice := ""
		if test.want != "" {
			advice = "name a function by a verb and its noun"
		}
		t.Run(test.decl, func(t *testing.T) { noticed(t, nameFence, lengths(found), test.want, advice) })
	}
	for _, name := range []string{"plan/halltest/hall.go", "plan/hall/hall_test.go"} {
		found := namesThatSayNothing([]*source{madeUp(t, name, "package hall\n\nfunc named() {}\n")})
		noticed(t, nameFence, lengths(found), "", "")
	}
}
