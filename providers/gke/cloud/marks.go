package cloud

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"

	"github.com/google/uuid"

	"github.com/stokehq/stoke/runtime/pattern"
)

// Mark is the label that says which create made an object.
const Mark = "stoke-operation"

// lastLine begins the last line of a description, which marks what has no labels.
const lastLine = Mark + ": "

// labelValue is what the value of a label may be.
var labelValue = pattern.New(`^[a-z0-9_-]{1,63}$`)

// MarkOf is the mark of a create with this operation id; one is drawn where the
// engine gives none.
func MarkOf(operation string) string {
	if operation == "" {
		operation = rand.Text()
	}
	if mark := strings.ToLower(operation); labelValue.MatchString(mark) {
		return mark
	}
	sum := sha256.Sum256([]byte(operation))
	return hex.EncodeToString(sum[:16])
}

// asking is what the ids of calls are made of, beside what they ask for.
type asking struct {
	mark    string
	attempt int // how often Google has said that nothing came of the call
}

type askingKey struct{}

// WithMark gives the calls of a create, an update or a deletion the mark of that
// operation.
func WithMark(ctx context.Context, mark string) context.Context {
	return context.WithValue(ctx, askingKey{}, asking{mark: mark})
}

// withRefusals is the context of a call that is made again after so many refusals.
func withRefusals(ctx context.Context, refusals int) context.Context {
	a, _ := ctx.Value(askingKey{}).(asking)
	a.attempt = refusals
	return context.WithValue(ctx, askingKey{}, a)
}

// Request is the id by which compute knows a call that is made again: of operation,
// call and attempt. A call whose answer was lost has the same one again, and what it
// began is not begun twice.
func Request(ctx context.Context, call string) string {
	a, _ := ctx.Value(askingKey{}).(asking)
	if a.mark == "" {
		a.mark = MarkOf("")
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(fmt.Sprintf("stoke/%s/%s/%d", a.mark, call, a.attempt))).String()
}

// Step is the label that says which step of a fallback made an object.
const Step = "stoke-step"

// theirs are the labels that stoke and the services set themselves.
func theirs(name string) bool {
	return name == Mark || name == Step || strings.HasPrefix(name, "goog-")
}

// Marked is labels with the provider's default ones and a mark. "" is none.
func (s Settings) Marked(labels map[string]string, mark string) map[string]string {
	all := make(map[string]string, len(labels)+len(s.Labels)+1)
	for k, v := range s.Labels {
		all[k] = v
	}
	for k, v := range labels {
		all[k] = v
	}
	if mark != "" {
		all[Mark] = mark
	}
	return all
}

// Effective is labels without the mark and without those that Google sets, unless
// they were declared. It is never nil.
func (s Settings) Effective(labels, declared map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range labels {
		if _, own := declared[k]; own || !theirs(k) {
			out[k] = v
		}
	}
	return out
}

// DeclaredLabels returns the labels without the provider's default labels, except
// defaults that the object declares itself. It is never nil.
func (s Settings) DeclaredLabels(labels, declared map[string]string) map[string]string {
	out := s.Effective(labels, declared)
	maps.DeleteFunc(out, func(k, _ string) bool {
		_, own := declared[k]
		_, everywhere := s.Labels[k]
		return everywhere && !own
	})
	return out
}

// Relabel is what labels become: what is wanted, and of those that are there the
// mark and what Google set.
func (s Settings) Relabel(there, wanted map[string]string) map[string]string {
	all := s.Marked(wanted, "")
	for k, v := range there {
		if _, ok := all[k]; !ok && theirs(k) {
			all[k] = v
		}
	}
	return all
}

// Describe puts a mark below a description.
func Describe(text, mark string) string {
	if mark == "" {
		return text
	}
	if text == "" {
		return lastLine + mark
	}
	return text + "\n" + lastLine + mark
}

// Description takes the mark off a description.
func Description(text string) (declared, mark string) {
	at := strings.LastIndex(text, lastLine)
	if at < 0 || at > 0 && text[at-1] != '\n' || strings.Contains(text[at:], "\n") {
		return text, ""
	}
	return strings.TrimSuffix(text[:at], "\n"), text[at+len(lastLine):]
}
