package containerd

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/stokehq/stoke/runtime/pattern"
)

// Spec is what is declared of a container runtime. The zero Spec manages
// nothing.
type Spec struct {
	// Config has config.toml managed, and the service enabled and running.
	Config bool
	// Sandbox is the image of the container that holds a pod's namespaces; ""
	// leaves containerd's own choice.
	Sandbox string
	// BinDir is where CNI plugins are; "" for /opt/cni/bin.
	BinDir  string
	Mirrors map[string]Mirror // by registry, such as docker.io or registry.lan:5000; _default is for all others
	Proxy   *Proxy
	Images  map[string]Image // by reference in full, such as registry.k8s.io/pause:3.10.1
}

// Mirror says where a registry's images are pulled from.
type Mirror struct {
	// Server is asked when no endpoint has an image; "" for the registry itself.
	Server    string
	Endpoints []Endpoint
}

// Endpoint is one server of a mirror, asked in order.
type Endpoint struct {
	URL          string
	CA           string // a certificate's path on the machine
	SkipVerify   bool
	OverridePath bool // the URL's path is the API's root already
}

// Proxy is what containerd pulls images through.
type Proxy struct{ HTTP, HTTPS, No string }

// Image is an image in an archive on the operator's machine.
type Image struct {
	// Archive is the hexadecimal SHA-256 of the archive.
	Archive string
	// Open reads the archive. It is not needed to look at an image.
	Open func() (io.ReadCloser, error)
	// Pin keeps it from being removed when disk space runs short. The kubelet
	// heeds it from containerd 1.7 on.
	Pin bool
}

var (
	registry  = pattern.New(`^(_default|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?)$`)
	reference = pattern.New(`^[a-z0-9][A-Za-z0-9._:/@-]{0,254}$`)
	digest    = pattern.New(`^[0-9a-f]{64}$`)
)

// Validate says everything that is wrong with the declaration.
func (s Spec) Validate() error {
	var wrong []error
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf(format, args...)) }
	if s.Sandbox != "" && !reference.MatchString(s.Sandbox) {
		add("sandbox image %q is not a reference of an image", s.Sandbox)
	}
	if s.BinDir != "" && !plainPath(s.BinDir) {
		add("CNI folder %q: the path is absolute, with nothing unusual in it", s.BinDir)
	}
	for _, host := range slices.Sorted(maps.Keys(s.Mirrors)) {
		if !registry.MatchString(host) {
			add("registry %q: it is a host, with a port where it needs one, or _default", host)
		}
		wrong = append(wrong, s.Mirrors[host].validate(host)...)
	}
	if p := s.Proxy; p != nil {
		for _, u := range []string{p.HTTP, p.HTTPS} {
			if err := plainURL(u); u != "" && err != nil {
				add("proxy: %w", err)
			}
		}
		if strings.ContainsFunc(p.No, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"'\%$`, r) }) {
			add("proxy exceptions %q: names and networks with commas between them, and no blanks", p.No)
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(s.Images)) {
		if !reference.MatchString(ref) || !strings.Contains(ref, "/") || !strings.ContainsAny(ref[strings.LastIndex(ref, "/"):], ":@") {
			add("image %q: the reference has to be in full, with registry and tag, such as docker.io/library/busybox:1.37", ref)
		}
		if !digest.MatchString(s.Images[ref].Archive) {
			add("image %s: its archive is not known", ref)
		}
	}
	return errors.Join(wrong...)
}

func (m Mirror) validate(host string) []error {
	var wrong []error
	if m.Server != "" {
		wrong = append(wrong, plainURL(m.Server))
	}
	if len(m.Endpoints) == 0 {
		wrong = append(wrong, fmt.Errorf("mirror of %s: it needs an endpoint", host))
	}
	seen := map[string]bool{}
	for _, e := range m.Endpoints {
		err := plainURL(e.URL)
		switch {
		case err != nil:
		case seen[e.URL]:
			err = fmt.Errorf("%s is there twice", e.URL)
		case e.CA != "" && !plainPath(e.CA):
			err = fmt.Errorf("certificate %q: the path is absolute, with nothing unusual in it", e.CA)
		}
		seen[e.URL] = true
		if err != nil {
			wrong = append(wrong, fmt.Errorf("mirror of %s: %w", host, err))
		}
	}
	return wrong
}

// plainURL takes a URL without credentials: these files are readable by all.
func plainURL(text string) error {
	u, err := url.Parse(text)
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		text = "…" + text[i:] // what comes before may be secret
	}
	switch {
	case err != nil:
		return fmt.Errorf("%q is no URL", strings.ToValidUTF8(text, "?"))
	case u.User != nil:
		return fmt.Errorf("the URL of %s has credentials in it, which all users of the machine could read", u.Host)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q: a URL such as https://mirror.lan:5000 is needed", text)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`"'\%$`, r) }):
		return fmt.Errorf("%q has characters that no mirror's URL should", text)
	}
	return nil
}

func plainPath(p string) bool {
	return path.IsAbs(p) && path.Clean(p) == p && !strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"'\`, r) })
}
