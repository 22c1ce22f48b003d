package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/metal/host"
)

// fetchScript downloads a file by apt's own means, so through apt's proxy, with
// its certificates and as its user. $1 is the URL, the rest apt's environment.
const fetchScript = `# fetch a key
set -e
umask 022; url=$1; shift
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
chown _apt: "$d" 2>/dev/null || :
ulimit -f 4096
"$@" /usr/lib/apt/apt-helper -q -o Acquire::Retries=2 download-file "$url" "$d/key" >&2
head -c 1048577 "$d/key"`

// KeyError: a repository has another key than the declared one.
type KeyError struct {
	Repository string
	From       string // where the key is from
	Want, Have []string
	Why        string // "" for another key
}

func (e *KeyError) Error() string {
	why := e.Why
	if why == "" {
		why = "is another one"
	}
	return fmt.Sprintf("the key of repository %s (%s) %s: declared is %s, it is %s: nothing was installed; compare with what the publisher says before you change the fingerprint",
		e.Repository, e.From, why, strings.Join(e.Want, " or "), strings.Join(e.Have, " and "))
}

// check reads a repository's key and compares: every key in it must be declared,
// and one at least must be valid now. The result is the keyring as it is
// installed.
func (r Repository) check(name string, content []byte, now time.Time) ([]byte, error) {
	e := &KeyError{Repository: name, From: "given inline", Want: strings.Fields(prints(r.Fingerprints))}
	if r.Key.URL != "" {
		e.From = r.Key.URL
	}
	binary, keys, err := readKeyring(content)
	if err != nil {
		return nil, fmt.Errorf("the key of repository %s (%s) cannot be read: %w; it begins with %.40q", name, e.From, err, content)
	}
	for _, k := range keys {
		e.Have = append(e.Have, k.Fingerprint)
	}
	if slices.ContainsFunc(e.Have, func(f string) bool { return !slices.Contains(e.Want, f) }) {
		return nil, e
	}
	if why := unusable(keys, now); why != "" {
		e.Why = why
		return nil, e
	}
	return binary, nil
}

func unusable(keys []publicKey, now time.Time) string {
	why := ""
	for _, k := range keys {
		switch {
		case k.Revoked:
			why = "was revoked"
		case !k.Expires.IsZero() && !k.Expires.After(now):
			why = "expired on " + k.Expires.Format(time.DateOnly)
		default:
			return ""
		}
	}
	return why
}

// trusted describes the content of a keyring on the machine like a declared
// key: the texts are equal where nothing differs.
func (r Repository) trusted(content []byte, now time.Time) string {
	_, err := r.check("", content, now)
	var other *KeyError
	switch {
	case err == nil:
		return prints(r.Fingerprints)
	case !errors.As(err, &other):
		return "unreadable"
	}
	return strings.TrimSpace(prints(other.Have) + " " + other.Why)
}

func (a *apply) installKey(ctx context.Context, name string) error {
	r := a.want.Repositories[name]
	content := []byte(r.Key.Inline)
	if r.Key.URL != "" {
		host.Step(ctx, "%s", "fetch the key of repository "+name)
		out, err := host.Script(ctx, a.m, fetchScript, append([]string{r.Key.URL}, a.want.environment()...)...)
		if err != nil {
			return fmt.Errorf("fetch the key of repository %s: %w", name, err)
		}
		content = out
	}
	binary, err := r.check(name, content, a.now())
	if err != nil {
		return err
	}
	if _, err := host.Run(ctx, a.m, "install", "-d", "-m", "0755", keyringsDir); err != nil {
		return fmt.Errorf("make %s: %w", keyringsDir, err)
	}
	return a.rec.WriteFile(ctx, keyringFile(name), binary)
}
