package address

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Step is one module call on the way to a module instance.
type Step struct {
	Name string
	Key  Key
}

// Target is what -target and -replace accept: everything in a module, all
// instances of a resource, or one instance. A module step without a key
// stands for all instances of that call.
type Target struct {
	Steps    []Step
	Resource *Resource // nil: the module and all that it contains; its Module is as written
	Key      Key       // of the instance; zero: all instances
}

// ParseInstance reads the address of a resource instance as Instance.String
// writes it.
func ParseInstance(text string) (Instance, error) {
	t, err := ParseTarget(text)
	if err != nil {
		return Instance{}, err
	}
	if t.Resource == nil {
		return Instance{}, fmt.Errorf("%q is a module; the address of a resource is needed, such as %s.TYPE.NAME", text, text)
	}
	return t.Resource.Instance(t.Key), nil
}

// ParseResource reads the address of a resource, without an instance key.
func ParseResource(text string) (Resource, error) {
	i, err := ParseInstance(text)
	if err != nil {
		return Resource{}, err
	}
	if !i.Key.IsZero() {
		return Resource{}, fmt.Errorf("%q is one instance; leave %s out to name the resource", text, i.Key)
	}
	return i.Resource, nil
}

// ParseModule reads the path of a module instance. The empty text is the
// root module.
func ParseModule(text string) (Module, error) {
	if text == "" {
		return "", nil
	}
	t, err := ParseTarget(text)
	if err != nil {
		return "", err
	}
	if t.Resource != nil {
		return "", fmt.Errorf("%q is a resource; the address of a module is needed, such as module.NAME", text)
	}
	return join(t.Steps), nil
}

// ParseTarget reads the address of a module, a resource or an instance.
func ParseTarget(text string) (Target, error) {
	if !utf8.ValidString(text) {
		return Target{}, fmt.Errorf("address %q: it is not UTF-8 text", clip(text))
	}
	s := scanner{text: text, rest: text}
	t, err := s.target()
	if err != nil {
		return Target{}, fmt.Errorf("address %q: %w", clip(text), err)
	}
	return t, nil
}

// Steps returns the calls that lead to the module instance. It is empty for
// the root and for text that is no module path.
func (m Module) Steps() []Step {
	if m == "" {
		return nil
	}
	t, err := ParseTarget(string(m))
	if err != nil || t.Resource != nil {
		return nil
	}
	return t.Steps
}

// Contains reports whether the target covers the instance, or an instance that
// an address with [*] includes.
func (t Target) Contains(i Instance) bool {
	return t.MayContain(i.Resource) && (t.Resource == nil || meets(t.Key, i.Key))
}

// Covers is Contains that demands of an address with [*] that the target
// covers all that it stands for.
func (t Target) Covers(i Instance) bool {
	if !t.Contains(i) || t.Resource != nil && i.Key.IsAny() && !t.Key.IsZero() && !t.Key.IsAny() {
		return false
	}
	steps := i.Module.Steps()
	for n, want := range t.Steps {
		if steps[n].Key.IsAny() && !want.Key.IsZero() && !want.Key.IsAny() {
			return false
		}
	}
	return true
}

// meets reports whether a wanted key may be the given one.
func meets(want, have Key) bool {
	return want.IsZero() || want == have || want.IsAny() || have.IsAny()
}

// MayContain reports whether the target covers some instance of the resource,
// should it have that instance.
func (t Target) MayContain(r Resource) bool {
	if t.Resource != nil && (t.Resource.Mode != r.Mode || t.Resource.Type != r.Type || t.Resource.Name != r.Name) {
		return false
	}
	steps := r.Module.Steps()
	if len(steps) < len(t.Steps) || t.Resource != nil && len(steps) != len(t.Steps) {
		return false
	}
	for n, want := range t.Steps {
		if steps[n].Name != want.Name || !meets(want.Key, steps[n].Key) {
			return false
		}
	}
	return true
}

// Reaches reports whether the target covers something in the module instance,
// or in one below it.
func (t Target) Reaches(m Module) bool {
	steps := m.Steps()
	if t.Resource != nil && len(t.Steps) < len(steps) {
		return false
	}
	for n := range min(len(steps), len(t.Steps)) {
		if steps[n].Name != t.Steps[n].Name || !meets(t.Steps[n].Key, steps[n].Key) {
			return false
		}
	}
	return true
}

// String renders the target as it is written.
func (t Target) String() string {
	if t.Resource == nil {
		return string(join(t.Steps))
	}
	return t.Resource.Instance(t.Key).String()
}

func join(steps []Step) Module {
	var m Module
	for _, s := range steps {
		m = m.Child(s.Name, s.Key)
	}
	return m
}

// scanner reads an address from left to right.
type scanner struct {
	text, rest string
}

func (s *scanner) target() (Target, error) {
	var t Target
	if s.text == "" {
		return t, fmt.Errorf("it is empty; write TYPE.NAME or module.NAME")
	}
	word, err := s.name()
	if err != nil {
		return t, err
	}
	for word == "module" {
		step, err := s.step("a module's name")
		if err != nil {
			return t, err
		}
		t.Steps = append(t.Steps, step)
		if s.rest == "" {
			return t, nil
		}
		if word, err = s.dotName("module or a resource's type"); err != nil {
			return t, err
		}
	}
	r := Resource{Module: join(t.Steps), Type: word}
	switch word {
	case "data":
		r.Mode = Data
		r.Type, err = s.dotName("a data source's type")
	case "resource": // what makes any type a type
		r.Type, err = s.dotName("a resource's type")
	case "arg", "count", "each", "ephemeral", "lazy", "local", "path", "self", "template", "terraform", "var":
		err = fmt.Errorf("%q is a word of the language, no resource type; write TYPE.NAME or module.NAME", word)
	}
	if err != nil {
		return t, err
	}
	last, err := s.step("a name after " + r.Type)
	if err != nil {
		return t, err
	}
	if s.rest != "" {
		return t, fmt.Errorf("%q does not belong after a resource; an instance ends in [0] or [\"key\"]", clip(s.rest))
	}
	r.Name = last.Name
	t.Resource, t.Key = &r, last.Key
	return t, nil
}

// step reads .name and an optional key.
func (s *scanner) step(what string) (Step, error) {
	name, err := s.dotName(what)
	if err != nil {
		return Step{}, err
	}
	key, err := s.key()
	return Step{Name: name, Key: key}, err
}

func (s *scanner) dotName(what string) (string, error) {
	if s.rest == "" {
		return "", fmt.Errorf("it ends too soon; %s is missing", what)
	}
	if s.rest[0] != '.' {
		return "", fmt.Errorf("%q is not expected; a dot and %s should follow", clip(s.rest), what)
	}
	s.rest = s.rest[1:]
	return s.name()
}

func (s *scanner) name() (string, error) {
	end := strings.IndexAny(s.rest, ".[")
	if end < 0 {
		end = len(s.rest)
	}
	name := s.rest[:end]
	if name == "" {
		return "", fmt.Errorf("a name is missing before %q", clip(s.rest))
	}
	if !hclsyntax.ValidIdentifier(name) {
		return "", fmt.Errorf("%q is no name; names consist of letters, digits, _ and -, and start with a letter or _", clip(name))
	}
	s.rest = s.rest[end:]
	return name, nil
}

// key reads [0], ["a"] or [*], or nothing.
func (s *scanner) key() (Key, error) {
	if !strings.HasPrefix(s.rest, "[") {
		return Key{}, nil
	}
	inner := s.rest[1:]
	if strings.HasPrefix(inner, `"`) {
		str, rest, err := unquote(inner)
		if err != nil {
			return Key{}, err
		}
		if !strings.HasPrefix(rest, "]") {
			return Key{}, fmt.Errorf("the key %s is not followed by ]", Quote(str))
		}
		s.rest = rest[1:]
		return StringKey(str), nil
	}
	if rest, any := strings.CutPrefix(inner, "*]"); any {
		s.rest = rest
		return AnyKey(), nil
	}
	digits, rest, closed := strings.Cut(inner, "]")
	if !closed {
		return Key{}, fmt.Errorf("%q has no closing bracket", clip(s.rest))
	}
	n, err := strconv.Atoi(digits)
	if err != nil || digits[0] < '0' || digits[0] > '9' {
		return Key{}, fmt.Errorf("[%s] is no key; write a whole number or a string in double quotes (protect them from the shell)", clip(digits))
	}
	s.rest = rest
	return IntKey(n), nil
}

// clip keeps a message readable when the text in it is not.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Keyless returns the target without any instance keys.
func (t Target) Keyless() Target {
	steps := make([]Step, len(t.Steps))
	for i, s := range t.Steps {
		steps[i] = Step{Name: s.Name}
	}
	out := Target{Steps: steps}
	if t.Resource != nil {
		r := *t.Resource
		r.Module = join(steps)
		out.Resource = &r
	}
	return out
}
